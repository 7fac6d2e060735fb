"""Interleaved pairs and what may be said of them: A B, B A, A B ..., medians, their intervals.

Pure apart from calling what is measured. Interleaving makes a machine whose speed drifts hit both
sides alike; order statistics make no assumption about how the figures are distributed.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A median and the interval that holds the true one; of few values only their range."""

    median: float
    low: float
    high: float
    count: int
    confidence: float | None
    """Probability that the interval holds the true median; ``None`` when it is a mere range."""

    def scaled(self, factor: float) -> Estimate:
        """The same in another unit; ``factor`` is positive."""
        median, low, high = self.median * factor, self.low * factor, self.high * factor
        return Estimate(median, low, high, self.count, self.confidence)


@dataclass(frozen=True)
class Pairs:
    """Figures of both sides, pair by pair, in one unit."""

    ours: tuple[float, ...]
    bare: tuple[float, ...]

    @property
    def ratio(self) -> Estimate:
        """Ours over bare, pair by pair."""
        return estimate([a / b for a, b in zip(self.ours, self.bare, strict=True)])

    @property
    def difference(self) -> Estimate:
        """Ours minus bare, pair by pair."""
        return estimate([a - b for a, b in zip(self.ours, self.bare, strict=True)])


def interleave(
    ours: Callable[[], float], bare: Callable[[], float], count: int, *, warm_up: bool = True
) -> Pairs:
    """Runs ``count`` pairs in alternating order, after both sides once to warm up."""
    if warm_up:
        ours(), bare()
    a: list[float] = []
    b: list[float] = []
    for index in range(count):
        sides = ((ours, a), (bare, b))
        for measure, into in sides if index % 2 == 0 else reversed(sides):
            into.append(measure())
    return Pairs(tuple(a), tuple(b))


def estimate(values: Sequence[float]) -> Estimate:
    """Median with its distribution-free interval of at least 95 %.

    The interval lies between two of the values, equally far from the ends of their order. How often
    it misses is the binomial's tail, whatever the distribution: ``2 * P(B(n, 1/2) <= rank)``. Below
    six values no interval reaches 95 %: then it is their range.
    """
    ordered = sorted(values)
    count = len(ordered)
    rank = _rank(count)
    index = max(rank, 0)
    confidence = None if rank < 0 else 1 - 2 * _tail(count, rank)
    return Estimate(
        statistics.median(ordered), ordered[index], ordered[count - 1 - index], count, confidence
    )


def _rank(count: int) -> int:
    """The largest index whose interval is still sure enough; -1 when none is."""
    rank = -1
    while 2 * _tail(count, rank + 1) <= 1 - CONFIDENCE:
        rank += 1
    return rank


def _tail(count: int, rank: int) -> float:
    """P(B(count, 1/2) <= rank)."""
    chosen = sum(math.comb(count, k) for k in range(rank + 1))
    return chosen / float(2**count)
