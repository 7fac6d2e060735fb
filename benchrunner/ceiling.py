"""Did a step measure the engine, or the device? Its curves and the host's ceilings in, a taint out.

Pure. A ceiling is what fio reached on the same file system; see ``workloads/fio-randread.toml``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchrunner.model import Measurement, Taint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchrunner.definitions import Ceiling

NEAR = 0.95
"""A rate of at least this share of the ceiling means that the device was the limit: the published
page's Direct IO reads stood within 0.01 % of each other for every version, at the fio ceiling."""

CURVES = {
    "device_read_iops": "dev_read_iops",
    "device_write_iops": "dev_write_iops",
    "device_read_mb_per_sec": "dev_read_mb_per_sec",
    "device_write_mb_per_sec": "dev_write_mb_per_sec",
}
"""Metric of a step -> the supervisor's curve that it is the mean of."""

Points = tuple[tuple[float, float], ...]


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


def saturation(
    ceiling: Ceiling, measurements: Sequence[Measurement], limits: Mapping[str, float]
) -> tuple[Taint, ...]:
    """A taint for every rate that came within 5 % of what the device can do.

    Args:
        ceiling: the workload's table of our metric -> the ceiling's metric.
        measurements: of the step.
        limits: the host's ceilings, by metric.
    """
    taints = []
    for metric, limit_metric in ceiling.taints.items():
        limit = limits.get(limit_metric)
        for found in measurements:
            if found.metric == metric and limit and found.value >= NEAR * limit:
                taints.append(_taint(metric, found.value, limit))
    return tuple(taints)


def _taint(metric: str, value: float, limit: float) -> Taint:
    kind = "read" if "read" in metric else "write"
    what = f"MB of {kind}s" if metric.endswith("mb_per_sec") else f"{kind}s"
    return Taint(
        "device-saturated",
        f"the device served {value:,.0f} {what} a second, {value / limit:.0%} of the {limit:,.0f} "
        "that fio reached: the step measured the device, not the engine",
        "give the engine more cache or fewer threads, or compare versions by CPU per operation",
    )
