"""How the numbers of one column are written: as stored, as sizes in one unit, or as clock times.

Pure. Only what is shown changes: CSV files and raw pages have the stored values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchrunner.errors import ConfigurationError
from benchrunner.report.view import DASH
from benchrunner.units import format_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchrunner.definitions import Metric

_BYTES = {"bytes": 1.0, "KiB": 1024.0}
_UNITS = ("TiB", "GiB", "MiB", "KiB")
_STEP = 1024.0
_LEAST_SHOWN = 0.1
"""The smallest number of a column is at least this in its unit, so that it keeps two digits."""
_WHOLE_FROM, _ONE_DIGIT_FROM = 100, 10


@dataclass(frozen=True, slots=True)
class NumberForm:
    """How a column writes its numbers."""

    metric: Metric
    unit: str = ""
    """The unit that the column's title must name; empty: the metric's own."""
    factor: float = 1.0
    digits: int | None = None
    clock: bool = False

    def text(self, value: float | None) -> str:
        """One number; a dash when it was not measured."""
        if value is None:
            return DASH
        if self.clock:
            return clock_text(value)
        if self.unit:
            return "0" if value == 0 else f"{value * self.factor:.{self.digits}f}"
        return format_value(value, self.metric.unit, self.metric.digits)

    def title(self, title: str) -> str:
        """A column's title, with the unit where it is not the metric's own."""
        return f"{title} ({self.unit})" if self.unit else title


def number_form(metric: Metric, asked: str, values: Iterable[float], where: str) -> NumberForm:
    """Choose the form of a column from what it asks for and from its numbers.

    Raises:
        ConfigurationError: the form does not fit the metric's unit.
    """
    fitting = {"clock": ("s",), "size": tuple(_BYTES)}.get(asked, (metric.unit,))
    if metric.unit not in fitting:
        raise ConfigurationError(
            f"{where} shows {metric.title!r} as {asked}, but its unit is {metric.unit}.",
            f"{asked} is for numbers in {' or '.join(fitting)}",
        )
    if asked == "clock":
        return NumberForm(metric, clock=True)
    by_itself = asked == "" and metric.unit in _BYTES and metric.digits is None
    if asked == "size" or by_itself:
        return _size_form(metric, values)
    return NumberForm(metric)


def _size_form(metric: Metric, values: Iterable[float]) -> NumberForm:
    """The largest unit in which the column's smallest number is not too small."""
    sizes = sorted(abs(value) * _BYTES[metric.unit] for value in values if value)
    for place, unit in enumerate(_UNITS):
        in_bytes = _STEP ** (len(_UNITS) - place)
        if sizes and sizes[0] >= _LEAST_SHOWN * in_bytes and sizes[-1] >= in_bytes:
            least = sizes[0] / in_bytes
            digits = 0 if least >= _WHOLE_FROM else 1 if least >= _ONE_DIGIT_FROM else 2
            return NumberForm(metric, unit, _BYTES[metric.unit] / in_bytes, digits)
    if metric.unit == "KiB" and not sizes:
        return NumberForm(metric, "KiB", 1.0, 0)
    return NumberForm(metric, "bytes", _BYTES[metric.unit], 0)


def clock_text(seconds: float) -> str:
    """Return a time as clocks show it, with hundredths; hours only when there are some.

    >>> clock_text(564.39), clock_text(5069.5), clock_text(0.004)
    ('09:24.39', '1:24:29.50', '00:00.00')
    """
    hundredths = round(seconds * 100)
    minutes, rest = divmod(hundredths, 6000)
    hours, minutes = divmod(minutes, 60)
    text = f"{minutes:02d}:{rest // 100:02d}.{rest % 100:02d}"
    return f"{hours}:{text}" if hours else text
