"""db_bench's latency histograms: lines in, percentiles per operation type out.

A small state machine that only looks at lines after ``Microseconds per <operation>:``, so that the
file-read histograms of a ``stats`` dump, which look alike, are never taken for them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from benchrunner.parse.figure import number

_TITLE = re.compile(r"Microseconds per (?P<operation>[a-z]*):$")
_COUNT = re.compile(r"Count: (?P<count>\S+) Average: (?P<mean>\S+)  StdDev: (?P<stddev>\S+)$")
_RANGE = re.compile(r"Min: (?P<min>\S+)  Median: \S+  Max: (?P<max>\S+)$")
_PERCENTILES = re.compile(
    r"Percentiles: P50: (\S+) P75: (\S+) P99: (\S+) P99\.9: (\S+) P99\.99: (\S+)$"
)
_PERCENTILE_METRICS = ("p50_us", "p75_us", "p99_us", "p99_9_us", "p99_99_us")
_PRINCIPAL = (
    (re.compile(r"seek|newiterator"), "seek"),
    (re.compile(r"multiscan"), "multiscan"),
    (re.compile(r"read|multiread|get|mixgraph|randomwithverify"), "read"),
    (re.compile(r"fill|overwrite|randomreplacekeys|timeseries"), "write"),
    (re.compile(r"delete"), "delete"),
    (re.compile(r"update|xorupdate|append"), "update"),
    (re.compile(r"merge"), "merge"),
    (re.compile(r"compress"), "compress"),
    # db_bench has no name for this type, so it prints "Microseconds per :".
    (re.compile(r"uncompress"), ""),
    (re.compile(r"crc"), "crc"),
    (re.compile(r"xxh"), "hash"),
)
"""Benchmark name (from its start) -> the operation type whose latency the benchmark is about.

The answer may not depend on which histograms follow: it must be the same for a log that is cut
between two of them.
"""


@dataclass(slots=True)
class Histogram:
    """One operation type's latency: metric id -> value."""

    operation: str
    values: dict[str, float] = field(default_factory=dict)


class HistogramReader:
    """Collects the histograms that follow one result line."""

    def __init__(self) -> None:
        self.histograms: list[Histogram] = []
        self._open: Histogram | None = None

    def title(self, line: str) -> bool:
        """Open a histogram at ``Microseconds per read:``; whether the line was such a title."""
        match = _TITLE.match(line)
        if match:
            self._open = Histogram(match["operation"])
            self.histograms.append(self._open)
        return bool(match)

    def close(self) -> None:
        """End of the histograms: a new phase or a ``stats`` dump begins."""
        self._open = None

    def count(self, line: str) -> None:
        """``Count: 20000 Average: 5.6419  StdDev: 100.32``."""
        match = _COUNT.match(line)
        if match and self._open is not None:
            self._take("latency_count", match["count"])
            self._take("mean_us", match["mean"])
            self._take("stddev_us", match["stddev"])

    def range(self, line: str) -> None:
        """``Min: 0  Median: 3.3643  Max: 8120``."""
        match = _RANGE.match(line)
        if match and self._open is not None:
            self._take("min_us", match["min"])
            self._take("max_us", match["max"])

    def percentiles(self, line: str) -> None:
        """``Percentiles: P50: 3.36 ... P99.99: 4212.50``, the last line before the buckets."""
        match = _PERCENTILES.match(line)
        if match and self._open is not None:
            for metric, text in zip(_PERCENTILE_METRICS, match.groups(), strict=True):
                self._take(metric, text)
            self._open = None

    def _take(self, metric: str, text: str) -> None:
        value = number(text)
        if value is not None and self._open is not None:
            self._open.values[metric] = value


def principal_operation(phase: str) -> str:
    """The operation type a benchmark is about, by its name; ``op`` is db_bench's own "other"."""
    for pattern, operation in _PRINCIPAL:
        if pattern.match(phase):
            return operation
    return "op"


def by_role(phase: str, histograms: list[Histogram]) -> list[tuple[str | None, Histogram]]:
    """Each histogram under its role: ``None`` for the principal operation, else the type.

    When the principal operation is not the only one, it is listed under its type as well.
    """
    principal = principal_operation(phase)
    pairs: list[tuple[str | None, Histogram]] = []
    for histogram in histograms:
        if histogram.operation == principal:
            pairs.append((None, histogram))
        if histogram.operation != principal or len(histograms) > 1:
            pairs.append((histogram.operation, histogram))
    return pairs
