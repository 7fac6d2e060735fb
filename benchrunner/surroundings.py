"""What is done on a host right before a step, and seen of the host before and after it.

In: a host, and each step as it starts and ends. Out: one file for the step's raw folder, which
parsing reads. Steps too short for a look to mean anything cost nothing.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from benchrunner.events import Event, ignore
from benchrunner.model import Parsed, Taint
from benchrunner.probes.noise import LOOK_SCRIPT, noise_facts, noise_taints, read_look, tree, user_s
from benchrunner.probes.preparation import preparations

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from benchrunner import definitions
    from benchrunner.events import Observer
    from benchrunner.probes.preparation import Preparer
    from benchrunner.transports import Transport

FILE = "surroundings.json"
SERVER_FILE = "server-surroundings.json"
"""The same of the host that a step's servers ran on, where that is another one."""
LOOK_FROM_S = 5.0
"""Expected length of a step that is worth two looks: who uses the CPU shows in seconds only."""
_LIMIT_S = 60.0


class Surroundings:
    """Prepares and watches a host for one step after another."""

    def __init__(
        self, transport: Transport, preparer: Preparer, ours: Collection[int],
        observer: Observer = ignore,
    ) -> None:  # fmt: skip
        """Takes the host; ``ours`` are pids there that do not count as noise."""
        self._transport = transport
        self._observer = observer
        self._preparer = preparer
        self._ours = list(ours)
        self._now: dict[str, Any] = {}

    def before(
        self,
        workload: definitions.Workload,
        step: definitions.Step,
        expected_s: float | None,
        servers: Sequence[int] = (),
    ) -> None:
        """Does what the step wants done, and looks.

        Args:
            workload: of the step.
            step: that is going to start.
            expected_s: how long it will take, if that is known.
            servers: pids of servers that run beside it: what they and their children use is no
                noise, and how much that is only looks can tell, however short the step.
        """
        self._now = {}
        wanted = preparations(workload, step)
        if wanted:
            # Said first: a sync of a full cache and a cool-down take minutes.
            self._observer(Event("preparation", f"before {step.name}: {', '.join(wanted)}"))
            prepared = self._preparer.prepare(wanted)
            self._now["prepared"] = dict(prepared.facts)
            self._now["taints"] = [asdict(taint) for taint in prepared.taints]
            for taint in prepared.taints:
                self._observer(Event("warning", f"{step.name}: {taint.name}: {taint.evidence}"))
        if servers or _is_long(expected_s):
            self._look_first(servers)

    def watch(self, expected_s: float | None, servers: Sequence[int]) -> None:
        """Looks at a host on which only the servers of a step run, if the step is long enough."""
        self._now = {}
        if _is_long(expected_s):
            self._look_first(servers)

    def _look_first(self, servers: Sequence[int]) -> None:
        if servers:
            self._now["servers"] = list(servers)
        self._now["before"] = self._look()

    def after(self) -> dict[str, bytes]:
        """Looks again; the files for the raw folder, none when there is nothing to say."""
        if "before" in self._now:
            self._now |= {"after": self._look(), "ours": self._ours}
        said, self._now = self._now, {}
        return {FILE: json.dumps(said).encode()} if said else {}

    def _look(self) -> str:
        argv = ["sh", "-c", LOOK_SCRIPT, "sh", ""]
        return self._transport.run(argv, timeout_s=_LIMIT_S).stdout.decode(errors="replace")


class Around:
    """The host of the steps, and the one of their services where that is another one."""

    def __init__(self, steps: Surroundings, services: Surroundings | None) -> None:
        """Takes both."""
        self._steps = steps
        self._services = services

    def before(
        self,
        workload: definitions.Workload,
        step: definitions.Step,
        expected_s: float | None,
        here: Sequence[int],
        there: Sequence[int],
    ) -> None:
        """Prepares the one and looks at both; ``here`` and ``there`` are pids of servers."""
        self._steps.before(workload, step, expected_s, here)
        if self._services is not None:  # without servers there too: it forgets its last look
            self._services.watch(expected_s if there else None, there)

    def after(self) -> dict[str, bytes]:
        """Files for the step's raw folder."""
        found = self._steps.after()
        if self._services is not None:
            seen = self._services.after()
            if seen:
                found |= {SERVER_FILE: seen[FILE]}
        return found


def _is_long(expected_s: float | None) -> bool:
    return expected_s is not None and expected_s >= LOOK_FROM_S


def servers_user_s(content: Mapping[str, Any]) -> float:
    """User CPU time of the servers beside a step, from what ``Surroundings`` left. Pure."""
    if "after" not in content or not content.get("servers"):
        return 0.0
    before, after = read_look(content["before"]), read_look(content["after"])
    servers = content["servers"]
    return max(0.0, user_s(after, tree(after, servers)) - user_s(before, tree(before, servers)))


def of_server_host(content: Mapping[str, Any], host: str) -> Parsed:
    """The same of the host of services, every word saying so. Pure."""
    found = understood(content)
    return Parsed(
        (),
        tuple(
            replace(one, evidence=f"host {host}, where the servers ran: {one.evidence}")
            for one in found.taints
        ),
        (),
        {},
        {f"server host: {name}": value for name, value in found.facts.items()},
    )


def understood(content: Mapping[str, Any]) -> Parsed:
    """Taints and facts from what ``Surroundings`` left. Pure."""
    taints = [Taint(**taint) for taint in content.get("taints", ())]
    facts = {
        f"before: {name}": ", ".join(
            f"{key} {value}" for key, value in done.items() if value is not None
        )
        for name, done in content.get("prepared", {}).items()
    }
    if "after" in content:
        before, after = read_look(content["before"]), read_look(content["after"])
        ours = set(content.get("ours", ())) | tree(after, content.get("servers", ()))
        taints += noise_taints(before, after, ours)
        seen = noise_facts(before, after, ours)
        facts["throttled"] = "not counted here" if seen["throttled"] is None else seen["throttled"]
        busiest = [f"{one['name']} {one['pct']:g} %" for one in seen["busiest"][:3]]
        facts["other processes"] = ", ".join(busiest) or "none"
    return Parsed((), tuple(taints), (), {}, {name: str(value) for name, value in facts.items()})
