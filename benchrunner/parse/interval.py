"""db_bench's interval lines: one line per thread and interval in, operations/s over time out.

Each line says how many operations one thread did in the seconds up to now. They are spread over
time bins of one interval's width, so threads that report at slightly different moments add up.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_LINE = re.compile(
    r"\.\.\. thread ([0-9]{1,9}+): \(([0-9]{1,18}+),[0-9]++\) ops and \([0-9.]++,[0-9.]++\) "
    r"ops/second in \(([0-9]{1,12}+\.[0-9]{1,18}+),([0-9]{1,12}+\.[0-9]{1,18}+)\) seconds"
)
"""Thread, operations, span, time. A log can have millions of these lines: what matches is a finite
number without a further look, and groups are taken by position."""
MIN_BIN_S = 1.0
"""With --stats_interval in operations, lines come many times a second; a bin is never narrower."""
WRITER = "0"
"""Thread 0 of a ``...whilewriting`` benchmark is its rate-limited writer (db_bench_tool.cc,
ReadWhileWriting): the result line leaves it out, so the curve does."""
MAX_BINS = 100_000
"""A day of one-second bins. A time beyond them is no time of a benchmark but a damaged line."""


class ThroughputSeries:
    """Sums interval lines of all threads to curves, one per phase."""

    def __init__(self) -> None:
        self._phases: list[_Curve] = []

    def add(self, line: str) -> bool:
        """Take one interval line; whether it was one."""
        match = _LINE.search(line)
        if match is None:
            return False
        thread, operations, duration, time = match.groups()
        done, span, at = float(operations), float(duration), float(time)
        if not span or span > at + 1.0:
            return False
        if not self._phases or not self._phases[-1].add(thread, done, span, at):
            self._phases.append(_Curve(max(MIN_BIN_S, float(round(span)))))
            self._phases[-1].add(thread, done, span, at)
        return True

    @property
    def phase_count(self) -> int:
        """How many phases have printed interval lines so far."""
        return len(self._phases)

    def series(self, phases: Sequence[str] = ()) -> dict[str, tuple[tuple[float, float], ...]]:
        """``ops_per_sec`` of the first phase with interval lines, ``ops_per_sec.2`` of the next.

        ``phases`` names the benchmarks that print such lines, in order; their writers are left out.
        """
        with_writer = (
            ["while" in name for name in phases] if len(phases) == len(self._phases) else []
        )
        with_writer += [False] * (len(self._phases) - len(with_writer))
        curves = [
            curve.points(without=WRITER if writer else None)
            for curve, writer in zip(self._phases, with_writer, strict=True)
        ]
        return {
            "ops_per_sec" if index == 0 else f"ops_per_sec.{index + 1}": points
            for index, points in enumerate(curves)
            if points
        }


class _Bins:
    """Operations and covered seconds of one thread, or of several, by time bin."""

    def __init__(self) -> None:
        self.done: defaultdict[int, float] = defaultdict(float)
        self.covered_s: defaultdict[int, float] = defaultdict(float)


class _Curve:
    """One phase: what its first thread did, and what all others did, per time bin."""

    def __init__(self, width_s: float) -> None:
        self._width_s = width_s
        self._last: dict[str, float] = {}
        self._first, self._others = _Bins(), _Bins()

    def add(self, thread: str, done: float, span: float, at: float) -> bool:
        """Take a report; refused when its clock goes back: it belongs to the next phase."""
        if at < self._last.get(thread, 0.0):
            return False
        self._last[thread] = at
        width = self._width_s
        start = at - span if at > span else 0.0
        first, last = int(start / width), int(at / width)
        if last > MAX_BINS:
            return True
        bins = self._first if thread == WRITER else self._others
        done_in, covered_in = bins.done, bins.covered_s
        low, edge = start, first * width
        for index in range(first, last + 1):
            edge += width
            high = at if at < edge else edge
            if high > low:
                done_in[index] += done * (high - low) / span
                covered_in[index] += high - low
            low = edge
        return True

    def points(self, *, without: str | None = None) -> tuple[tuple[float, float], ...]:
        """(end of the bin, operations/s of all threads), for bins at least half covered."""
        shown = [self._others] if without == WRITER and self._others.done else [
            self._first, self._others
        ]  # fmt: skip
        threads = len(self._last) - (len(shown) == 1 and WRITER in self._last)
        enough = 0.5 * self._width_s * threads
        points = []
        for index in sorted({index for bins in shown for index in bins.covered_s}):
            covered = sum(bins.covered_s.get(index, 0.0) for bins in shown)
            done = sum(bins.done.get(index, 0.0) for bins in shown)
            if covered >= enough:
                points.append(((index + 1) * self._width_s, done / covered * threads))
        return tuple(points)
