"""Outputs that contradict themselves, real ones that do not, and a page's copying errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchrunner.model import Measurement
from benchrunner.parse import parse_output
from benchrunner.parse.validity import StepContext, find_problems

ROOT = Path(__file__).parent / "cases" / "db_bench"
CASES = sorted(path.parent for path in ROOT.glob("*/stdout"))
PAGE = StepContext(threads=64, seconds=5400, usec_digit_us=0.05)
READ = (
    "ops_per_sec",
    "mb_per_sec",
    "usec_per_op",
    "p50_us",
    "p75_us",
    "p99_us",
    "p99_9_us",
    "p99_99_us",
)
MULTI = ("ops_per_sec", "p50_us", "p75_us", "p99_us", "p99_9_us", "p99_99_us")
WRITING = ("ops_per_sec", "mb_per_sec", "w_amp_lsm", "compaction_write_mb_per_sec", *READ[2:])


def row(metrics: tuple[str, ...], text: str) -> list[Measurement]:
    """A page's row without its Version and Opts columns."""
    cells = text.split()[2 : 2 + len(metrics)]
    pairs = zip(metrics, cells, strict=True)
    return [Measurement("phase", 1, None, metric, float(cell)) for metric, cell in pairs]


def made(
    phase: str | None = "readrandom", role: str | None = None, **values: float
) -> list[Measurement]:
    return [Measurement(phase, 1, role, metric, value) for metric, value in values.items()]


def under(values: dict[str, float]) -> list[Measurement]:
    return [Measurement("readrandom", 1, None, metric, value) for metric, value in values.items()]


@pytest.mark.parametrize(
    "text",
    [
        "6.22.1 None 138660 461.6 4576.1 5706.3 9294 9867",
        "6.22.1 DIO 189235 338.2 3410.7 4047.7 6406 6583",
        "6.21.2 None 138623 461.7 4577.4 5707.2 9294 9866",
        "6.15.5 None 138507 462.0 4582.3 5710.2 9299 9867",
        "6.10.4 None 138476 462.1 4583.0 5710.9 9298 9864",
    ],
)
def test_the_seed_pages_shifted_rows_are_found(text: str) -> None:
    """Test 3: usec/op stands under p50 in the five rows whose output had no MB/s."""
    cells = re.split(r"\s+", text)[2:]
    metrics = MULTI if len(cells) == len(MULTI) else MULTI[: len(cells)]
    (problem,) = find_problems(row(metrics, text), PAGE)
    assert problem.startswith(f"phase: p50 {float(cells[1]):g} us is what usec/op must be")
    assert problem.endswith("the row looks shifted by one column")


def test_the_seed_pages_wrong_usec_is_found() -> None:
    text = "6.23.0 None 41322 165.5 16.7 7.6 1584.7 1359.9 1838.4 6225 13285 24338"
    assert find_problems(row(WRITING, text), PAGE) == (
        "phase: usec/op 1584.7 x ops/sec 41322 is not 64 threads x 1e6; "
        "usec/op should be near 1548.8",
    )


@pytest.mark.parametrize(
    ("metrics", "text"),
    [
        (READ, "7.2.2 None 136915 34.7 467.4 615.5 772.8 1270 1801 2840"),
        (READ, "6.10.4 None 138496 35.1 462.1 617.1 764.3 1240 1295 2484"),
        (MULTI, "7.2.2 None 136928 4657.7 5774.9 9416 9873 18001"),
        (WRITING, "7.2.2 None 86617 34.7 9.5 149.7 738.9 449.7 777.6 10479 30005 58328"),
        (WRITING, "7.0.3 DIO 31155 124.8 15.9 7.0 2054.0 1753.5 2529.0 7627 9970 13948"),
        (WRITING, "6.22.1 None 41244 165.2 16.7 7.6 1551.6 1362.3 1845.8 6234 13346 24988"),
    ],
)
def test_the_seed_pages_good_rows_pass(metrics: tuple[str, ...], text: str) -> None:
    assert find_problems(row(metrics, text), PAGE) == ()


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_real_outputs_do_not_contradict_themselves(case: Path) -> None:
    command = (case / "source.txt").read_text()
    threads = re.search(r"--threads=(\d+)", command)
    seconds = re.search(r"--duration=(\d+)", command)
    context = StepContext(
        threads=int(threads[1]) if threads else None,
        seconds=float(seconds[1]) if seconds else None,
        wall_s=60.0,
    )
    parsed = parse_output("db_bench", case / "stdout", case / "stderr")
    assert find_problems(parsed.measurements, context) == ()


def test_percentiles_never_fall() -> None:
    values = made(role="write", p50_us=1.0, p75_us=3.0, p99_us=2.5, max_us=2.5)
    assert find_problems(values) == ("readrandom, write: p75_us 3 us is above p99_us 2.5 us",)


def test_no_more_found_than_asked() -> None:
    assert find_problems(made(found_count=11.0, asked_count=10.0)) == (
        "readrandom: 11 keys were found of 10 asked for",
    )


def test_operations_over_seconds_are_the_rate() -> None:
    good = made(operations=796998.0, elapsed_s=2.008, ops_per_sec=396875.0)
    bad = made(operations=796998.0, elapsed_s=2.008, ops_per_sec=39687.0)
    assert find_problems(good) == ()
    assert find_problems(bad) == (
        "readrandom: 796998 operations in 2.008 s are 396911 ops/sec, not 39687",
    )


def test_no_clock_runs_longer_than_the_process() -> None:
    context = StepContext(wall_s=10.0)
    values = [*made(None, uptime_s=10.1), *made("overwrite", elapsed_s=12.0)]
    assert find_problems(values, context) == (
        "overwrite: elapsed_s 12 is longer than the process ran (10 s)",
    )


HALF = made(usec_per_op=5.0, ops_per_sec=100000.0)


@pytest.mark.parametrize(
    "known", [{"elapsed_s": 60.1}, {"latency_count": 6.01e6, "mean_us": 5.0}], ids=["V2", "V1"]
)
def test_threads_that_did_not_run_all_the_time(known: dict[str, float]) -> None:
    """Half of the threads' time is missing: impossible with a duration, common without one."""
    values = [*HALF, *under(known)]
    assert find_problems(values, StepContext(threads=1)) == ()
    assert find_problems(values, StepContext(threads=1, seconds=60)) == (
        "readrandom: usec/op 5 x ops/sec 100000 is not 1 threads x 1e6; "
        "usec/op should be near 10.0",
    )
    assert find_problems(values, StepContext(threads=1, seconds=60, phase="other")) == ()


def test_a_run_that_its_number_of_operations_ended_is_not_judged_by_duration() -> None:
    context = StepContext(threads=1, seconds=60)
    assert find_problems([*HALF, *made(elapsed_s=30.0)], context) == ()
    assert find_problems(HALF, context) == ()


@pytest.mark.parametrize(
    "values",
    [
        # Two readers that started 0.16 s apart, really printed by 7.8.3.
        {"usec_per_op": 12.350, "ops_per_sec": 155705.0, "elapsed_s": 2.087},
        # 2 ms a seek: each thread stops up to 1000 seeks after the others.
        {"usec_per_op": 2000.0, "ops_per_sec": 880.0, "elapsed_s": 10.0},
    ],
)
def test_short_runs_may_lose_their_ends(values: dict[str, float]) -> None:
    seconds = values["elapsed_s"]
    assert find_problems(under(values), StepContext(threads=2, seconds=seconds)) == ()


def test_a_run_without_operations_names_no_expectation() -> None:
    values = made(usec_per_op=1.0, ops_per_sec=0.0, elapsed_s=60.0)
    assert find_problems(values, StepContext(threads=1, seconds=60)) == (
        "readrandom: usec/op 1 x ops/sec 0 is not 1 threads x 1e6; usec/op should be near nothing",
    )
    values = made(usec_per_op=0.0, ops_per_sec=0.0, latency_count=1.0, mean_us=1.0)
    assert find_problems(values, StepContext(threads=1, seconds=60)) == ()


def test_later_runs_are_named() -> None:
    values = [Measurement("x", 2, None, "p50_us", 2.0), Measurement("x", 2, None, "p75_us", 1.0)]
    assert find_problems(values) == ("x, run 2: p50_us 2 us is above p75_us 1 us",)
