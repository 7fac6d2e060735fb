"""Printed figures with the error that their rounding left, so that the better of two is known.

Pure values. RocksDB prints the same bytes in several places with different precision ("0.0" GB in
the table, "146.4 MB/s" times "2.51" seconds in the same row); at small scale only one of them says
anything. A figure whose relative error is too large to show is not a measurement.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

MAX_RELATIVE_ERROR = 0.05
"""Above this a ratio's first printed decimal on a page would be an artefact of rounding."""

_NUMBER = re.compile(r"-?\d+(?:\.(?P<decimals>\d+))?")


def number(text: str | None) -> float | None:
    """The finite, non-negative number that the text spells, else ``None`` ("inf", "-nan", "x")."""
    if text is None or not text.isascii() or "_" in text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


@dataclass(frozen=True, slots=True)
class Figure:
    """A value and half a unit of its last printed digit."""

    value: float
    error: float

    @property
    def relative_error(self) -> float:
        """The error as a part of the value; infinite when the value is zero."""
        return self.error / self.value if self.value > 0 else math.inf

    def __mul__(self, other: Figure) -> Figure:
        value = self.value * other.value
        return Figure(value, self.error * other.value + other.error * self.value)

    def __add__(self, other: Figure) -> Figure:
        return Figure(self.value + other.value, self.error + other.error)

    def scaled(self, factor: float) -> Figure:
        """The same figure in another unit."""
        return Figure(self.value * factor, self.error * factor)

    def over(self, other: Figure) -> Figure | None:
        """The quotient; ``None`` when the divisor may be zero within its rounding."""
        if other.value <= other.error:
            return None
        value = self.value / other.value
        return Figure(value, (self.error + value * other.error) / other.value)


def printed(text: str | None) -> Figure | None:
    """The figure that a printed decimal number stands for: ``0.10`` is 0.1 within 0.005."""
    match = _NUMBER.fullmatch(text) if text is not None else None
    value = number(text)
    if match is None or value is None:
        return None
    decimals = len(match["decimals"] or "")
    return Figure(value, 0.5 * 10.0**-decimals if decimals else 0.0)


def best(*candidates: Figure | None) -> Figure | None:
    """The candidate with the smallest error."""
    known = [figure for figure in candidates if figure is not None]
    return min(known, key=lambda figure: figure.error) if known else None


def sharp(figure: Figure | None) -> float | None:
    """The value, when its rounding leaves it worth showing."""
    if figure is None or figure.relative_error > MAX_RELATIVE_ERROR:
        return None
    return figure.value
