"""Host facts as lines of a page: well-known ones under a label, others by name. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchrunner.report.input import CeilingView, ReportData

from benchrunner.report.format import metric_text
from benchrunner.report.tables import find_metric
from benchrunner.report.view import HostView

_GROUPS = {
    "instance": "Instance",
    "virtualisation": "Virtualisation",
    "cpu": "CPU",
    "numa": "NUMA",
    "memory": "Memory",
    "kernel": "Kernel",
    "os": "Operating system",
    "device": "Device",
    "file_system": "File system",
    "compiler": "Compiler",
    "tools": "Tools",
}
_FIRST = {
    "virtualisation": ("product", "hypervisor", "container"),
    "cpu": ("model", "sockets", "cores", "threads", "smt", "governor", "turbo", "microcode"),
    "numa": ("count",),
    "memory": ("total_kib", "swap_kib", "transparent_huge_pages", "swappiness"),
    "kernel": ("release",),
    "device": (
        "name", "model", "raid_level", "virtual", "rotational", "scheduler", "nr_requests",
        "max_sectors_kib", "read_ahead_kib", "write_cache", "size_bytes",
    ),
    "file_system": ("type", "options", "total_kib"),
    "compiler": (),
    "tools": ("fio",),
}  # fmt: skip
"""Facts of a group that the Setup section shows, in order; the rest folds away below it."""
_PASSING = ("now", "other_directories")
"""Groups that say nothing of what the host is."""
_GIB = 1024**3
_FROM_BYTES = {"_bytes": 1, "_kib": 1024}
_LONGEST_LIST = 8
_BARE = ("model", "name", "type", "release")
"""Facts that need no label beside their value."""


def host_view(data: ReportData, host: str) -> HostView:
    """Return a host's facts, one line for each group, and what its device can do."""
    facts = data.host_facts.get(host, {})
    known = [name for name in _GROUPS if name in facts]
    others = [name for name in facts if name not in _GROUPS and name not in _PASSING]
    ceilings = tuple(_ceiling(data, ceiling) for ceiling in data.ceilings if ceiling.host == host)
    short = _lines({name: _chosen(name, facts[name]) for name in known + others})
    complete = _lines({name: facts[name] for name in known + others})
    return HostView(host, (*short, *ceilings), tuple(one for one in complete if one not in short))


def _chosen(group: str, facts: Any) -> Any:
    """The facts of a group that come first; all of a group that nobody has thought about."""
    if group not in _FIRST or not isinstance(facts, Mapping):
        return facts
    wanted = {name: facts[name] for name in _FIRST[group] if name in facts}
    return wanted if wanted or not _FIRST[group] else facts


def _lines(groups: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    lines = ((_GROUPS.get(name, _words(name)), summary(facts)) for name, facts in groups.items())
    return tuple((label, text) for label, text in lines if text)


def _ceiling(data: ReportData, ceiling: CeilingView) -> tuple[str, str]:
    metric = find_metric(data.metrics, ceiling.metric, "The device ceiling")
    measured_by = " ".join(part for part in (ceiling.workload, ceiling.step) if part)
    value = f"{metric_text(ceiling.value, metric)} {metric.unit}"
    return "Device ceiling", f"{metric.title} {value}, measured by {measured_by}"


def summary(value: Any) -> str:
    """Return a fact as one line; nested facts as ``name value`` pairs.

    >>> summary({"model": "EPYC", "count": 8, "flags": None})
    'EPYC, count 8'
    >>> summary({"total_kib": 33554432})
    'total 32.0 GiB'
    """
    if isinstance(value, Mapping):
        pairs = ((str(name), inner) for name, inner in value.items())
        texts = [_pair(name, inner) for name, inner in pairs]
        return ", ".join(text for text in texts if text)
    if isinstance(value, Sequence) and not isinstance(value, str):
        texts = [text for text in (summary(inner) for inner in value) if text]
        more = [f"and {len(texts) - _LONGEST_LIST} more"] if len(texts) > _LONGEST_LIST else []
        return ", ".join(texts[:_LONGEST_LIST] + more)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def _pair(name: str, value: Any) -> str:
    for ending, factor in _FROM_BYTES.items():
        if name.endswith(ending) and isinstance(value, int) and value * factor >= _GIB:
            return f"{_words(name.removesuffix(ending))} {value * factor / _GIB:.1f} GiB"
    text = summary(value)
    if not text:
        return ""
    if name in _BARE:
        return text
    return f"{_words(name)} ({text})" if isinstance(value, Mapping) else f"{_words(name)} {text}"


def _words(name: str) -> str:
    return name.replace("_", " ")


def flattened(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield every single fact as (dotted name, text), for the raw pages.

    >>> list(flattened({"cpu": {"count": 8, "flags": ["a", "b"]}}))
    [('cpu.count', '8'), ('cpu.flags', 'a, b')]
    """
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from flattened(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        if any(isinstance(inner, Mapping) for inner in value):
            for place, inner in enumerate(value):
                yield from flattened(inner, f"{name}.{place}")
        else:
            yield name, ", ".join(str(inner) for inner in value)
    elif value is not None:
        yield name, str(value)
