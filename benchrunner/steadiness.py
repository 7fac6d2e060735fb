"""Can a number be had again? Repetitions of a benchmark in, a taint out. Pure.

What several trials say beside each other is the page's to judge, by the same limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchrunner.model import Taint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchrunner.definitions import Steady, Workload
    from benchrunner.model import Measurement


def steady_at(workload: Workload, scale: str) -> Steady | None:
    """What a workload's numbers are held to at a scale."""
    wanted = workload.steady
    if wanted is None or (wanted.scales and scale not in wanted.scales):
        return None
    return wanted


def unsteady(
    workload: Workload, scale: str, measurements: Sequence[Measurement]
) -> tuple[Taint, ...]:
    """The mark of a step whose benchmarks spread too widely over their repetitions."""
    wanted = steady_at(workload, scale)
    spreads = {m.phase: m.value / 2.0 for m in measurements if m.metric == "spread_pct"}
    wide = {name: value for name, value in spreads.items() if wanted and value > wanted.within_pct}
    if wanted is None or not wide:
        return ()
    worst = max(wide, key=lambda name: wide[name])
    return (
        Taint(
            "unsteady",
            f"{len(wide)} of {len(spreads)} benchmarks spread by more than "
            f"± {wanted.within_pct:g} % over their repetitions, {worst} by ± {wide[worst]:.1f} %",
            wanted.remedy,
        ),
    )
