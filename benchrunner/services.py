"""The servers that run beside a trial's steps: started, waited for, kept, watched, ended by pid.

In: an attempt at a trial, and what the journal says of it. Out: a sentence wherever a step cannot
have its server. A service is a step run of its own: journalled before it starts, in a run folder of
its own, so that it is sampled, stored as raw output, and found again by whoever comes later.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchrunner import faults
from benchrunner.errors import BenchrunnerError, ConfigurationError
from benchrunner.events import Event
from benchrunner.model import Command, StepState
from benchrunner.outcomes import absent_program
from benchrunner.processes import uninterrupted
from benchrunner.run_parts import Beside, StepEnd, Stored
from benchrunner.service_host import SLICE_S, Server, ServiceHost
from benchrunner.unfolding import used_services

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchrunner.definitions import Step
    from benchrunner.events import Observer
    from benchrunner.run_parts import Begun
    from benchrunner.run_tools import Tools
    from benchrunner.store.rows import StepRow

_LOOK_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Unready:
    """Why a step cannot have a server that it needs."""

    state: StepState
    """Of the step: failed for the first that needed it, skipped for those after it."""
    reason: str


class Services:
    """The servers of one attempt at a trial."""

    def __init__(self, tools: Tools, begun: Begun, rows: Mapping[str, StepRow]) -> None:
        """Takes the attempt and what of it is in the journal."""
        self._tools = tools
        self._begun = begun
        self._host = ServiceHost(tools, begun)
        self._place = self._host.place
        self._servers = self._listed(rows)
        self._unparsed = [
            row
            for name, row in rows.items()
            if name in self._servers and row.state.final and row.raw_path and row.parsed_at is None
        ]

    def _listed(self, rows: Mapping[str, StepRow]) -> dict[str, Server]:
        trial, workload = self._begun.trial, self._begun.subject.workload
        found: dict[str, Server] = {}
        definitions = {service.name: service for service in workload.services}
        steps = list(trial.job.steps)
        for number, name in enumerate(used_services(workload, steps), start=len(steps) + 1):
            needing = [s.name for s in workload.steps if name in s.services]
            last = max(at for at, step in enumerate(steps, start=1) if step in needing)
            run_dir = self._place.disk.run_dir(trial.id, self._begun.attempt, number, name)
            server = Server(definitions[name], number, run_dir, last)
            row = rows.get(name)
            if row is not None:
                server.row_id, server.state, server.reason = row.id, row.state, row.reason
                server.handle = self._place.launcher.find(run_dir) if row.run_dir else None
            found[name] = server
        return found

    @property
    def have_opened(self) -> bool:
        """Whether one of them has made the trial's folders on the host of the steps."""
        return self._place.host is None and self._have_started

    @property
    def beside(self) -> Beside:
        """The servers that run now, whether a step needs them or not."""
        servers = self._servers.values()
        pids = tuple(s.handle.pid for s in servers if s.handle is not None and s.is_open)
        return Beside(here=pids) if self._place.host is None else Beside(there=pids)

    @property
    def _have_started(self) -> bool:
        return any(server.handle is not None for server in self._servers.values())

    # ---------------------------------------------------------------- before and during a step

    def prepare(self, step: Step, *, opens: bool) -> Unready | None:
        """Has every service that a step needs ready.

        Args:
            step: that is going to start.
            opens: whether no step's process of the attempt was started yet.
        """
        opens = opens or self._place.host is not None
        for name in step.services:
            server = self._servers[name]
            first = server.state is None or server.is_open
            if first and not server.is_ready:
                self._make_ready(server, opens=opens and not self._have_started)
            if server.state is not None and server.state.final:
                return _unready(server, first=first)
        return None

    def fault(self, step: Step) -> str:
        """What of a step's services is over, in one sentence; empty: all of them run."""
        for name in step.services:
            server = self._servers[name]
            state = self._host.polled(server)
            if state is not None and state.state != "running":
                return f"service {name} ended during it: {self._host.ended_by_itself(server)}"
        return ""

    def fault_by_now(self, step: Step) -> str:
        """The same, for whoever asks all the time: a look a second is enough."""
        now = time.monotonic()
        servers = [self._servers[name] for name in step.services]
        if all(now - server.looked_at < _LOOK_EVERY_S for server in servers):
            return ""
        for server in servers:
            server.looked_at = now
        return self.fault(step)

    # ---------------------------------------------------------------- starting

    def _make_ready(self, server: Server, *, opens: bool) -> None:
        """Starts a server unless it was started before, and waits for it."""
        name = server.definition.name
        if server.handle is None and not self._begin(server, opens=opens):
            return
        faults.point("service-started")
        reason = self._wait(server) or self._host.out_of_reach(server)
        faults.point("service-waited")
        if reason:
            self._end(server, StepState.FAILED, reason)
            return
        assert server.row_id is not None  # noqa: S101
        assert server.handle is not None  # noqa: S101
        if server.state is StepState.STARTING:
            self._tools.journal.step_running(server.row_id, server.handle)
            server.state = StepState.RUNNING
        server.is_ready = True
        server.looked_at = time.monotonic()
        self._tell(server, f"service {name} is ready{self._on}")

    def _begin(self, server: Server, *, opens: bool) -> bool:
        """Journals and starts a server; whether there is one now."""
        name, journal = server.definition.name, self._tools.journal
        try:
            command, taken = self._host.command(server), self._host.taken(server)
        except ConfigurationError as error:
            command, taken = Command(()), error.message
        begun_before = server.row_id is not None
        if server.row_id is None:
            run_dir = "" if taken else server.run_dir
            trial_id = self._begun.trial.id
            server.row_id = journal.begin_step(
                trial_id, name, server.position, command, run_dir, self._place.host
            )
            server.state = StepState.STARTING
        faults.point("service-begun")
        if taken:
            self._journal_end(server, StepState.FAILED, StepEnd(taken))
            return False
        with uninterrupted() as signals:
            self._tell(server, f"service {name} started{self._on}")
            server.handle = self._host.start(
                server, command, opens=opens, begun_before=begun_before
            )
        if signals:
            raise KeyboardInterrupt
        return True

    # ---------------------------------------------------------------- waiting

    def _wait(self, server: Server) -> str:
        """Why a server that was started is not ready; empty once it is."""
        until = time.monotonic() + server.definition.ready_s
        while True:
            if self._tools.stop.is_set():
                raise KeyboardInterrupt
            left_s = until - time.monotonic()
            ready, state = self._host.look(server, max(0.0, min(SLICE_S, left_s)))
            if state != "running":
                return f"it ended before it was ready: {self._host.ended_by_itself(server)}"
            if ready:
                return ""
            if left_s <= 0:
                return f"it was not ready within {server.definition.ready_s:g} s"

    # ---------------------------------------------------------------- ending

    def release(self, position: int) -> None:
        """Ends the servers that no step after this one needs."""
        for server in self._servers.values():
            if server.is_open and server.last <= position:
                self._release(server)
        unparsed, self._unparsed = self._unparsed, []
        for row in unparsed:
            self._tools.hooks.after_step(row)

    def _release(self, server: Server) -> None:
        state = self._host.polled(server)
        if state is None:
            # It was never started, or somebody has deleted its folder.
            self._journal_end(server, StepState.FAILED, StepEnd("its run folder is gone"))
        elif state.state != "running" and (state.status or {}).get("state") != "killed":
            self._end(server, StepState.FAILED, f"it ended: {self._host.ended_by_itself(server)}")
        else:
            self._end(server, StepState.OK, "")

    def abandon(self) -> None:
        """Ends all that run, because the trial is not gone on with now."""
        for server in self._servers.values():
            if not server.is_open:
                continue
            if server.handle is not None:
                self._place.launcher.stop(server.handle, server.definition.grace_s)
            end = StepEnd("it was ended with its trial")
            self._journal_end(server, StepState.INTERRUPTED, end)

    def _end(self, server: Server, state: StepState, reason: str) -> None:
        """Ends a server that was started, brings its run folder home, journals that."""
        assert server.handle is not None  # noqa: S101
        assert server.row_id is not None  # noqa: S101
        begun, tools, disk = self._begun, self._tools, self._place.disk
        ended = self._place.launcher.stop(server.handle, server.definition.grace_s)
        status = ended.status or {"state": "lost"}
        tool = begun.subject.tools[server.definition.tool]
        missing = absent_program(status, tool)
        if missing:
            state, reason = StepState.SKIPPED, f"{missing}{self._on}"
        faults.point("service-stopped")
        collected = disk.collect(server.run_dir, begun.trial.id, "")
        disk.sync(collected.raw_path)
        end = StepEnd(reason, status, collected.raw_path, collected.sha256)
        self._journal_end(server, state, end)
        faults.point("service-ended")
        stored = Stored(
            server.row_id, begun.trial.id, server.definition.name, state, reason, status,
            collected.raw_path, (),
        )  # fmt: skip
        tools.hooks.after_step(stored)

    def _journal_end(self, server: Server, state: StepState, end: StepEnd) -> None:
        assert server.row_id is not None  # noqa: S101
        self._tools.journal.end_step(server.row_id, state, end)
        server.state, server.reason = state, end.reason
        words = f": {end.reason}" if end.reason else ""
        self._tell(server, f"service {server.definition.name}: {state.value}{words}")

    @property
    def _on(self) -> str:
        """For sentences, where it is not the host that they are told of anyway."""
        return f" on {self._place.host}" if self._place.host else ""

    def _tell(self, server: Server, text: str) -> None:
        data = {"trial": self._begun.trial.id, "service": server.definition.name}
        self._tools.observer(Event("service", text, data))


def _unready(server: Server, *, first: bool) -> Unready:
    """What follows for a step from the end of a server."""
    state = server.state if first else StepState.SKIPPED
    if state is not StepState.SKIPPED:
        state = StepState.FAILED
    return Unready(state, f"service {server.definition.name}: {server.reason}")


def abandoned(services: Services, observer: Observer) -> None:
    """Ends an attempt's servers on the way out; why we leave matters more than that it failed."""
    try:
        services.abandon()
    except BenchrunnerError as error:
        text = f"a service may still run: {error.message}; benchrunner resume ends it"
        observer(Event("warning", text, {}))
