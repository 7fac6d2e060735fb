"""db_bench's interval lines: one line per thread and interval in, operations/s over time out.

Each line says how many operations one thread did in the seconds up to now. They are spread over
time bins of one interval's width, so threads that report at slightly different moments add up.
"""

from __future__ import annotations

import re

from benchrunner.parse.figure import number

_LINE = re.compile(
    r"\.\.\. thread (?P<thread>\d+): \((?P<done>\d+),\d+\) ops and "
    r"\([\d.]+,[\d.]+\) ops/second in \((?P<span>[\d.]+),(?P<at>[\d.]+)\) seconds"
)
MIN_BIN_S = 1.0
"""With --stats_interval in operations, lines come many times a second; a bin is never narrower."""
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
        done, span, at = number(match["done"]), number(match["span"]), number(match["at"])
        if done is None or not span or at is None or span > at + 1.0:
            return False
        thread = match["thread"]
        if not self._phases or self._phases[-1].restarted(thread, at):
            self._phases.append(_Curve(max(MIN_BIN_S, float(round(span)))))
        self._phases[-1].add(thread, done, span, at)
        return True

    @property
    def phase_count(self) -> int:
        """How many phases have printed interval lines so far."""
        return len(self._phases)

    def series(self) -> dict[str, tuple[tuple[float, float], ...]]:
        """``ops_per_sec`` of the first phase with interval lines, ``ops_per_sec.2`` of the next."""
        curves = [curve.points() for curve in self._phases]
        return {
            "ops_per_sec" if index == 0 else f"ops_per_sec.{index + 1}": points
            for index, points in enumerate(curves)
            if points
        }


class _Curve:
    """One phase: operations and covered thread-seconds per time bin."""

    def __init__(self, width_s: float) -> None:
        self._width_s = width_s
        self._last: dict[str, float] = {}
        self._done: dict[int, float] = {}
        self._covered_s: dict[int, float] = {}

    def restarted(self, thread: str, at: float) -> bool:
        """A thread's clock that goes back belongs to the next phase."""
        return at < self._last.get(thread, 0.0)

    def add(self, thread: str, done: float, span: float, at: float) -> None:
        self._last[thread] = at
        start = max(0.0, at - span)
        first, last = int(start / self._width_s), int(at / self._width_s)
        if last > MAX_BINS:
            return
        for index in range(first, last + 1):
            low = max(start, index * self._width_s)
            high = min(at, (index + 1) * self._width_s)
            if high > low:
                part = (high - low) / span
                self._done[index] = self._done.get(index, 0.0) + done * part
                self._covered_s[index] = self._covered_s.get(index, 0.0) + high - low

    def points(self) -> tuple[tuple[float, float], ...]:
        """(end of the bin, operations/s of all threads), for bins at least half covered."""
        threads = len(self._last)
        enough = 0.5 * self._width_s * threads
        return tuple(
            ((index + 1) * self._width_s, self._done[index] / covered * threads)
            for index, covered in sorted(self._covered_s.items())
            if covered >= enough
        )
