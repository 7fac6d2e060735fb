"""What disturbed a step: samples and status in, taints out.

Pure. Every limit is a named constant that says why; every taint states its figures and a remedy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchrunner.model import Taint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Sample = Mapping[str, float]

TICKS_PER_S = 100.0
"""USER_HZ: the unit of /proc/stat, fixed by the kernel's interface at 100 on x86 and Arm."""

MAX_STEAL_PART = 0.01
"""Of the machine's CPU time. Stolen time is lost to latency as well; 1 % is already as large as the
differences between releases that a comparison must show."""

MAX_OTHER_CORES = 0.10
"""Cores' worth of user time of other processes. A tenth of a core is what an idle host's daemons
never reach and a neighbour's build, backup or second benchmark always does. Only user time counts:
kernel threads that write back our own pages have none, so our own I/O cannot trip it."""

MAX_MEMORY_STALL_PART = 0.01
"""Of wall time in which every runnable task waited for memory (PSI, full)."""

MIN_SPAN_S = 1.0
"""Below this the 10 ms ticks of /proc/stat are too coarse to tell a tenth of a core."""

_CPU_TICKS = tuple(
    f"cpu_{state}_ticks"
    for state in ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
)


def host_taints(
    status: Mapping[str, Any], rows: Sequence[Sample], beside_user_s: float | None = 0.0
) -> tuple[Taint, ...]:
    """Every reason that the host gives to distrust this step.

    Args:
        status: of the step.
        rows: its samples.
        beside_user_s: user CPU time of its servers; ``None``: whoever else is busy is no noise.
    """
    found = (
        _steal(status, rows),
        _swap(rows),
        None if beside_user_s is None else _others(status, rows, beside_user_s),
        _memory(rows),
        _out_of_memory(status),
    )
    return tuple(taint for taint in found if taint is not None)


def growth(rows: Sequence[Sample], column: str) -> float | None:
    """Growth of a counter from the first sample that has it to the last; ``None`` if unknown."""
    values = [row[column] for row in rows if column in row]
    if len(values) < 2 or values[-1] < values[0]:
        return None
    return values[-1] - values[0]


def _steal(status: Mapping[str, Any], rows: Sequence[Sample]) -> Taint | None:
    ticks = [growth(rows, column) for column in _CPU_TICKS]
    stolen = ticks[-1]
    total = sum(tick for tick in ticks if tick is not None)
    wall_s, steal_s = status.get("wall_s"), status.get("steal_s")
    if stolen is not None and total > 0:
        part, of_what = stolen / total, "of the machine's CPU time"
    elif isinstance(wall_s, int | float) and isinstance(steal_s, int | float) and wall_s > 0:
        part, of_what = steal_s / wall_s, "of one core's time"
    else:
        return None
    if part <= MAX_STEAL_PART:
        return None
    evidence = f"the hypervisor stole {part:.1%} {of_what} (limit {MAX_STEAL_PART:.0%})"
    return Taint("cpu-steal", evidence, "use a dedicated host or an instance without CPU credits")


def _swap(rows: Sequence[Sample]) -> Taint | None:
    moved_in, moved_out = growth(rows, "swap_in_pages"), growth(rows, "swap_out_pages")
    if not moved_in and not moved_out:
        return None
    evidence = f"{moved_in or 0:.0f} pages were swapped in and {moved_out or 0:.0f} out"
    return Taint("swap", evidence, "turn swap off (swapoff -a) or make the caches smaller")


def _others(
    status: Mapping[str, Any], rows: Sequence[Sample], beside_user_s: float
) -> Taint | None:
    span_s = growth(rows, "t_s")
    user, nice = growth(rows, "cpu_user_ticks"), growth(rows, "cpu_nice_ticks")
    if span_s is None or span_s < MIN_SPAN_S or user is None:
        return None
    busy_s = (user + (nice or 0.0)) / TICKS_PER_S
    others = (busy_s - _own_user_s(status, rows, span_s) - beside_user_s) / span_s
    if others <= MAX_OTHER_CORES:
        return None
    evidence = (
        f"other processes used {others:.2f} cores of user time during {span_s:.0f} s "
        f"(limit {MAX_OTHER_CORES:.2f})"
    )
    return Taint("other-busy-processes", evidence, "stop what else runs on the host, then repeat")


def _own_user_s(status: Mapping[str, Any], rows: Sequence[Sample], span_s: float) -> float:
    """Ours in the sampled span. Samples miss children that have ended, wait4's total does not."""
    sampled = growth(rows, "utime_s") or 0.0
    total, wall_s = status.get("user_s"), status.get("wall_s")
    if not isinstance(total, int | float) or not isinstance(wall_s, int | float) or wall_s <= 0:
        return sampled
    return max(sampled, total * min(1.0, span_s / wall_s))


def _memory(rows: Sequence[Sample]) -> Taint | None:
    span_s, stalled_us = growth(rows, "t_s"), growth(rows, "psi_mem_full_us")
    if not span_s or stalled_us is None:
        return None
    part = stalled_us / 1e6 / span_s
    if part <= MAX_MEMORY_STALL_PART:
        return None
    evidence = f"all tasks waited for memory {part:.1%} of the time (PSI, full)"
    return Taint("memory-pressure", evidence, "make the caches smaller or use a larger host")


def _out_of_memory(status: Mapping[str, Any]) -> Taint | None:
    if not status.get("oom_killed"):
        return None
    evidence = "the kernel killed a process of the step because memory ran out"
    return Taint("oom-killed", evidence, "make the caches smaller or use a larger host")
