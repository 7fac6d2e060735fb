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
from benchrunner.units import about_size

_GROUPS = {
    "instance": "Instance",
    "virtualisation": "Virtualisation",
    "cpu": "CPU",
    "numa": "NUMA",
    "memory": "Memory",
    "kernel": "Kernel",
    "os": "Operating system",
    "cgroup": "Control group",
    "device": "Device",
    "file_system": "File system",
    "compiler": "Compiler",
    "tools": "Tools",
}
_FIRST = {
    "virtualisation": ("product", "hypervisor", "container"),
    "cpu": (
        "model", "sockets", "cores", "threads", "smt", "governor", "energy_preference", "turbo",
        "microcode",
    ),
    "numa": ("count", "distances", "balancing"),
    "memory": (
        "total_kib", "swap_kib", "transparent_huge_pages", "ksm", "damon", "swappiness",
    ),
    "kernel": ("release",),
    "device": (
        "name", "model", "raid_level", "virtual", "rotational", "scheduler", "nr_requests",
        "max_sectors_kib", "read_ahead_kib", "write_cache", "wbt_lat_us", "size_bytes",
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
_SAID: Mapping[str, Mapping[Any, str]] = {
    "cpu.smt": {True: "SMT on", False: "SMT off"},
    "cpu.turbo": {True: "turbo on", False: "turbo off"},
    "numa.count": {1: "1 node"},
    "numa.balancing": {True: "balancing on", False: "balancing off"},
    "memory.swap_kib": {0: "no swap"},
    "memory.huge_pages": {0: ""},
    "memory.ksm": {True: "KSM on", False: "KSM off"},
    "memory.zone_reclaim_mode": {0: ""},
    "memory.overcommit_memory": {0: ""},
    "kernel.io_uring_disabled": {0: "io_uring on", 1: "io_uring for its group", 2: "io_uring off"},
    "kernel.randomize_va_space": {0: "ASLR off", 1: "ASLR without the heap", 2: "ASLR on"},
    "kernel.irq_balance": {True: "irqbalance runs", False: "irqbalance does not run"},
    "kernel.tainted": {0: ""},
    "device.virtual": {True: "virtual", False: ""},
    "device.rotational": {True: "rotational", False: "not rotational"},
    "device.no_merges": {0: ""},
    "device.wbt_lat_us": {0: "no write-back throttling"},
    "device.logical_block_bytes": {512: ""},
    "device.discard": {True: "discard", False: "no discard"},
    "device.max_hw_sectors_kib": {2**31 - 1: ""},
}
"""What a value means, in words; empty where it says nothing."""
_PHRASES: Mapping[str, str] = {
    "cpu.max_mhz": "at most {} MHz",
    "cpu.min_mhz": "at least {} MHz",
    "cpu.isolated": "isolated CPUs {}",
    "numa.count": "{} nodes",
    "numa.distances": "distance to another node {}",
    "numa.nodes": "{}",
    "memory.huge_page_kib": "huge pages of {}",
    "memory.transparent_huge_pages_defrag": "their defragmentation {}",
    "memory.damon": "DAMON {}",
    "memory.dirty_ratio": "dirty ratio {} %",
    "memory.dirty_background_ratio": "dirty background ratio {} %",
    "kernel.version": "build {}",
    "kernel.architecture": "{}",
    "os.libc": "{}",
    "os.open_files": "at most {} open files",
    "cgroup.cpus": "at most {} CPUs",
    "cgroup.memory_bytes": "at most {} of memory",
    "cgroup.allowed_cpus": "CPUs {}",
    "device.raid_level": "{}",
    "device.nr_requests": "nr_requests {}",
    "device.max_sectors_kib": "requests of at most {}",
    "device.max_hw_sectors_kib": "of the hardware at most {}",
    "device.wbt_lat_us": "write-back throttling at {} us",
    "device.logical_block_bytes": "logical block {}",
    "device.physical_block_bytes": "physical block {}",
    "file_system.source": "on {}",
    "file_system.mount_point": "at {}",
    "file_system.options": "mounted with {}",
}
"""How a fact is put that its name would put badly; others are their name and their value."""
_HARMLESS = "Not affected"
"""What the kernel says of a vulnerability that the processor does not have."""


def host_view(data: ReportData, host: str) -> HostView:
    """Return a host's facts, one line for each group, and what its device can do."""
    facts = data.host_facts.get(host, {})
    known = [name for name in _GROUPS if name in facts]
    others = [name for name in facts if name not in _GROUPS and name not in _PASSING]
    ceilings = tuple(_ceiling(data, ceiling) for ceiling in data.ceilings if ceiling.host == host)
    short = _lines({name: _chosen(name, facts[name]) for name in known + others})
    complete = _lines({name: _telling(name, facts[name]) for name in known + others})
    return HostView(host, (*short, *ceilings), tuple(one for one in complete if one not in short))


def _chosen(group: str, facts: Any) -> Any:
    """The facts of a group that come first; all of a group that nobody has thought about."""
    if group not in _FIRST or not isinstance(facts, Mapping):
        return facts
    if group == "numa":
        facts = {**facts, "distances": _distances(facts)}
    wanted = {name: facts[name] for name in _FIRST[group] if name in facts}
    return wanted if wanted or not _FIRST[group] else facts


def _telling(group: str, facts: Any) -> Any:
    """The facts of a group without those that repeat another one or that say nothing."""
    if not isinstance(facts, Mapping):
        return facts
    left_out: set[str] = set()
    if group == "device":
        left_out |= {"disk"} if facts.get("disk") == facts.get("name") else set()
        same = facts.get("disk_size_bytes") == facts.get("size_bytes")
        left_out |= {"disk_size_bytes"} if same else set()
    elif group == "numa":
        left_out = {"nodes"} if facts.get("count") == 1 else set()
    kept = {name: value for name, value in facts.items() if name not in left_out}
    nodes = kept.get("nodes")
    if group == "numa" and isinstance(nodes, Mapping):
        kept["nodes"] = "; ".join(_node(name, values) for name, values in nodes.items())
    mitigations = kept.get("mitigations")
    if isinstance(mitigations, Mapping):
        found = {name: text for name, text in mitigations.items() if text != _HARMLESS}
        kept["mitigations"] = found or "not needed"
    return kept


def _distances(facts: Mapping[str, Any]) -> str | None:
    """How far memory of another node is, where there is one: ``16 to 22, to its own 10``."""
    nodes = facts.get("nodes")
    rows = list(nodes.values()) if isinstance(nodes, Mapping) else []
    own = {row["distances"][place] for place, row in enumerate(rows) if _complete(row, rows)}
    others = {
        distance
        for place, row in enumerate(rows)
        if _complete(row, rows)
        for other, distance in enumerate(row["distances"])
        if other != place
    }
    if not others:
        return None
    ends = dict.fromkeys((min(others), max(others)))
    return f"{' to '.join(map(str, ends))}, to its own {' to '.join(map(str, sorted(own)))}"


def _node(name: str, values: Mapping[str, Any]) -> str:
    """One NUMA node: ``node 0 with CPUs 0-7, 16 GiB, distances 10 16 16 22``."""
    distances = " ".join(map(str, values.get("distances") or ()))
    parts = (
        f"node {name}" + (f" with CPUs {values['cpus']}" if values.get("cpus") else ""),
        _sized("memory_kib", values.get("memory_kib")),
        f"distances {distances}" if distances else "",
    )
    return ", ".join(filter(None, parts))


def _complete(row: Any, rows: Sequence[Any]) -> bool:
    """Whether a node states its distance to every node."""
    found = row.get("distances") if isinstance(row, Mapping) else None
    return isinstance(found, Sequence) and len(found) == len(rows)


def _lines(groups: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    lines = (
        (_GROUPS.get(name, _words(name)), summary(facts, name)) for name, facts in groups.items()
    )
    return tuple((label, text) for label, text in lines if text)


def _ceiling(data: ReportData, ceiling: CeilingView) -> tuple[str, str]:
    metric = find_metric(data.metrics, ceiling.metric, "The device ceiling")
    measured_by = " ".join(part for part in (ceiling.workload, ceiling.step) if part)
    value = f"{metric_text(ceiling.value, metric)} {metric.unit}"
    size = f" with {about_size(ceiling.block_bytes)}" if ceiling.block_bytes else ""
    of = f" of {ceiling.device}" if ceiling.device else ""
    return "Ceiling", f"{metric.title}{of} {value}{size}, measured by {measured_by}"


def summary(value: Any, group: str = "") -> str:
    """Return a fact as one line; nested facts as ``name value`` pairs.

    Args:
        value: One fact, several in a list, or many by name.
        group: Whose facts they are, for those that have words of their own.

    >>> summary({"model": "EPYC", "count": 8, "flags": None})
    'EPYC, count 8'
    >>> summary({"total_kib": 33554432})
    'total 32.0 GiB'
    >>> summary({"swap_kib": 0, "ksm": False, "damon": []}, "memory")
    'no swap, KSM off, DAMON off'
    """
    if isinstance(value, Mapping):
        texts = [_said(group, str(name), inner) for name, inner in value.items()]
        return ", ".join(text for text in texts if text)
    if isinstance(value, Sequence) and not isinstance(value, str):
        texts = [text for text in (summary(inner) for inner in value) if text]
        more = [f"and {len(texts) - _LONGEST_LIST} more"] if len(texts) > _LONGEST_LIST else []
        return ", ".join(texts[:_LONGEST_LIST] + more)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def _said(group: str, name: str, value: Any) -> str:
    """One fact of a group in its own words, else as its name and its value."""
    path = f"{group}.{name}"
    if value is None:
        return ""
    if isinstance(value, bool | int) and value in _SAID.get(path, {}):
        return _SAID[path][value]
    if path == "memory.damon" and not value:
        return "DAMON off"
    if path == "file_system.options" and isinstance(value, Sequence):
        value = ",".join(map(str, value))
    phrase = _PHRASES.get(path)
    if phrase is not None:
        return phrase.format(_sized(name, value) or summary(value))
    if group and isinstance(value, str) and value.startswith(name):
        return value  # fio-3.33 needs no "fio" before it
    size = _sized(name, value) if group else ""
    if size and not size.endswith(("GiB", "TiB", "PiB")):
        return f"{_words(_without_unit(name))} {size}"
    return _pair(name, value)


def _sized(name: str, value: Any) -> str:
    """A size for people; empty when it is none."""
    factor = next((by for ending, by in _FROM_BYTES.items() if name.endswith(ending)), None)
    if factor is None or not isinstance(value, int) or value <= 0:
        return ""
    return about_size(value * factor)


def _without_unit(name: str) -> str:
    ending = next((one for one in _FROM_BYTES if name.endswith(one)), "")
    return name.removesuffix(ending)


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
