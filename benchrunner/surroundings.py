"""What is done on a host right before a step, and seen of the host before and after it.

In: a host, and each step as it starts and ends. Out: one file for the step's raw folder, which
parsing reads. Steps too short for a look to mean anything cost nothing.
"""

from __future__ import annotations

import json
from dataclasses import asdict
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
        if servers:
            self._now["servers"] = list(servers)
        if servers or (expected_s is not None and expected_s >= LOOK_FROM_S):
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


def servers_user_s(content: Mapping[str, Any]) -> float:
    """User CPU time of the servers beside a step, from what ``Surroundings`` left. Pure."""
    if "after" not in content or not content.get("servers"):
        return 0.0
    before, after = read_look(content["before"]), read_look(content["after"])
    servers = content["servers"]
    return max(0.0, user_s(after, tree(after, servers)) - user_s(before, tree(before, servers)))


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
