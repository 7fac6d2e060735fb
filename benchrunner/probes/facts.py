"""Host facts: one script on the host, pure functions over what it prints, one hash.

What moves by itself (frequency, free space, load) is under ``now`` and no part of the hash, so that
two trials on an unchanged host have the same facts id. What is not known is ``None``.
"""

from __future__ import annotations

import hashlib
import json
import time
from importlib import resources
from typing import TYPE_CHECKING, Any

from benchrunner.model import HostFacts
from benchrunner.probes import machine, storage
from benchrunner.probes.text import Output, read_output

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchrunner.transports import Transport

_LIMIT_S = 60.0


def collect_facts(transport: Transport, directories: Sequence[str], host: str) -> HostFacts:
    """Observes a host, in one round trip.

    Args:
        transport: The host.
        directories: Where databases will be; ``device`` and ``file_system`` are those of the first.
        host: Its name in the inventory.
    """
    script = resources.files("benchrunner.probes").joinpath("facts.sh").read_text("utf-8")
    asked_at, began_s = time.time(), time.monotonic()
    done = transport.run(["sh", "-c", script, "sh", *directories], timeout_s=_LIMIT_S)
    output = read_output(done.stdout.decode(errors="replace"))
    facts = facts_from(output, directories)
    # The host read its clock somewhere within the round trip: it is ahead by at most so much, and
    # by at least that less the round trip.
    facts["now"]["round_trip_s"] = round(time.monotonic() - began_s, 3)
    clock_s = facts["now"]["clock_unix_s"]
    facts["now"]["clock_ahead_s"] = None if clock_s is None else round(clock_s - asked_at, 3)
    boot_id = output.line("/proc/sys/kernel/random/boot_id") or ""
    return HostFacts(facts_id(facts), host, asked_at, boot_id, facts)


def facts_from(output: Output, directories: Sequence[str]) -> dict[str, Any]:
    """All facts from what the script printed."""
    facts: dict[str, Any] = {
        "cpu": machine.cpu(output),
        "numa": machine.numa(output),
        "memory": machine.memory(output),
        "kernel": machine.kernel(output),
        "os": machine.operating_system(output),
        "virtualisation": machine.virtualisation(output),
        "cgroup": machine.cgroup(output),
        "compiler": storage.compiler(output),
        "tools": storage.tools(output),
        "device": storage.device(output, 0),
        "file_system": storage.file_system(output, 0),
    }
    others = {
        path: {"device": storage.device(output, at), "file_system": storage.file_system(output, at)}
        for at, path in enumerate(directories)
        if at > 0
    }
    if others:
        facts["other_directories"] = others
    return facts | {"now": now(output, len(directories))}


def facts_id(facts: Mapping[str, Any]) -> str:
    """Hash of the facts that do not move by themselves."""
    lasting = {name: value for name, value in facts.items() if name != "now"}
    text = json.dumps(lasting, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def now(output: Output, directories: int) -> dict[str, Any]:
    """What was so at that moment."""
    info = machine.meminfo(output)
    frequencies = machine.mhz(output)
    loads = (output.line("/proc/loadavg") or "").split()
    uptime = (output.line("/proc/uptime") or "").split()
    clock = output.section("clock") or ""
    return {
        "mhz": frequencies or None,
        "memory_available_kib": info.get("MemAvailable"),
        "swap_free_kib": info.get("SwapFree"),
        "free_kib": [storage.free_kib(output, at) for at in range(directories)],
        "load_1": float(loads[0]) if loads else None,
        "uptime_s": float(uptime[0]) if uptime else None,
        "clock_unix_s": float(clock) if clock.replace(".", "").isdigit() else None,
    }
