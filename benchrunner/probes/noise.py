"""What the supervisor's samples do not show of the noise around a step: throttling, and who it was.

Steal, swap, memory pressure and the CPU time of all others come from the samples (``parse.noise``,
taints ``cpu-steal``, ``swap``, ``memory-pressure``, ``other-busy-processes``) and are not looked at
again. One look before a step and one after it; the look after a step can be the next one's before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchrunner.model import Taint
from benchrunner.probes.preconditions import TICKS_PER_S, CpuShare, cpu_shares

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from benchrunner.transports import Transport

_LIMIT_S = 60.0
MAX_OTHER_PCT = 10.0
"""Of one core over the step's time, for one process: what an idle host's daemons never reach.
The same limit as for all others together in ``parse.noise``."""
MAX_THROTTLED = 0
"""Throttling lowers the clock of the core, or of all of them, for the time of a measurement."""
_KTHREADD = 2
_LISTED = 5

LOOK_SCRIPT = r"""
grep -sH '' "$1"/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count
echo
cat /proc/uptime
cat /proc/[0-9]*/stat 2>/dev/null
exit 0
"""
"""Prints one look. Argument: the folder that stands for /. Can be put into a script that does more,
so that a look costs no round trip of its own."""


@dataclass(frozen=True, slots=True)
class Look:
    """Counters of a host at one moment."""

    throttled: Mapping[str, int]
    """``cpu3/core`` -> how often since boot; empty where the CPU does not count, as in guests."""
    processes: str
    """A line of /proc/uptime and lines of /proc/PID/stat."""


def look(transport: Transport, root: str = "") -> Look:
    """Looks at a host, in one round trip."""
    argv = ["sh", "-c", LOOK_SCRIPT, "sh", root]
    return read_look(transport.run(argv, timeout_s=_LIMIT_S).stdout.decode(errors="replace"))


def read_look(text: str) -> Look:
    """One look from what the script printed."""
    head, _, processes = text.partition("\n\n") if text[:1] != "\n" else ("", "", text[1:])
    pattern = r"/cpu(\d+)/thermal_throttle/(\w+)_throttle_count:(\d+)$"
    counts = re.findall(pattern, head, re.MULTILINE)
    return Look({f"cpu{cpu}/{kind}": int(count) for cpu, kind, count in counts}, processes)


def noise_taints(before: Look, after: Look, ours: Collection[int] = ()) -> tuple[Taint, ...]:
    """Reasons to distrust what ran between two looks. Pure.

    Args:
        before: The look before the step.
        after: The look after it.
        ours: Pids that do not count: supervisor, controller, the server of our connection.
    """
    found = (_throttling(before, after), _busy(before, after, ours))
    return tuple(taint for taint in found if taint is not None)


def noise_facts(before: Look, after: Look, ours: Collection[int] = ()) -> dict[str, Any]:
    """Numbers to store with every trial; plain data. Pure."""
    known = before.throttled.keys() & after.throttled.keys()
    return {
        "window_s": _window_s(before, after),
        "throttled": _throttled_times(before, after) if known else None,
        "busiest": [
            {"name": share.name, "pid": share.pid, "pct": round(share.pct, 2)}
            for share in _others(before, after, ours)[:_LISTED]
        ],
    }


def _throttling(before: Look, after: Look) -> Taint | None:
    times = _throttled_times(before, after)
    if times <= MAX_THROTTLED:
        return None
    rose = [name for name, n in after.throttled.items() if n > before.throttled.get(name, n)]
    evidence = (
        f"the CPU lowered its clock because of heat {times} times ({len(rose)} counters rose, "
        f"{rose[0]} among them)"
    )
    return Taint("thermal-throttling", evidence, "look after the cooling, or add cool-down=60")


def _throttled_times(before: Look, after: Look) -> int:
    """Largest growth of a counter: those of a package are counted again for each of its CPUs."""
    growth = (n - before.throttled.get(name, n) for name, n in after.throttled.items())
    return max((grown for grown in growth if grown > 0), default=0)


def _busy(before: Look, after: Look, ours: Collection[int]) -> Taint | None:
    busy = [share for share in _others(before, after, ours) if share.pct > MAX_OTHER_PCT]
    if not busy:
        return None
    listed = ", ".join(f"{s.name} (pid {s.pid}) {s.pct:.0f} %" for s in busy[:_LISTED])
    more = f" and {len(busy) - _LISTED} more" if len(busy) > _LISTED else ""
    evidence = f"other processes used a core for more than {MAX_OTHER_PCT:g} %: {listed}{more}"
    pids = ",".join(str(share.pid) for share in busy)
    return Taint("other-busy-processes", evidence, f"ps -o pid,pcpu,args -p {pids}")


def _others(before: Look, after: Look, ours: Collection[int]) -> list[CpuShare]:
    """Without the kernel's own threads: they write back our pages, and move our interrupts."""
    text = f"{before.processes.strip()}\n\n{after.processes.strip()}"
    kernel = _kernel_threads(after.processes)
    return [s for s in cpu_shares(text) if s.pid not in ours and s.pid not in kernel]


def _kernel_threads(processes: str) -> set[int]:
    pairs = re.findall(r"^(\d+) \(.*\) \S (\d+) ", processes, re.MULTILINE)
    found = ((int(pid), int(parent)) for pid, parent in pairs)
    return {pid for pid, parent in found if _KTHREADD in (pid, parent)}


def tree(one: Look, roots: Collection[int]) -> set[int]:
    """The processes with these pids and all below them, at a look. Pure."""
    pairs = re.findall(r"^(\d+) \(.*\) \S (\d+) ", one.processes, re.MULTILINE)
    children: dict[int, list[int]] = {}
    for pid, parent in pairs:
        children.setdefault(int(parent), []).append(int(pid))
    found: set[int] = set()
    left = list(roots)
    while left:
        pid = left.pop()
        if pid not in found:
            found.add(pid)
            left += children.get(pid, ())
    return found


def user_s(one: Look, pids: Collection[int]) -> float:
    """User CPU time so far of processes and of their children that have ended, in seconds. Pure."""
    ticks = 0
    for pid, counted in re.findall(r"^(\d+) \(.*\) \S (.*)$", one.processes, re.MULTILINE):
        if int(pid) in pids:
            words = counted.split()
            ticks += int(words[10]) + int(words[12])  # utime and cutime, fields 14 and 16
    return ticks / TICKS_PER_S


def _window_s(before: Look, after: Look) -> float | None:
    looks = [one.processes.split(maxsplit=1) for one in (before, after)]
    if not all(words and re.fullmatch(r"[\d.]+", words[0]) for words in looks):
        return None
    return round(float(looks[1][0]) - float(looks[0][0]), 2)
