"""The supervisor's status.json and samples -> resource measurements, curves and taints.

Pure. Samples are tab-separated with a header; columns are found by name and an empty cell is a
value that could not be read. Times are seconds since the start of the step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchrunner.errors import OutputNotRecognisedError
from benchrunner.model import Measurement, Parsed
from benchrunner.parse.figure import number
from benchrunner.parse.noise import host_taints
from benchrunner.parse.text import Lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PARSER_VERSION = 2

Sample = dict[str, float]

_STATUS_METRICS = {
    "wall_s": "wall_s",
    "user_s": "cpu_user_s",
    "sys_s": "cpu_sys_s",
    "maxrss_kib": "rss_max_kib",
    "faults_minor": "faults_minor",
    "faults_major": "faults_major",
    "in_blocks": "in_blocks",
    "out_blocks": "out_blocks",
    "ctx_voluntary": "ctx_voluntary",
    "ctx_involuntary": "ctx_involuntary",
    "read_bytes": "read_bytes",
    "write_bytes": "write_bytes",
    "rchar": "read_call_bytes",
    "wchar": "write_call_bytes",
    "du_before_kib": "du_before_kib",
    "du_peak_kib": "du_peak_kib",
    "du_after_kib": "du_kib",
    "steal_s": "steal_s",
    "leftover_processes": "leftover_processes",
}
"""Key of status.json -> metric id. A key that is absent or null is not measured."""

_SECTOR_MIB = 512.0 / (1024 * 1024)
"""/proc/diskstats counts sectors of 512 bytes whatever the device's own sector is."""
_LEVELS = {"rss_kib": "rss_kib", "du_kib": "du_kib", "threads": "threads"}
_RATES: dict[str, tuple[tuple[str, ...], float]] = {
    "cpu_pct": (("utime_s", "stime_s"), 100.0),
    "ctx_per_sec": (("ctx_voluntary", "ctx_involuntary"), 1.0),
    "dev_read_mb_per_sec": (("dev_read_sectors",), _SECTOR_MIB),
    "dev_write_mb_per_sec": (("dev_write_sectors",), _SECTOR_MIB),
    "dev_read_iops": (("dev_reads",), 1.0),
    "dev_write_iops": (("dev_writes",), 1.0),
    "dev_flushes_per_sec": (("dev_flushes",), 1.0),
    "dev_util_pct": (("dev_io_ms",), 0.1),
}
"""Curve -> the counters whose growth per second it shows, and a factor."""


def parse_status(
    status: Mapping[str, Any], samples: Iterable[str] = (), beside_user_s: float | None = 0.0
) -> Parsed:
    """What one step's process used and what disturbed it.

    Args:
        status: the parsed status.json.
        samples: the samples file, or pieces of its text.
        beside_user_s: user CPU time of the servers beside it; ``None``: it is such a server, and
            what others use is what it is there for.

    Raises:
        OutputNotRecognisedError: the status has none of a supervisor's keys.
    """
    if not {"state", "wall_s"} & status.keys():
        raise OutputNotRecognisedError(
            "the status is not a supervisor's: it has neither 'state' nor 'wall_s'",
            "check that the run folder is complete; a step that still runs has no status.json yet",
        )
    values = {metric: _number(status.get(key)) for key, metric in _STATUS_METRICS.items()}
    rows = read_samples(samples)
    return Parsed(
        measurements=tuple(
            Measurement(None, 1, None, metric, value)
            for metric, value in values.items()
            if value is not None
        ),
        taints=host_taints(status, rows, beside_user_s),
        series=_series(rows),
        facts=_facts(status),
    )


def _facts(status: Mapping[str, Any]) -> dict[str, str]:
    """How it ended, where, and whether samples were lost (their curves then have gaps)."""
    keys = ("state", "exit_code", "signal_name", "error", "boot_id")
    facts = {key: str(status[key]) for key in keys if status.get(key) is not None}
    supervisor = status.get("supervisor")
    if isinstance(supervisor, dict) and supervisor.get("samples_lost"):
        facts["samples_lost"] = str(supervisor["samples_lost"])
    return facts


def read_samples(text: Iterable[str]) -> list[Sample]:
    """Rows by column name. A row with more or fewer cells than the header is damaged: left out."""
    lines = iter(Lines(text))
    header = next(lines, "").split("\t")
    rows: list[Sample] = []
    for line in lines:
        cells = line.split("\t")
        if len(cells) != len(header):
            continue
        pairs = ((name, number(cell)) for name, cell in zip(header, cells, strict=True))
        row = {name: value for name, value in pairs if value is not None}
        if "t_s" in row:
            rows.append(row)
    return rows


def _series(rows: list[Sample]) -> dict[str, tuple[tuple[float, float], ...]]:
    curves = {name: _levels(rows, column) for name, column in _LEVELS.items()}
    for name, (columns, factor) in _RATES.items():
        curves[name] = _rates([(row["t_s"], _sum(row, columns)) for row in rows], factor)
    return {name: points for name, points in curves.items() if points}


def _levels(rows: list[Sample], column: str) -> tuple[tuple[float, float], ...]:
    return tuple((row["t_s"], row[column]) for row in rows if column in row)


def _rates(
    counter: list[tuple[float, float | None]], factor: float
) -> tuple[tuple[float, float], ...]:
    """Growth per second between neighbouring samples; a counter that falls gives no point.

    The tree's sum of CPU time falls when one of its processes ends.
    """
    points: list[tuple[float, float]] = []
    before: tuple[float, float] | None = None
    for now, value in counter:
        if value is None:
            continue
        if before is not None and now > before[0] and value >= before[1]:
            points.append((now, (value - before[1]) / (now - before[0]) * factor))
        before = now, value
    return tuple(points)


def _sum(row: Sample, columns: tuple[str, ...]) -> float | None:
    values = [row[column] for column in columns if column in row]
    return sum(values) if len(values) == len(columns) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return number(repr(float(value)))
