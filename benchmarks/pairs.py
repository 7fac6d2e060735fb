"""Interleaved pairs: A B, B A, A B ... so that a machine whose speed drifts hits both sides alike."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True)
class Pairs:
    """Figures of both sides, pair by pair, in one unit."""

    ours: tuple[float, ...]
    bare: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        """Ours over bare, pair by pair, smallest first."""
        return sorted(a / b for a, b in zip(self.ours, self.bare, strict=True))

    @property
    def differences(self) -> list[float]:
        """Ours minus bare, pair by pair, smallest first."""
        return sorted(a - b for a, b in zip(self.ours, self.bare, strict=True))


def interleave(ours: Callable[[], float], bare: Callable[[], float], count: int) -> Pairs:
    """Runs both sides once to warm up, then ``count`` pairs in alternating order."""
    ours(), bare()
    a: list[float] = []
    b: list[float] = []
    for index in range(count):
        sides = ((ours, a), (bare, b))
        for measure, into in sides if index % 2 == 0 else reversed(sides):
            into.append(measure())
    return Pairs(tuple(a), tuple(b))


def median_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Median with its distribution-free 95 % interval (order statistics of the binomial).

    Returns the extremes as interval when there are fewer than six values.
    """
    ordered = sorted(values)
    n = len(ordered)
    rank = max(0, int((n - 1.96 * n**0.5) / 2)) if n >= 6 else 0
    return statistics.median(ordered), ordered[rank], ordered[n - 1 - rank]


def row(name: str, text: str, target: str) -> None:
    """One line of the result."""
    print(f"{name:<44} {text:<62} target {target}", flush=True)
