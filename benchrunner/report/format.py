"""Text of single values: numbers by metric, versions in order, names that become paths. Pure."""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING, Any

from benchrunner.errors import ConfigurationError
from benchrunner.report.view import DASH
from benchrunner.units import format_size, format_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchrunner.definitions import Metric

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@=-]{0,127}")
_END_RANK, _TEXT_RANK, _NUMBER_RANK, _NAMED_RANK = 1, 0, 2, 3


def metric_text(value: float | None, metric: Metric) -> str:
    """Return a number as the page prints it; a dash when it was not measured."""
    return DASH if value is None else format_value(value, metric.unit, metric.digits)


def version_key(version: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key: numbers compare as numbers, ``7.2-rc1`` < ``7.2``, names come last.

    >>> sorted(["6.10.4", "6.9", "main", "7.0"], key=version_key)
    ['6.9', '6.10.4', '7.0', 'main']
    """
    parts = [
        (_NUMBER_RANK, int(part), "") if part.isdigit() else (_TEXT_RANK, 0, part)
        for part in re.findall(r"[0-9]+|[A-Za-z]+", version)
    ]
    if parts and parts[0][0] == _TEXT_RANK:
        parts[0] = (_NAMED_RANK, 0, parts[0][2])
    return (*parts, (_END_RANK, 0, ""))


def clean(text: str) -> str:
    """Return text without control characters; carriage returns become line ends."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", lines)


def safe_name(name: str, what: str) -> str:
    """Return ``name`` if it can be a file name of the page, else raise."""
    if not _SAFE_NAME.fullmatch(name):
        raise ConfigurationError(
            f"The {what} {name!r} cannot be used as a file name.",
            "use letters, digits, '.', '_', '+', '=', '@' and '-'",
        )
    return name


def median(values: Sequence[float]) -> float | None:
    """Return the median, ``None`` of nothing.

    >>> median([3.0, 1.0, 2.0]), median([1.0, 2.0]), median([])
    (2.0, 1.5, None)
    """
    if not values:
        return None
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def fill(text: str, params: Mapping[str, Any], measured: Mapping[str, tuple[float, ...]]) -> str:
    """Replace ``{PARAM}``, ``{PARAM:size}`` and ``{metric:format}`` in a workload's text.

    A metric that differs between cells becomes "smallest to largest"; one that nobody measured, a
    dash. ``measured`` has every known metric id as a key.
    """
    pieces: list[str] = []
    try:
        for literal, name, spec, _ in string.Formatter().parse(text):
            pieces.append(literal)
            if name is not None:
                pieces.append(_filled(name, spec or "", params, measured))
    except ValueError as error:
        raise ConfigurationError(
            f"The text {text!r} of the workload has a bad placeholder: {error}.",
            "write {NAME} or {NAME:.1f}, and {{ for a brace",
        ) from error
    return "".join(pieces)


def param_text(value: Any, spec: str = "") -> str:
    """Return a parameter as texts show it: ``size`` writes bytes in their unit.

    >>> param_text(True), param_text(1 << 28, "size"), param_text(1000, ",")
    ('true', '256MiB', '1,000')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if spec == "size":
        return format_size(value) if isinstance(value, int) else str(value)
    return format(value, spec)


def _filled(
    name: str, spec: str, params: Mapping[str, Any], measured: Mapping[str, tuple[float, ...]]
) -> str:
    if name in params:
        return param_text(params[name], spec)
    if name not in measured:
        raise ValueError(f"{name!r} is neither a parameter nor a metric")
    values = measured[name]
    if not values:
        return DASH
    low, high = format(min(values), spec), format(max(values), spec)
    return low if low == high else f"{low} to {high}"
