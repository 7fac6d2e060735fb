"""Starts processes on a host by the supervisor itself, and watches them by reading run folders.

The contract is in ``launchers``; the files of a run folder are described with the supervisor. While
a run goes on no process is started to watch it: it is read from its folder and /proc.
"""

from __future__ import annotations

import json
import posixpath
import time
from typing import TYPE_CHECKING, Any

from benchrunner.errors import LaunchError
from benchrunner.host_lease import refuse_lost
from benchrunner.launchers import RunState
from benchrunner.model import Handle
from benchrunner.transports import MissingFileError, Waiting
from benchrunner.workdir import refuse_foreign

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchrunner.launchers import LaunchRequest, Tick
    from benchrunner.transports import Completed, Transport

_TAKEN = 3
"""Exit code of the supervisor when the folder holds a run already."""
_SHORT_S = 60.0
_FASTEST_S, _SLOWEST_S, _SHARE = 0.001, 0.25, 0.05
_TICK_S, _FIRST_TICK_S = 0.25, 0.06
"""How often whoever watches is told; early once, so that a step that runs is soon known to run."""
_AWAIT_S = 0.02
"""How long a start stays on the host to see the end of a run that is over at once: that saves a
round trip, and nobody who runs for longer notices."""
_TICKS_PER_S = 100
"""USER_HZ, in which /proc counts on every Linux that databases run on."""


class DirectLauncher:
    """Runs on one host under the supervisor whose binary is at ``supervisor`` there."""

    def __init__(self, transport: Transport, supervisor: str, lease: Sequence[str] = ()) -> None:
        """Takes the host; ``lease`` are the arguments that show the right to start things there."""
        self._transport = transport
        self._supervisor = supervisor
        self._lease = tuple(lease)
        self._ended: dict[str, RunState] = {}
        """Runs that were over when their start was answered."""

    def start(self, request: LaunchRequest) -> Handle:
        """See ``Launcher.start``."""
        parent = posixpath.dirname(request.run_dir)
        if request.fresh is None and self._transport.size(parent) is None:
            self._must(self._run(["mkdir", "-p", "--", parent], _SHORT_S), request.run_dir)
        verb, *arguments = _start_arguments(request)
        argv = [self._supervisor, verb, "--await", _seconds(_AWAIT_S), *self._lease, *arguments]
        done = self._run(argv, _SHORT_S)
        if done.exit_code == _TAKEN:
            raise LaunchError(
                f"{request.run_dir} on {self._transport.host} holds a run already",
                "each run needs a new folder",
            )
        refuse_foreign(self._transport.host, done)
        refuse_lost(self._transport.host, done)
        self._must(done, request.run_dir)
        began, _, rest = done.stdout.partition(b"\n")
        ended, _, packed = rest.partition(b"\n")
        try:
            answer = json.loads(began)
            if ended:
                self._ended[request.run_dir] = _run_state(json.loads(ended), packed or None)
            return Handle(request.run_dir, answer["pid"], answer["start_time"])
        except (ValueError, KeyError, TypeError) as error:
            raise LaunchError(
                f"{self._supervisor} on {self._transport.host} answered {done.stdout[:80]!r}",
                "remove that file: it is compiled again",
            ) from error

    def find(self, run_dir: str) -> Handle | None:
        """See ``Launcher.find``. A folder whose record is damaged counts as a run that is lost."""
        record = self._record(run_dir)
        if record is None:
            return None
        supervisor = record.get("supervisor", {})
        return Handle(run_dir, supervisor.get("pid", 0), supervisor.get("start_time", 0))

    def poll(self, handle: Handle) -> RunState:
        """See ``Launcher.poll``. The status is looked for again after the process was not found."""
        status = self._status(handle)
        if status is None and self._alive(handle):
            return self._state("running", handle, None)
        status = status or self._status(handle)
        if status is not None:
            return self._state("finished", handle, status)
        if self._record(handle.run_dir) is None:
            return RunState("absent")
        return self._state("lost", handle, None)

    def stop(self, handle: Handle, grace_s: float) -> RunState:
        """See ``Launcher.stop``. What a lost run left behind is found by the mark it carries."""
        argv = [self._supervisor, "stop", "--run-dir", handle.run_dir, "--grace", _seconds(grace_s)]
        self._must(self._run(argv, grace_s + _SHORT_S), handle.run_dir)
        return self.poll(handle)

    def port(self, arguments: Sequence[str], timeout_s: float) -> dict[str, Any]:
        """What the host says of one of its TCP ports: see ``br-supervise port``."""
        done = self._run([self._supervisor, "port", *arguments], timeout_s + _SHORT_S)
        self._must(done, f"port {arguments[1]}")
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def wait(self, handle: Handle, on_tick: Tick | None = None) -> RunState:
        """See ``Launcher.wait``. Looks soon at first, then every twentieth of the time gone by."""
        ended = self._ended.pop(handle.run_dir, None)
        if ended is not None:
            return ended
        began = time.monotonic()
        before_s = self._age_s(handle)
        while True:
            waited_s = time.monotonic() - began
            state = self._look(handle, waited_s)
            if state.state != "running":
                return state
            if on_tick is not None:
                on_tick(state, before_s + time.monotonic() - began)

    def _look(self, handle: Handle, waited_s: float) -> RunState:
        """How a run stands a moment from now, or as soon as it is over."""
        pause_s = min(max(_FASTEST_S, waited_s * _SHARE), _SLOWEST_S)
        if not isinstance(self._transport, Waiting):
            state = self.poll(handle)
            if state.state == "running":
                time.sleep(pause_s)
            return state
        # The far end tells at once; in between it is only asked for the sake of whoever watches.
        slice_s = max(pause_s, _TICK_S) if waited_s > _FIRST_TICK_S else _FIRST_TICK_S
        waited = self._transport.wait_run(handle.run_dir, slice_s)
        status = json.loads(waited.status_bytes) if waited.status_bytes else None
        return RunState(waited.state, status, waited.stdout_bytes, waited.stderr_bytes)

    def _age_s(self, handle: Handle) -> float:
        """Seconds since the run was started, by the host's own clock since boot."""
        uptime_s = float(self._transport.read("/proc/uptime").split()[0])
        return max(0.0, uptime_s - handle.start_time / _TICKS_PER_S)

    def _alive(self, handle: Handle) -> bool:
        """Whether the supervisor runs: that pid, with that start time, in that boot."""
        try:
            stat = self._transport.read(f"/proc/{handle.pid}/stat")
        except MissingFileError:
            return False
        fields = stat.rpartition(b")")[2].split()
        if len(fields) < 20 or int(fields[19]) != handle.start_time or fields[0] in (b"Z", b"X"):
            return False
        record = self._record(handle.run_dir)
        boot_id = self._transport.read("/proc/sys/kernel/random/boot_id").decode().strip()
        return record is not None and record.get("boot_id") == boot_id

    def _record(self, run_dir: str) -> dict[str, Any] | None:
        return self._json(f"{run_dir}/command.json")

    def _status(self, handle: Handle) -> dict[str, Any] | None:
        return self._json(f"{handle.run_dir}/status.json") or None

    def _json(self, path: str) -> dict[str, Any] | None:
        """A file of a run folder: ``None`` when it is not there, empty when it makes no sense."""
        try:
            content = json.loads(self._transport.read(path))
        except MissingFileError:
            return None
        except ValueError:
            return {}
        return content if isinstance(content, dict) else {}

    def _state(self, state: Any, handle: Handle, status: dict[str, Any] | None) -> RunState:
        stdout, stderr = (
            self._transport.size(f"{handle.run_dir}/{name}") for name in ("stdout", "stderr")
        )
        return RunState(state, status, stdout, stderr)

    def _run(self, argv: Sequence[str], timeout_s: float) -> Completed:
        return self._transport.run(argv, timeout_s=timeout_s)

    def _must(self, done: Completed, run_dir: str) -> None:
        if done.exit_code != 0:
            why = done.stderr.decode(errors="replace").strip().removeprefix("br-supervise: ")
            raise LaunchError(
                f"the run in {run_dir} on {self._transport.host}: {why or 'no reason given'}",
                "benchrunner doctor",
            )


def _start_arguments(request: LaunchRequest) -> list[str]:
    """The supervisor's arguments for a request."""
    arguments = ["start", "--run-dir", request.run_dir, "--run-id", request.run_id]
    arguments += ["--cwd", request.cwd]
    arguments += ["--grace", _seconds(request.grace_s), "--interval", _seconds(request.interval_s)]
    if request.timeout_s is not None:
        arguments += ["--timeout", _seconds(request.timeout_s)]
    for directory in request.du_dirs:
        arguments += ["--du", directory]
    if request.device_dir is not None:
        arguments += ["--device-of", request.device_dir]
    arguments += request.pack
    if request.fresh is not None:
        arguments += request.fresh.arguments()
    if request.clear_env:
        arguments += ["--clear-env"]
    for name, value in request.command.env.items():
        arguments += ["--env", f"{name}={value}"]
    return [*arguments, "--", *request.command.argv]


def _run_state(words: dict[str, Any], packed: bytes | None) -> RunState:
    """What ``state`` printed."""
    return RunState(
        words["state"], words.get("status"), words.get("stdout_bytes"), words.get("stderr_bytes"),
        packed,
    )  # fmt: skip


def _seconds(value: float) -> str:
    """Every digit of it: a format with six would turn a week into another week."""
    return repr(float(value))
