"""Did a step measure the engine, or the host? Its rates and the host's ceilings in, a taint out.

Pure. A ceiling is what fio reached on the same file system, or hostbench in memory; see the
``gives`` of ``workloads/fio-randread.toml`` and ``workloads/host-numbers.toml``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import TYPE_CHECKING

from benchrunner.model import Measurement, Taint
from benchrunner.units import about_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchrunner.definitions import Ceiling, Gift

    Key = tuple[str | None, int, str | None, str]
    """Phase, run, role and metric of a measurement."""

NEAR = 0.95
"""A rate of at least this share of the ceiling means that the host was the limit: the published
page's Direct IO reads stood within 0.01 % of each other for every version, at the fio ceiling."""

CURVES = {
    "device_read_iops": "dev_read_iops",
    "device_write_iops": "dev_write_iops",
    "device_read_mb_per_sec": "dev_read_mb_per_sec",
    "device_write_mb_per_sec": "dev_write_mb_per_sec",
    "device_flushes_per_sec": "dev_flushes_per_sec",
}
"""Metric of a step -> the supervisor's curve that it is the mean of."""

_MIB = 1024.0 * 1024.0
_BANDWIDTH_OF = {
    "device_read_iops": "device_read_mb_per_sec",
    "device_write_iops": "device_write_mb_per_sec",
    "read_iops": "read_mb_per_sec",
    "write_iops": "write_mb_per_sec",
}
"""Requests/s -> the MB/s beside it; the quotient is the mean size of a request."""

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Limit:
    """What a host can do, by one metric."""

    metric: str
    value: float
    block_bytes: int | None = None
    """With requests of this size; ``None``: whatever their size."""


def device_rates(series: Mapping[str, Points]) -> tuple[Measurement, ...]:
    """Mean device rates over a step, from its curves (value i holds from point i-1 to point i)."""
    found: list[Measurement] = []
    for metric, curve in CURVES.items():
        mean = _mean(series.get(curve, ()))
        if mean is not None:
            found.append(Measurement(None, 1, None, metric, mean))
    return tuple(found)


def _mean(points: Points) -> float | None:
    total, before = 0.0, 0.0
    for at_s, value in points:
        total += value * (at_s - before)
        before = at_s
    return total / before if before > 0 else None


# ---------------------------------------------------------------- what a step gives


def limits_given(gift: Gift, measurements: Mapping[Key, float]) -> tuple[Limit, ...]:
    """The ceilings in one step's measurements: of each size of a block, or the best of all."""
    found = [
        Limit(gift.metric, value, _block_bytes(key, measurements))
        for key, value in measurements.items()
        if key[3] == gift.metric and fnmatchcase(key[0] or "", gift.phases)
    ]
    if gift.block == "each":
        return best_of(limit for limit in found if limit.block_bytes is not None)
    if gift.block == "largest":
        largest = max((limit.block_bytes or 0 for limit in found), default=0)
        found = [limit for limit in found if limit.block_bytes == largest]
    return best_of(Limit(limit.metric, limit.value) for limit in found)


def best_of(limits: Iterable[Limit]) -> tuple[Limit, ...]:
    """The greatest of each metric and size."""
    best: dict[tuple[str, int | None], Limit] = {}
    for limit in limits:
        known = best.setdefault((limit.metric, limit.block_bytes), limit)
        if limit.value > known.value:
            best[limit.metric, limit.block_bytes] = limit
    return tuple(best.values())


def _block_bytes(key: Key, measurements: Mapping[Key, float]) -> int | None:
    """The size of a block: as measured, else of a mean request."""
    phase, run, role, metric = key
    block = measurements.get((phase, run, role, "block_bytes"))
    if block is None and metric in _BANDWIDTH_OF:
        rate = measurements.get((phase, run, role, _BANDWIDTH_OF[metric]))
        block = _MIB * rate / measurements[key] if rate and measurements[key] else None
    return _rounded(block) if block else None


def _rounded(size: float) -> int:
    """A size to three bits: what fio rounds in its MB/s is no other size.

    >>> _rounded(4095.6), _rounded(262150.0)
    (4096, 262144)
    """
    step: int = 1 << max(0, round(size).bit_length() - 3)
    return round(size / step) * step


# ---------------------------------------------------------------- what a step came near to


def saturation(
    ceiling: Ceiling, measurements: Sequence[Measurement], limits: Sequence[Limit]
) -> tuple[Taint, ...]:
    """A taint for every rate that came within 5 % of what the host can do.

    Args:
        ceiling: the workload's table of our metric -> the ceiling's metric.
        measurements: of the step.
        limits: the host's ceilings.
    """
    values: dict[Key, float] = {one[:4]: one.value for one in measurements}
    taints = []
    for metric, limit_metric in ceiling.taints.items():
        for found in measurements:
            if found.metric != metric:
                continue
            block = _mean_request(found, values)
            limit = limit_at([one for one in limits if one.metric == limit_metric], block)
            if limit and found.value >= NEAR * limit:
                taints.append(_taint(found, limit, block))
    return tuple(taints)


def _mean_request(found: Measurement, values: Mapping[Key, float]) -> float | None:
    """Mean size of the requests that a rate counts, in bytes."""
    phase, run, role, metric, rate = found
    moved = values.get((phase, run, role, _BANDWIDTH_OF.get(metric, "")))
    return _MIB * moved / rate if moved and rate else None


def limit_at(limits: Sequence[Limit], block: float | None) -> float | None:
    """The ceiling for requests of a size, in bytes; ``None`` where nobody has measured it.

    Between two sizes that were measured a request takes a time on the straight line between theirs;
    larger ones are bound by the bytes of the largest, smaller ones by the number of the smallest.
    """
    points = sorted((one.block_bytes, one.value) for one in limits if one.block_bytes is not None)
    whole = max((one.value for one in limits if one.block_bytes is None), default=None)
    if not points:
        return whole
    if block is None or block <= points[0][0]:
        return points[0][1]
    for (low, low_rate), (high, high_rate) in pairwise(points):
        if block <= high:
            share = (block - low) / (high - low)
            return 1.0 / ((1.0 - share) / low_rate + share / high_rate)
    return points[-1][1] * points[-1][0] / block


_WORDS = {
    "device_read_mb_per_sec": "the device served {value} MB of reads a second",
    "device_write_mb_per_sec": "the device served {value} MB of writes a second",
    "device_read_iops": "the device served {value} reads{size} a second",
    "device_write_iops": "the device served {value} writes{size} a second",
    "device_flushes_per_sec": "the device was flushed {value} times a second",
    "mb_per_sec": "keys and values of {value} MB a second were moved",
}
_BY = {"device_flushes_per_sec": "fio's fsyncs", "mb_per_sec": "reading memory"}
_REMEDY = "give the engine more cache or fewer threads, or compare versions by CPU per operation"


def _taint(found: Measurement, limit: float, block: float | None) -> Taint:
    words = _WORDS.get(found.metric, f"{found.metric} was {{value}}")
    size = f" of {about_size(round(block))}" if block else ""
    return Taint(
        "device-saturated",
        f"{words.format(value=f'{found.value:,.0f}', size=size)}, {found.value / limit:.0%} of the "
        f"{limit:,.0f} that {_BY.get(found.metric, 'fio')} reached: the step measured the "
        f"{'memory' if found.metric == 'mb_per_sec' else 'device'}, not the engine",
        _REMEDY,
    )
