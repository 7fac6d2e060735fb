"""status.json and samples -> measurements, curves, taints."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchrunner.errors import OutputNotRecognisedError
from benchrunner.parse.supervisor import parse_status

METRICS = Path(__file__).parent.parent / "benchrunner" / "metrics.toml"
STATUS: dict[str, Any] = {
    "state": "exited",
    "exit_code": 0,
    "signal": None,
    "signal_name": None,
    "wall_s": 10.0,
    "user_s": 8.0,
    "sys_s": 2.0,
    "maxrss_kib": 123456,
    "faults_minor": 77,
    "faults_major": 0,
    "in_blocks": 8,
    "out_blocks": 16,
    "ctx_voluntary": 100,
    "ctx_involuntary": 20,
    "read_bytes": 4096,
    "write_bytes": 8192,
    "rchar": 1,
    "wchar": 2,
    "du_before_kib": 4,
    "du_peak_kib": 100,
    "du_after_kib": 60,
    "leftover_processes": 0,
    "oom_killed": False,
    "steal_s": 0.0,
    "boot_id": "b",
}
COLUMNS = [
    *("t_s", "utime_s", "stime_s", "threads", "rss_kib", "ctx_voluntary", "ctx_involuntary"),
    *("du_kib", "dev_writes", "dev_write_sectors", "dev_io_ms", "swap_in_pages"),
    *("swap_out_pages", "psi_mem_full_us", "cpu_user_ticks", "cpu_nice_ticks"),
    *("cpu_system_ticks", "cpu_idle_ticks", "cpu_iowait_ticks", "cpu_irq_ticks"),
    *("cpu_softirq_ticks", "cpu_steal_ticks"),
]


def sample(t_s: float, **changes: float | str) -> dict[str, float | str]:
    """A quiet machine of two cores: ours uses 0.8 cores of user time, 0.2 of system time."""
    row: dict[str, float | str] = dict.fromkeys(COLUMNS, 0)
    row.update(
        t_s=t_s,
        utime_s=0.8 * t_s,
        stime_s=0.2 * t_s,
        threads=4,
        rss_kib=1000 + t_s,
        ctx_voluntary=10 * t_s,
        ctx_involuntary=2 * t_s,
        du_kib=10 * t_s,
        dev_writes=5 * t_s,
        dev_write_sectors=2048 * t_s,
        dev_io_ms=500 * t_s,
        cpu_user_ticks=80 * t_s,
        cpu_system_ticks=20 * t_s,
        cpu_idle_ticks=100 * t_s,
    )
    return {**row, **changes}


def tsv(rows: list[dict[str, float | str]]) -> list[str]:
    lines = ["\t".join(COLUMNS), *("\t".join(str(row[c]) for c in COLUMNS) for row in rows)]
    return ["\n".join(lines) + "\n"]


def taints(last: dict[str, float | str], **status: object) -> dict[str, str]:
    parsed = parse_status({**STATUS, **status}, tsv([sample(0.0), last]))
    assert all(taint.remedy for taint in parsed.taints)
    return {taint.name: taint.evidence for taint in parsed.taints}


def test_status_becomes_measurements() -> None:
    parsed = parse_status(STATUS)
    found = {m.metric: m.value for m in parsed.measurements}
    assert found["cpu_user_s"] == 8.0
    assert found["rss_max_kib"] == 123456
    assert found["du_kib"] == 60
    assert found["faults_major"] == 0
    assert {m[:3] for m in parsed.measurements} == {(None, 1, None)}
    assert parsed.facts == {"state": "exited", "exit_code": "0", "boot_id": "b"}
    assert found.keys() <= tomllib.loads(METRICS.read_text()).keys()


def test_lost_samples_are_a_fact() -> None:
    facts = parse_status({**STATUS, "supervisor": {"samples_lost": 3}}).facts
    assert facts["samples_lost"] == "3"
    assert "samples_lost" not in parse_status({**STATUS, "supervisor": {"samples_lost": 0}}).facts


def test_a_real_run_folder() -> None:
    case = METRICS.parent.parent / "tests" / "cases" / "supervisor" / "db_bench-fillrandom"
    status = json.loads((case / "status.json").read_text())
    with (case / "samples").open() as samples:
        parsed = parse_status(status, samples)
    found = {m.metric: m.value for m in parsed.measurements}
    assert found["wall_s"] == status["wall_s"]
    assert found["du_kib"] == 195556
    assert found["du_peak_kib"] == max(value for _, value in parsed.series["du_kib"])
    # A compilation ran on the other core, at nice 10.
    assert [taint.name for taint in parsed.taints] == ["other-busy-processes"]
    cpu = parsed.series["cpu_pct"]
    mean = sum(value for _, value in cpu) / len(cpu)
    assert mean == pytest.approx(100 * (found["cpu_user_s"] + found["cpu_sys_s"]) / 4, rel=0.15)


def test_what_is_null_or_absent_is_missing() -> None:
    status = {"state": "exited", "wall_s": 1.0, "user_s": None, "du_after_kib": "x", "sys_s": True}
    assert [m.metric for m in parse_status(status).measurements] == ["wall_s"]


def test_curves() -> None:
    series = parse_status(STATUS, tsv([sample(0.0), sample(1.0), sample(2.0)])).series
    assert series["cpu_pct"] == ((1.0, 100.0), (2.0, 100.0))
    assert series["ctx_per_sec"] == ((1.0, 12.0), (2.0, 12.0))
    assert series["rss_kib"] == ((0.0, 1000.0), (1.0, 1001.0), (2.0, 1002.0))
    assert series["dev_write_mb_per_sec"] == ((1.0, 1.0), (2.0, 1.0))
    assert series["dev_util_pct"] == ((1.0, 50.0), (2.0, 50.0))
    assert "dev_read_iops" not in series


def test_a_counter_that_falls_or_lacks_gives_no_point() -> None:
    rows = [sample(0.0), sample(1.0), sample(2.0, utime_s=0.1), sample(3.0, utime_s="")]
    assert parse_status(STATUS, tsv(rows)).series["cpu_pct"] == ((1.0, 100.0),)


def test_damaged_rows_are_left_out() -> None:
    text = tsv([sample(0.0), sample(1.0)])[0] + "2.0\t1\n" + "\n" + "3.0"
    assert len(parse_status(STATUS, [text]).series["rss_kib"]) == 2


def test_a_quiet_host_gives_no_taint() -> None:
    assert taints(sample(10.0)) == {}


def test_steal() -> None:
    assert taints(sample(10.0, cpu_steal_ticks=50)) == {
        "cpu-steal": "the hypervisor stole 2.4% of the machine's CPU time (limit 1%)"
    }
    assert taints(sample(10.0, cpu_steal_ticks=10)) == {}


def test_steal_without_samples() -> None:
    parsed = parse_status({**STATUS, "steal_s": 0.5})
    assert [taint.evidence for taint in parsed.taints] == [
        "the hypervisor stole 5.0% of one core's time (limit 1%)"
    ]


def test_swap() -> None:
    assert taints(sample(10.0, swap_out_pages=7)) == {"swap": "0 pages were swapped in and 7 out"}


def test_other_processes() -> None:
    assert taints(sample(10.0, cpu_user_ticks=1000)) == {
        "other-busy-processes": (
            "other processes used 0.20 cores of user time during 10 s (limit 0.10)"
        )
    }


def test_servers_beside_a_step_are_ours_and_its_clients_are_a_servers_work() -> None:
    rows = tsv([sample(0.0), sample(10.0, cpu_user_ticks=1000)])
    assert [mark.name for mark in parse_status(STATUS, rows).taints] == ["other-busy-processes"]
    assert parse_status(STATUS, rows, beside_user_s=1.5).taints == ()
    assert parse_status(STATUS, rows, beside_user_s=None).taints == ()


def test_children_that_ended_are_ours() -> None:
    """Samples lose the time of ended children; wait4's total has it."""
    assert taints(sample(10.0, utime_s=1.0)) == {}
    assert "other-busy-processes" in taints(sample(10.0, utime_s=1.0), user_s=None)


def test_too_short_to_tell_others() -> None:
    assert taints(sample(0.5, cpu_user_ticks=1000)) == {}


def test_memory_pressure() -> None:
    assert taints(sample(10.0, psi_mem_full_us=300_000)) == {
        "memory-pressure": "all tasks waited for memory 3.0% of the time (PSI, full)"
    }


def test_out_of_memory() -> None:
    assert taints(sample(10.0), oom_killed=True) == {
        "oom-killed": "the kernel killed a process of the step because memory ran out"
    }


def test_another_document_is_not_recognised() -> None:
    with pytest.raises(OutputNotRecognisedError) as caught:
        parse_status({"jobs": []})
    assert str(caught.value) == (
        "the status is not a supervisor's: it has neither 'state' nor 'wall_s'\n  try: check that "
        "the run folder is complete; a step that still runs has no status.json yet"
    )


@settings(max_examples=100, deadline=None)
@given(
    status=st.dictionaries(
        st.sampled_from(list(STATUS)),
        st.none() | st.floats() | st.integers() | st.text() | st.booleans(),
    ),
    cells=st.lists(st.lists(st.text(max_size=4) | st.floats().map(str), max_size=23), max_size=4),
)
def test_anything_else_raises_nothing(status: dict[str, object], cells: list[list[str]]) -> None:
    rows = "\n".join("\t".join(row) for row in [COLUMNS, *cells]) + "\n"
    parse_status({"state": "exited", **status}, [rows])
