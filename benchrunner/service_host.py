"""The host that an attempt's services run on: what is started there, and what it says of them.

In: an attempt, and one of its services. Out: commands, processes, and sentences about ports. It
journals nothing: what follows from all this is for ``services`` to say.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchrunner.command import Placement, build_command, step_names
from benchrunner.errors import ConfigurationError, LaunchError
from benchrunner.expressions import expand
from benchrunner.launchers import LaunchRequest
from benchrunner.outcomes import classify

if TYPE_CHECKING:
    from benchrunner.definitions import Service
    from benchrunner.launchers import RunState
    from benchrunner.model import Command, Handle, StepState
    from benchrunner.run_parts import Begun
    from benchrunner.run_tools import ServerPlace, Tools

SLICE_S = 0.5
"""Longest wait on a host in one go: somebody may press Ctrl-C."""
REACH_S = 5.0
"""How long a client host tries to connect to a server that is ready."""
_PAUSE_S = 0.02
_LAST_WORDS = 300
"""Characters of what a server said last that are kept in a reason."""
_SAID_BYTES = 1 << 20
"""How much of a server's output is searched for the line that says that it is ready."""


@dataclass(slots=True)
class Server:
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


class ServiceHost:
    """Starts and looks at the services of one attempt."""

    def __init__(self, tools: Tools, begun: Begun) -> None:
        """Takes the attempt; where its services run is what its job says."""
        self._tools = tools
        self._begun = begun
        self.place: ServerPlace = tools.serving(begun.trial.job)

    def command(self, server: Server) -> Command:
        """What is started.

        Raises:
            ConfigurationError: The program does not take what the workload asks.
        """
        begun, placement = self._begun, self._placement(server)
        subject, artifact = begun.subject, begun.artifact
        if self.place.env is not None:
            subject = replace(subject, host_env=self.place.env)
        definition = begun.subject.step(server.definition.name)
        return build_command(definition, subject, begun.trial.job, artifact, placement)

    def start(self, server: Server, command: Command, *, opens: bool, begun_before: bool) -> Handle:
        """Starts a server, in fresh folders of the trial when it is the first to open them."""
        trial, disk, launcher = self._begun.trial, self.place.disk, self.place.launcher
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
            return launcher.start(request)
        except LaunchError:
            # The start that a killed controller asked for can come through a moment later.
            found = launcher.find(server.run_dir) if begun_before else None
            if found is None:
                raise
            return found

    def _placement(self, server: Server) -> Placement:
        trial = self._begun.trial
        db_dir, wal_dir = self.place.disk.database(trial.id)
        return Placement(
            db_dir=db_dir, wal_dir=wal_dir, run_dir=server.run_dir, repetition=trial.repetition,
            server_address=self.place.address,
        )  # fmt: skip

    # ---------------------------------------------------------------- ports

    def taken(self, server: Server) -> str:
        """Why its port cannot be had; empty when it can.

        Raises:
            ConfigurationError: It is no port.
        """
        port = self._port(server)
        if port is None:
            return ""
        answer = self.place.launcher.port(["--free", str(port), *self._address()], SLICE_S)
        if answer["free"]:
            return ""
        where = f" at {self.place.address} of {self.place.host}" if self.place.host else ""
        who = ""
        if answer.get("pid"):
            who = f": {answer.get('command') or 'process'} (process {answer['pid']}) listens there"
        return f"port {port}{where} cannot be had, {answer['error'].lower()}{who}"

    def out_of_reach(self, server: Server) -> str:
        """Why clients cannot connect to a server of another host that is ready there.

        A firewall, most likely; the words of the clients' programs seldom say so, and some of them
        wait for ever. A server that tells by its output that it is ready is left alone: iperf3
        takes a connection for the client that it waits for.
        """
        port = self._port(server)
        if self.place.host is None or port is None or server.definition.ready:
            return ""
        where = ["--reach", str(port), *self._address()]
        answer = self._tools.launcher.port([*where, "--timeout", repr(REACH_S)], REACH_S)
        if answer["answers"]:
            return ""
        host = self._begun.trial.job.host
        place = f"{self.place.address}:{port}"
        return (
            f"it is ready on {self.place.host}, but {host} cannot connect to {place}: "
            f"{answer['error'].lower()}"
        )

    def _address(self) -> tuple[str, ...]:
        return ("--address", self.place.address) if self.place.host else ()

    def _port(self, server: Server) -> int | None:
        """The port that a service listens on."""
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

    # ---------------------------------------------------------------- looking

    def look(self, server: Server, slice_s: float) -> tuple[bool, str]:
        """Whether it is ready, a moment from now at the latest; how its run stands."""
        assert server.handle is not None  # noqa: S101
        port, launcher = self._port(server), self.place.launcher
        if port is not None and not server.definition.ready:
            arguments = ["--wait", str(port), "--run-dir", server.run_dir, *self._address()]
            answer = launcher.port([*arguments, "--timeout", repr(slice_s)], slice_s)
            return answer["answers"], answer["state"]
        time.sleep(min(slice_s, _PAUSE_S))
        state = launcher.poll(server.handle).state
        said = self.place.disk.printed(server.run_dir, _SAID_BYTES)
        return re.search(server.definition.ready, said, re.MULTILINE) is not None, state

    def polled(self, server: Server) -> RunState | None:
        """How the run of a server stands that has not ended as far as anybody knows."""
        if server.handle is None or not server.is_open:
            return None
        return self.place.launcher.poll(server.handle)

    def ended_by_itself(self, server: Server) -> str:
        """How a server came to its end, and what it said last."""
        state = self.polled(server)
        _, how = classify((state.status if state else None) or {"state": "lost"})
        said = self.place.disk.printed(server.run_dir, 4096).split("\n")
        lines = [line for line in map(str.strip, said) if line]
        words = " / ".join(lines[-3:])[-_LAST_WORDS:]
        return f"{how or 'it exited with status 0'}{': ' if words else ''}{words}"
