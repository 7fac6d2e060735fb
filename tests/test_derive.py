"""What follows from the measurements of a step or a test, and what does not."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchrunner.derive import DeriveContext, derive_step, derive_test
from benchrunner.model import Measurement
from benchrunner.parse import parse_output

if TYPE_CHECKING:
    from collections.abc import Mapping

METRICS = Path(__file__).parent.parent / "benchrunner" / "metrics.toml"
ROOT = Path(__file__).parent / "cases" / "db_bench"
CONTEXT = DeriveContext(key_bytes=20, value_bytes=400)
PROCESS = {
    "wall_s": 10.0,
    "cpu_user_s": 6.0,
    "cpu_sys_s": 2.0,
    "ctx_voluntary": 1000.0,
    "ctx_involuntary": 200.0,
    "read_bytes": 8000.0,
    "write_bytes": 84000.0,
}

OF_ANY_PROCESS = {"cpu_pct": 80.0, "cpu_user_share_pct": 75.0, "cpu_sys_share_pct": 25.0}


def made(
    phase: str | None, values: Mapping[str, float], role: str | None = None, run: int = 1
) -> list[Measurement]:
    return [Measurement(phase, run, role, metric, value) for metric, value in values.items()]


def derived(
    *groups: list[Measurement], context: DeriveContext | None = CONTEXT
) -> dict[str, float]:
    found = derive_step([m for group in groups for m in group], context)
    return {m.metric: m.value for m in found}


def test_everything_of_a_write_step() -> None:
    found = derived(made(None, PROCESS), made("overwrite", {"operations": 100.0}))
    assert found == {
        "cpu_pct": 80.0,
        "cpu_user_share_pct": 75.0,
        "cpu_sys_share_pct": 25.0,
        "cpu_us_per_op": 80000.0,
        "ctx_per_op": 12.0,
        "ctx_voluntary_per_op": 10.0,
        "ctx_involuntary_per_op": 2.0,
        "read_bytes_per_op": 80.0,
        "write_bytes_per_op": 840.0,
        "w_amp_device": 2.0,
    }
    assert found.keys() <= tomllib.loads(METRICS.read_text()).keys()


def test_figures_of_a_phase_carry_its_name() -> None:
    found = derive_step([*made(None, PROCESS), *made("overwrite", {"operations": 100.0})], CONTEXT)
    phases = {m.metric: m.phase for m in found}
    assert phases["cpu_us_per_op"] == "overwrite"
    assert phases["cpu_pct"] is None


def test_nothing_known_gives_nothing() -> None:
    assert derived() == {}
    assert derived(made("readrandom", {"ops_per_sec": 100.0})) == {}


@pytest.mark.parametrize("missing", ["cpu_user_s", "cpu_sys_s"])
def test_cpu_needs_both_parts(missing: str) -> None:
    process = {key: value for key, value in PROCESS.items() if key != missing}
    found = derived(made(None, process), made("readrandom", {"operations": 100.0}))
    assert "cpu_pct" not in found
    assert "cpu_us_per_op" not in found
    assert found["ctx_per_op"] == 12.0


@pytest.mark.parametrize(
    ("values", "operations"),
    [
        ({"operations": 50.0, "latency_count": 5.0}, 50.0),
        ({"latency_count": 50.0, "mean_us": 4.01, "usec_per_op": 4.0}, 50.0),
        ({"latency_count": 50.0, "mean_us": 40.1, "usec_per_op": 4.0}, 500.0),
        ({"latency_count": 50.0, "mean_us": 6.0, "usec_per_op": 4.0}, None),
        ({"latency_count": 50.0, "mean_us": 1.0, "usec_per_op": 4.0}, None),
        ({"latency_count": 50.0, "mean_us": 4.0}, None),
        ({"ops_per_sec": 50.0}, None),
    ],
)
def test_operations_are_known_or_not(values: dict[str, float], operations: float | None) -> None:
    found = derived(made(None, PROCESS), made("readrandom", values))
    expected = None if operations is None else pytest.approx(8e6 / operations)
    assert found.get("cpu_us_per_op") == expected


def test_one_histogram_of_several_does_not_count_all_operations() -> None:
    histogram = {"latency_count": 18.0, "mean_us": 4.0, "usec_per_op": 4.0}
    found = derived(
        made(None, PROCESS),
        made("readrandomwriterandom", histogram),
        made("readrandomwriterandom", {"latency_count": 2.0}, "write"),
    )
    assert "cpu_us_per_op" not in found


def test_runs_and_warm_ups_of_one_benchmark_share_the_process() -> None:
    found = derived(
        made(None, PROCESS),
        made("readrandom", {"operations": 50.0}, "warm-up"),
        made("readrandom", {"operations": 50.0}),
        made("readrandom", {"operations": 100.0}, run=2),
        made("readrandom", {"ops_per_sec": 9.0}, "average", 2),
    )
    assert found["cpu_us_per_op"] == 40000.0


def test_two_benchmarks_in_one_process_cannot_be_told_apart() -> None:
    found = derived(
        made(None, PROCESS),
        made("readrandom", {"operations": 5.0}),
        made("readseq", {"operations": 5.0}),
    )
    assert found == OF_ANY_PROCESS


def test_a_compaction_counts_no_operations() -> None:
    assert derived(made(None, PROCESS), made("compact", {"operations": 1.0})) == OF_ANY_PROCESS


def test_waiting_for_compaction_does_not_hide_the_benchmark() -> None:
    found = derived(
        made(None, PROCESS),
        made("overwrite", {"operations": 100.0}),
        made("waitforcompaction", {"operations": 1.0}),
    )
    assert found["cpu_us_per_op"] == 80000.0


def test_device_amplification_of_a_mixed_benchmark_divides_by_ingest() -> None:
    process = {**PROCESS, "write_bytes": 3.0 * 2**30}
    read = made("readwhilewriting", {"operations": 100.0})
    assert derived(made(None, {**process, "ingest_gb": 1.5}), read)["w_amp_device"] == 2.0
    assert "w_amp_device" not in derived(made(None, {**process, "ingest_gb": 0.1}), read)
    assert "w_amp_device" not in derived(made(None, process), read)


def test_device_amplification_of_writes_needs_the_sizes() -> None:
    groups = made(None, PROCESS), made("fillrandom", {"operations": 100.0})
    assert "w_amp_device" not in derived(*groups, context=None)
    assert "w_amp_device" not in derived(*groups, context=DeriveContext(key_bytes=20))


def test_an_interval_dump_is_not_the_process() -> None:
    process = {**PROCESS, "write_bytes": 3.0 * 2**30}
    found = derived(made(None, process), made(None, {"ingest_gb": 1.5}, "interval"))
    assert "w_amp_device" not in found


@pytest.mark.parametrize(
    ("case", "operations"),
    [
        ("7.2.2-multireadrandom", 414980.0),
        ("6.11.4-overwrite", 257998.0),
        ("7.8.3-readrandom", 796998.0),
    ],
)
def test_operations_of_real_outputs(case: str, operations: float) -> None:
    parsed = parse_output("db_bench", ROOT / case / "stdout", ROOT / case / "stderr")
    found = derived(list(parsed.measurements), made(None, PROCESS))
    assert found["cpu_us_per_op"] == pytest.approx(8e6 / operations)


def test_a_tests_time_is_that_of_all_its_steps() -> None:
    fill, compact = made(None, {"wall_s": 897.5}), made(None, {"wall_s": 3123.5})
    assert derive_test([fill, compact]) == (Measurement(None, 1, None, "test_time_s", 4021.0),)
    assert derive_test([fill, made(None, {"cpu_user_s": 1.0})]) == ()
    assert derive_test([]) == ()


SIZES = {"du_kib": 500.0, "rss_max_kib": 300.0}


@pytest.mark.parametrize(
    ("sizes", "mapped", "total_kib"),
    [
        (SIZES, False, 800.0),
        (SIZES, True, 500.0),
        ({**SIZES, "rss_max_kib": 510.0}, True, 510.0),
        ({"du_kib": 500.0}, False, None),
        ({"du_kib": 500.0}, True, None),
    ],
)
def test_the_total_size(
    sizes: dict[str, float],
    mapped: bool,
    total_kib: float | None,
) -> None:
    found = derived(made(None, sizes), context=DeriveContext(mapped=mapped))
    assert found.get("total_kib") == total_kib


def test_rates_of_readers_and_writer_are_the_phases_own() -> None:
    groups = [
        *made("readwhilewriting", {"ops_per_sec": 900.0, "usec_per_op": 2.0}, "reader"),
        *made("readwhilewriting", {"ops_per_sec": 30.0}, "writer"),
        *made("readwhilewriting", {"ops_per_sec": 5.0}, "warm-up"),
    ]
    assert derive_step(groups) == (
        Measurement("readwhilewriting", 1, None, "read_rate", 900.0),
        Measurement("readwhilewriting", 1, None, "write_rate", 30.0),
    )
    assert {"read_rate", "write_rate", "total_kib"} <= tomllib.loads(METRICS.read_text()).keys()


def test_operations_per_second_follow_from_the_threads_where_a_tool_prints_only_the_time() -> None:
    printed = [
        Measurement("readrandom", 1, None, "usec_per_op", 2.0),
        Measurement("compact", 1, None, "usec_per_op", 1e6),
        Measurement("fillseq", 1, None, "usec_per_op", 5.0),
        Measurement("fillseq", 1, None, "ops_per_sec", 199.0),
    ]
    rates = [
        one for one in derive_step(printed, DeriveContext(threads=4)) if one.metric == "ops_per_sec"
    ]
    assert rates == [Measurement("readrandom", 1, None, "ops_per_sec", 2e6)]
    assert not [one for one in derive_step(printed) if one.metric == "ops_per_sec"]
