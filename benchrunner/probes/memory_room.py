"""How much memory a host can give to a process: all, or less where a control group limits it."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchrunner.transports import Transport

MEMINFO = "/proc/meminfo"
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Limits of the topmost group that is seen, in a container its own: version 2, version 1."""
GROUPS = (
    (LIMITS[0], "/sys/fs/cgroup/memory.current", ("active_file", "inactive_file")),
    (LIMITS[1], "/sys/fs/cgroup/memory/memory.usage_in_bytes",
     ("total_active_file", "total_inactive_file")),
)  # fmt: skip
"""Limit of a group, what it uses, and the names of its page cache in ``memory.stat``."""


def memory_bytes(transport: Transport) -> int | None:
    """Memory of a host, swap not counted; ``None`` where it does not tell."""
    known = [_line_bytes(_text(transport, MEMINFO), "MemTotal")]
    known += [_limit_bytes(_text(transport, path)) for path in LIMITS]
    return min((value for value in known if value is not None), default=None)


def available_bytes(transport: Transport) -> int | None:
    """Memory that new processes and files in memory can have without anything being paged out."""
    known = [_line_bytes(_text(transport, MEMINFO), "MemAvailable")]
    for limit, usage, cached in GROUPS:
        most, used = (_limit_bytes(_text(transport, path)) for path in (limit, usage))
        if most is not None and used is not None:
            stat = _text(transport, f"{posixpath.dirname(usage)}/memory.stat")
            known.append(max(0, most - used + _cached_bytes(stat, cached)))
    return min((value for value in known if value is not None), default=None)


def _cached_bytes(stat: str, names: tuple[str, str]) -> int:
    """Pages of files on devices: they count as used, and go when memory is wanted."""
    lines = (line.split() for line in stat.splitlines())
    return sum(int(words[1]) for words in lines if len(words) == 2 and words[0] in names)


def _text(transport: Transport, path: str) -> str:
    if transport.size(path) is None:
        return ""
    return transport.read(path).decode(errors="replace")


def _line_bytes(meminfo: str, wanted: str) -> int | None:
    for line in meminfo.splitlines():
        name, _, value = line.partition(":")
        if name == wanted:
            return int(value.split()[0]) * 1024
    return None


def _limit_bytes(text: str) -> int | None:
    """A limit as the kernel prints it; ``max`` is none, and so is more than any machine has."""
    return int(text) if text.strip().isdigit() else None
