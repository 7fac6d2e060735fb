"""The servers that run beside a trial's steps: started, waited for, kept, watched, ended by pid.

In: an attempt at a trial, and what the journal says of it. Out: a sentence wherever a step cannot
have its server. A service is a step run of its own: journalled before it starts, in a run folder of
its own, so that it is sampled, stored as raw output, and found again by whoever comes later.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchrunner import faults
from benchrunner.command import Placement, build_command, step_names
from benchrunner.errors import BenchrunnerError, ConfigurationError, LaunchError
from benchrunner.events import Event
from benchrunner.expressions import expand
from benchrunner.launchers import LaunchRequest
from benchrunner.model import Command, StepState
from benchrunner.outcomes import absent_program, classify
from benchrunner.processes import uninterrupted
from benchrunner.run_parts import StepEnd, Stored
from benchrunner.unfolding import used_services

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchrunner.definitions import Service, Step
    from benchrunner.events import Observer
    from benchrunner.launchers import RunState
    from benchrunner.model import Handle
    from benchrunner.run_parts import Begun
    from benchrunner.run_tools import Tools
    from benchrunner.store.rows import StepRow

_SLICE_S = 0.5
"""Longest wait on the host in one go: somebody may press Ctrl-C."""
_PAUSE_S = 0.02
_LOOK_EVERY_S = 1.0
_LAST_WORDS = 300
"""Characters of what a server said last that are kept in a reason."""
_SAID_BYTES = 1 << 20
"""How much of a server's output is searched for the line that says that it is ready."""


@dataclass(frozen=True, slots=True)
class Unready:
    """Why a step cannot have a server that it needs."""

    state: StepState
    """Of the step: failed for the first that needed it, skipped for those after it."""
    reason: str


@dataclass(slots=True)
class _Server:
    """One service of the attempt."""

    definition: Service
    position: int
    """Of its run folder: behind all steps."""
    run_dir: str
    last: int
    """Position of the last step that needs it."""
    row_id: int | None = None
    state: StepState | None = None
    """As journalled; ``None``: nothing has begun."""
    reason: str = ""
    handle: Handle | None = None
    is_ready: bool = False
    looked_at: float = 0.0

    @property
    def is_open(self) -> bool:
        """Whether it was begun, and no end is journalled."""
        return self.state is not None and not self.state.final


class Services:
    """The servers of one attempt at a trial."""

    def __init__(self, tools: Tools, begun: Begun, rows: Mapping[str, StepRow]) -> None:
        """Takes the attempt and what of it is in the journal."""
        self._tools = tools
        self._begun = begun
        self._servers = self._listed(rows)
        self._unparsed = [
            row
            for name, row in rows.items()
            if name in self._servers and row.state.final and row.raw_path and row.parsed_at is None
        ]

    def _listed(self, rows: Mapping[str, StepRow]) -> dict[str, _Server]:
        trial, workload = self._begun.trial, self._begun.subject.workload
        found: dict[str, _Server] = {}
        definitions = {service.name: service for service in workload.services}
        steps = list(trial.job.steps)
        for number, name in enumerate(used_services(workload, steps), start=len(steps) + 1):
            needing = [s.name for s in workload.steps if name in s.services]
            last = max(at for at, step in enumerate(steps, start=1) if step in needing)
            run_dir = self._tools.disk.run_dir(trial.id, self._begun.attempt, number, name)
            server = _Server(definitions[name], number, run_dir, last)
            row = rows.get(name)
            if row is not None:
                server.row_id, server.state, server.reason = row.id, row.state, row.reason
                server.handle = self._tools.launcher.find(run_dir) if row.run_dir else None
            found[name] = server
        return found

    @property
    def have_started(self) -> bool:
        """Whether a process of theirs was started, so that the trial's folders are there."""
        return any(server.handle is not None for server in self._servers.values())

    # ---------------------------------------------------------------- before and during a step

    def prepare(self, step: Step, *, opens: bool) -> Unready | None:
        """Has every service that a step needs ready.

        Args:
            step: that is going to start.
            opens: whether no process of the attempt was started yet.
        """
        for name in step.services:
            server = self._servers[name]
            first = server.state is None or server.is_open
            if first and not server.is_ready:
                self._make_ready(server, opens=opens and not self.have_started)
            if server.state is not None and server.state.final:
                return _unready(server, first=first)
        return None

    def fault(self, step: Step) -> str:
        """What of a step's services is over, in one sentence; empty: all of them run."""
        for name in step.services:
            server = self._servers[name]
            state = self._polled(server)
            if state is not None and state.state != "running":
                return f"service {name} ended during it: {self._ended_by_itself(server)}"
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

    def _polled(self, server: _Server) -> RunState | None:
        if server.handle is None or not server.is_open:
            return None
        return self._tools.launcher.poll(server.handle)

    # ---------------------------------------------------------------- starting

    def _make_ready(self, server: _Server, *, opens: bool) -> None:
        """Starts a server unless it was started before, and waits for it."""
        name = server.definition.name
        if server.handle is None and not self._begin(server, opens=opens):
            return
        faults.point("service-started")
        reason = self._wait(server)
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
        self._tell(server, f"service {name} is ready")

    def _begin(self, server: _Server, *, opens: bool) -> bool:
        """Journals and starts a server; whether there is one now."""
        name, journal = server.definition.name, self._tools.journal
        try:
            command, taken = self._command(server), self._taken(server)
        except ConfigurationError as error:
            command, taken = Command(()), error.message
        begun_before = server.row_id is not None
        if server.row_id is None:
            run_dir = "" if taken else server.run_dir
            trial_id = self._begun.trial.id
            server.row_id = journal.begin_step(trial_id, name, server.position, command, run_dir)
            server.state = StepState.STARTING
        faults.point("service-begun")
        if taken:
            self._journal_end(server, StepState.FAILED, StepEnd(taken))
            return False
        with uninterrupted() as signals:
            server.handle = self._start(server, command, opens=opens, begun_before=begun_before)
        if signals:
            raise KeyboardInterrupt
        return True

    def _start(
        self, server: _Server, command: Command, *, opens: bool, begun_before: bool
    ) -> Handle:
        trial, disk = self._begun.trial, self._tools.disk
        self._tell(server, f"service {server.definition.name} started")
        request = LaunchRequest(
            run_dir=server.run_dir,
            run_id=f"{trial.id}/{server.position:02d}-{server.definition.name}",
            command=command,
            cwd=disk.database(trial.id)[0],
            grace_s=server.definition.grace_s,
            clear_env=True,
            fresh=disk.fresh(trial.id, self._begun.attempt) if opens else None,
        )
        try:
            return self._tools.launcher.start(request)
        except LaunchError:
            # The start that a killed controller asked for can come through a moment later.
            found = self._tools.launcher.find(server.run_dir) if begun_before else None
            if found is None:
                raise
            return found

    def _command(self, server: _Server) -> Command:
        begun, placement = self._begun, self._placement(server)
        definition = begun.subject.step(server.definition.name)
        return build_command(definition, begun.subject, begun.trial.job, begun.artifact, placement)

    def _placement(self, server: _Server) -> Placement:
        trial = self._begun.trial
        db_dir, wal_dir = self._tools.disk.database(trial.id)
        return Placement(
            db_dir=db_dir, wal_dir=wal_dir, run_dir=server.run_dir, repetition=trial.repetition
        )

    def _port(self, server: _Server) -> int | None:
        """The port that a service listens on.

        Raises:
            ConfigurationError: It is no port.
        """
        template, begun = server.definition.port, self._begun
        if template is None:
            return None
        name = server.definition.name
        where = f"service {name} of {begun.subject.workload.name}, port"
        step, placement = begun.subject.step(name), self._placement(server)
        names = step_names(step, begun.subject.workload, begun.trial.job, placement)
        port = expand(template, names, where=where)
        if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 1 << 16:
            raise ConfigurationError(f"{where}: {port!r} is no port", "a number up to 65535")
        return port

    def _taken(self, server: _Server) -> str:
        """Why its port cannot be had; empty when it can."""
        port = self._port(server)
        if port is None:
            return ""
        answer = self._tools.launcher.port(["--free", str(port)], _SLICE_S)
        if answer["free"]:
            return ""
        who = ""
        if answer.get("pid"):
            who = f": {answer.get('command') or 'process'} (process {answer['pid']}) listens there"
        return f"port {port} cannot be had, {answer['error'].lower()}{who}"

    # ---------------------------------------------------------------- waiting

    def _wait(self, server: _Server) -> str:
        """Why a server that was started is not ready; empty once it is."""
        until = time.monotonic() + server.definition.ready_s
        while True:
            if self._tools.stop.is_set():
                raise KeyboardInterrupt
            left_s = until - time.monotonic()
            ready, state = self._look(server, max(0.0, min(_SLICE_S, left_s)))
            if state != "running":
                return f"it ended before it was ready: {self._ended_by_itself(server)}"
            if ready:
                return ""
            if left_s <= 0:
                return f"it was not ready within {server.definition.ready_s:g} s"

    def _look(self, server: _Server, slice_s: float) -> tuple[bool, str]:
        """Whether it is ready, a moment from now at the latest; how its run stands."""
        assert server.handle is not None  # noqa: S101
        port = self._port(server)
        if port is not None and not server.definition.ready:
            arguments = ["--wait", str(port), "--run-dir", server.run_dir]
            answer = self._tools.launcher.port([*arguments, "--timeout", repr(slice_s)], slice_s)
            return answer["answers"], answer["state"]
        time.sleep(min(slice_s, _PAUSE_S))
        state = self._tools.launcher.poll(server.handle).state
        said = self._tools.disk.printed(server.run_dir, _SAID_BYTES)
        return re.search(server.definition.ready, said, re.MULTILINE) is not None, state

    def _ended_by_itself(self, server: _Server) -> str:
        """How a server came to its end, and what it said last."""
        state = self._polled(server)
        _, how = classify((state.status if state else None) or {"state": "lost"})
        said = [line.strip() for line in self._tools.disk.printed(server.run_dir, 4096).split("\n")]
        words = " / ".join([line for line in said if line][-3:])[-_LAST_WORDS:]
        return f"{how or 'it exited with status 0'}{': ' if words else ''}{words}"

    # ---------------------------------------------------------------- ending

    def release(self, position: int) -> None:
        """Ends the servers that no step after this one needs."""
        for server in self._servers.values():
            if server.is_open and server.last <= position:
                self._release(server)
        unparsed, self._unparsed = self._unparsed, []
        for row in unparsed:
            self._tools.hooks.after_step(row)

    def _release(self, server: _Server) -> None:
        state = self._polled(server)
        if state is None:
            # It was never started, or somebody has deleted its folder.
            self._journal_end(server, StepState.FAILED, StepEnd("its run folder is gone"))
        elif state.state != "running" and (state.status or {}).get("state") != "killed":
            self._end(server, StepState.FAILED, f"it ended: {self._ended_by_itself(server)}")
        else:
            self._end(server, StepState.OK, "")

    def abandon(self) -> None:
        """Ends all that run, because the trial is not gone on with now."""
        for server in self._servers.values():
            if not server.is_open:
                continue
            if server.handle is not None:
                self._tools.launcher.stop(server.handle, server.definition.grace_s)
            end = StepEnd("it was ended with its trial")
            self._journal_end(server, StepState.INTERRUPTED, end)

    def _end(self, server: _Server, state: StepState, reason: str) -> None:
        """Ends a server that was started, brings its run folder home, journals that."""
        assert server.handle is not None  # noqa: S101
        assert server.row_id is not None  # noqa: S101
        begun, tools = self._begun, self._tools
        ended = tools.launcher.stop(server.handle, server.definition.grace_s)
        status = ended.status or {"state": "lost"}
        tool = begun.subject.tools[server.definition.tool]
        missing = absent_program(status, tool)
        if missing:
            state, reason = StepState.SKIPPED, missing
        faults.point("service-stopped")
        collected = tools.disk.collect(server.run_dir, begun.trial.id, "")
        tools.disk.sync(collected.raw_path)
        end = StepEnd(reason, status, collected.raw_path, collected.sha256)
        self._journal_end(server, state, end)
        faults.point("service-ended")
        stored = Stored(
            server.row_id, begun.trial.id, server.definition.name, state, reason, status,
            collected.raw_path, (),
        )  # fmt: skip
        tools.hooks.after_step(stored)

    def _journal_end(self, server: _Server, state: StepState, end: StepEnd) -> None:
        assert server.row_id is not None  # noqa: S101
        self._tools.journal.end_step(server.row_id, state, end)
        server.state, server.reason = state, end.reason
        words = f": {end.reason}" if end.reason else ""
        self._tell(server, f"service {server.definition.name}: {state.value}{words}")

    def _tell(self, server: _Server, text: str) -> None:
        data = {"trial": self._begun.trial.id, "service": server.definition.name}
        self._tools.observer(Event("service", text, data))


def _unready(server: _Server, *, first: bool) -> Unready:
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
