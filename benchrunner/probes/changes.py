"""What is different about a host since it was last seen: two sets of facts in, changes out.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchrunner.model import HostFacts

_LABELS = {
    "kernel.release": "kernel version",
    "kernel.version": "kernel build",
    "kernel.command_line": "kernel command line",
    "cpu.model": "CPU model",
    "cpu.threads": "CPU threads",
    "cpu.cores": "CPU cores",
    "cpu.sockets": "CPU sockets",
    "cpu.smt": "SMT",
    "cpu.microcode": "microcode",
    "cpu.governor": "CPU governor",
    "cpu.turbo": "turbo",
    "memory.total_kib": "memory in KiB",
    "memory.swap_kib": "swap space in KiB",
    "memory.transparent_huge_pages": "transparent huge pages",
    "memory.swappiness": "swappiness",
    "memory.damon": "DAMON",
    "memory.ksm": "KSM",
    "device.model": "device model",
    "device.firmware": "device firmware",
    "device.name": "device",
    "device.scheduler": "I/O scheduler",
    "device.write_cache": "write cache of the device",
    "file_system.type": "file system",
    "file_system.options": "mount options",
    "file_system.source": "mounted device",
    "compiler.cc": "C compiler",
    "compiler.c++": "C++ compiler",
    "os.name": "operating system",
    "os.libc": "C library",
}
"""Facts with a name of their own; others are called by their path."""
_IMPORTANCE = (
    "virtualisation.hypervisor", "cpu.model", "cpu.sockets", "cpu.cores", "cpu.threads", "cpu.smt",
    "memory.total_kib", "device.model", "device.name", "device.firmware", "file_system.type",
    "file_system.source", "kernel.release", "kernel.version", "kernel.command_line",
    "cpu.microcode", "cpu.mitigations", "cpu.governor", "cpu.turbo", "cgroup", "device",
    "file_system", "memory", "numa", "cpu", "kernel", "os", "compiler", "virtualisation",
    "other_directories", "tools",
)  # fmt: skip
"""What a change of numbers is most likely due to, first."""
_PASSING = "now"
_OWN = (
    "device.name", "device.disk", "device.disks", "device.stack", "device.volume",
    "device.backing_file", "file_system.source", "file_system.mount_point", "tools",
    "other_directories", "virtualisation.container",
)  # fmt: skip
"""Names and places that differ between machines of one kind."""
_OWN_WORDS = re.compile(r"\b(root|BOOT_IMAGE|resume|initrd|rd\S*|ip|hostname)=\S*|\S*UUID=\S*")
_MEMORY = "memory.total_kib"
_NODE_MEMORY = re.compile(r"numa\.nodes\.\d+\.memory_kib")
"""A guest's kernel counts memory of a node when it is first used, as long as the total stays."""
_ALIKE_SHARE = 0.02
"""Sizes in KiB of equal machines differ by what firmware and file systems take."""


@dataclass(frozen=True, slots=True)
class Change:
    """One fact that differs. A side that did not have the fact is ``None``."""

    path: str
    """``cpu.mitigations.retbleed``"""
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{label(self.path)}: {_text(self.before)} -> {_text(self.after)}"


def changes(old: HostFacts, new: HostFacts) -> tuple[Change, ...]:
    """What differs between two visits, the most telling first; what moves by itself is left out."""
    before, after = dict(_flat(old.facts)), dict(_flat(new.facts))
    paths = dict.fromkeys((*before, *after))
    is_same_memory = before.get(_MEMORY) == after.get(_MEMORY)
    found = [
        Change(path, before.get(path), after.get(path))
        for path in paths
        if before.get(path) != after.get(path)
        and not (is_same_memory and _NODE_MEMORY.fullmatch(path))
    ]
    return tuple(sorted(found, key=lambda change: (_rank(change.path), change.path)))


def class_differences(one: HostFacts, other: HostFacts) -> tuple[Change, ...]:
    """What keeps two hosts from being of one facts class: numbers of both cannot be mixed then."""
    return tuple(change for change in changes(one, other) if not _is_own(change))


def _is_own(change: Change) -> bool:
    path, before, after = change.path, change.before, change.after
    if any(path == own or path.startswith(f"{own}.") for own in _OWN):
        return True
    if path == "kernel.command_line" and isinstance(before, str) and isinstance(after, str):
        words = [_OWN_WORDS.sub("", text).split() for text in (before, after)]
        return words[0] == words[1]
    if path.endswith("_kib") and isinstance(before, int) and isinstance(after, int):
        return abs(before - after) <= _ALIKE_SHARE * max(before, after)
    return False


def label(path: str) -> str:
    """A fact in words.

    >>> label("kernel.release"), label("device.nr_requests"), label("cpu.mitigations.retbleed")
    ('kernel version', 'device nr requests', 'CPU mitigations retbleed')
    >>> label("kernel.version")
    'kernel build'
    """
    if path in _LABELS:
        return _LABELS[path]
    group, _, rest = path.partition(".")
    first = group.upper() if group in ("cpu", "numa", "os") else group.replace("_", " ")
    return f"{first} {rest.replace('_', ' ').replace('.', ' ')}".strip()


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every single fact with its path. What is not known is no fact; an empty list is one."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if path or name != _PASSING:
                yield from _flat(inner, f"{path}.{name}" if path else str(name))
    elif value is not None:
        yield path, list(value) if _is_list(value) else value


def _rank(path: str) -> int:
    """The longest beginning that the list has counts: ``device.model`` before ``device``."""
    beginnings = [one for one in _IMPORTANCE if path == one or path.startswith(f"{one}.")]
    if not beginnings:
        return len(_IMPORTANCE)
    return _IMPORTANCE.index(max(beginnings, key=len))


def _text(value: Any) -> str:
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if _is_list(value):
        return ", ".join(str(inner) for inner in value) or "none"
    return str(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
