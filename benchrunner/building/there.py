"""Recipes on a remote host: one run under its supervisor, which needs neither us nor a connection.

The run folder ``<cache>/builds/<key>`` is the lock as well: a supervisor starts no second run in a
folder that holds one. Whoever wants the same build finds the run and waits for its end, a
controller that was killed and started again too.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from benchrunner.building.natives import packed_natives
from benchrunner.building.order import Made, first_error, log_tail
from benchrunner.building.packing import packed_source
from benchrunner.building.recipe import Progress, recipe_env
from benchrunner.building.remote_script import DAMAGED, PUBLISHED, build_script
from benchrunner.errors import BuildError, LaunchError
from benchrunner.launchers import LaunchRequest
from benchrunner.model import Command
from benchrunner.transports import MissingFileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchrunner.building.order import Order
    from benchrunner.building.packing import Packed
    from benchrunner.launchers import Launcher, RunState
    from benchrunner.model import Handle

_GRACE_S = 10.0
_SAMPLE_S = 10.0
_REMOVE = """\
run=$(sha256sum <"$1/command.json") 2>/dev/null || exit 0
[ "${run%% *}" = "$2" ] || exit 0
mv -- "$1" "$1.gone-$$"
rm -rf -- "$1".gone-*
"""
"""Arguments: the run folder, and the hash of the record of the run that it must still hold."""


class There:
    """One build on a remote host."""

    def __init__(self, order: Order, launcher: Launcher) -> None:
        self._order = order
        self._launcher = launcher
        self._transport = order.site.transport
        self._run_dir = f"{order.site.cache}/builds/{order.key}"
        self._run = ""
        """Hash of the record of the run that we look at."""
        self._is_ours = False
        """Whether we started the run: of one that was found we do not know who waits for it."""

    @contextmanager
    def alone(self) -> Iterator[None]:
        """See ``Place.alone``: the run folder is the lock."""
        yield

    def make(self) -> Made | None:
        """See ``Place.make``."""
        try:
            handle = self._found() or self._start()
        except MissingFileError:
            return None  # a run that was found has been removed a moment later
        follower = _Follower(self._order, self._run_dir)
        try:
            state = self._launcher.wait(handle, lambda now, _seconds: follower.look(now))
        except KeyboardInterrupt:
            if self._is_ours:
                self._launcher.stop(handle, _GRACE_S)
                self.discard()
            raise
        try:
            return self._ended(handle, state, follower)
        except MissingFileError:
            return None  # another controller was there first, and has removed the run

    def discard(self) -> None:
        """See ``Place.discard``. Renamed first: half of a run folder must not be found.

        A run that another controller has started there since then stays.
        """
        if self._run:
            self._order.site.script(_REMOVE, self._run_dir, self._run)

    def _look_at(self, handle: Handle) -> Handle:
        """Takes down which run it is that the folder holds now."""
        record = self._transport.read(f"{handle.run_dir}/command.json")
        self._run = hashlib.sha256(record).hexdigest()
        return handle

    def _tell_wait(self) -> None:
        order = self._order
        text = f"{order.what}: a build of it goes on{order.site.on_host}; waiting for that"
        order.workshop.on_note(text)

    def _found(self) -> Handle | None:
        """A run that goes on or has gone well. What else is found there is removed."""
        handle = self._launcher.find(self._run_dir)
        if handle is None:
            return None
        self._look_at(handle)
        state = self._launcher.poll(handle)
        if state.state == "running":
            self._tell_wait()
            return handle
        if state.state == "finished" and (state.status or {}).get("exit_code") == 0:
            return handle
        self._launcher.stop(handle, _GRACE_S)
        self.discard()
        return None

    def _start(self) -> Handle:
        order, site = self._order, self._order.site
        packed = packed_source(order.engine, order.ref, order.workshop.cache)
        sent = [self._sent(packed)]
        natives = packed_natives(order.engine, order.workshop.cache)
        sent += [self._sent(natives)] if natives else []
        origin = json.dumps({"version": packed.version, "commit": packed.commit})
        builds = f"{site.cache}/builds"
        env = site.toolchain.environment(builds) | {"GIT_CEILING_DIRECTORIES": builds}
        env |= recipe_env(order.engine, packed.version, site.toolchain)
        # Nothing is downloaded there, and a proxy's address can hold a password.
        env = {name: value for name, value in env.items() if not name.lower().endswith("_proxy")}
        script = build_script(order, sent)
        request = LaunchRequest(
            run_dir=self._run_dir,
            run_id=f"build/{order.key}",
            command=Command(("sh", "-c", script, "build", origin), env),
            cwd=builds,
            timeout_s=self._limit_s(),
            grace_s=_GRACE_S,
            interval_s=_SAMPLE_S,
            clear_env=True,
        )
        try:
            handle = self._launcher.start(request)
        except LaunchError:
            found = self._launcher.find(self._run_dir)  # another controller's, a moment ago
            if found is None:
                raise
            self._tell_wait()
            return self._look_at(found)
        self._is_ours = True
        return self._look_at(handle)

    def _sent(self, packed: Packed) -> tuple[str, str]:
        """A packed folder on the host, sent if it is not there; its path and its content's hash."""
        order = self._order
        path = f"{order.site.cache}/sources/{packed.name}"
        if self._transport.size(path) is None:
            local = order.workshop.cache.absolute() / "sources" / packed.name
            self._transport.put(local, path)
        return path, packed.content

    def _limit_s(self) -> float:
        return self._order.workshop.limit_s * max(1, len(self._order.commands))

    def _ended(self, handle: Handle, state: RunState, follower: _Follower) -> Made | None:
        """What a run has made that is not running any more."""
        if state.state == "absent":
            return None
        if state.state == "lost":
            state = self._launcher.stop(handle, _GRACE_S)
        status = state.status or {}
        if self._step() in (PUBLISHED, DAMAGED) or self._others_stopped(status):
            self.discard()
            return None
        order = self._order
        self._transport.get(f"{self._run_dir}/stdout", order.log)
        follower.rest()
        if status.get("state") == "exited" and status.get("exit_code") == 0:
            origin = json.loads(self._transport.read(f"{self._run_dir}/origin.json"))
            return Made(
                f"{self._run_dir}/kept", f"{self._run_dir}/stdout", origin["version"],
                origin["commit"], status["wall_s"],
            )  # fmt: skip
        raise BuildError(self._complaint(status), log_tail=log_tail(order.log))

    def _others_stopped(self, status: Mapping[str, Any]) -> bool:
        """Whether a run that we only waited for came to no end of its own: it is worth another."""
        return status.get("state") in ("killed", "lost") and not self._is_ours

    def _complaint(self, status: Mapping[str, Any]) -> str:
        """Why a run did not end well."""
        order, site, step = self._order, self._order.site, self._step()
        name = order.commands[int(step)][0] if step.isdigit() else "unpacking the source"
        kind = status.get("state")
        if kind == "timeout":
            return f"{name} did not end within {self._limit_s():g} s{site.on_host}"
        if kind == "killed":
            return f"the build of {order.what} was stopped{site.on_host}"
        if kind != "exited":
            why = status.get("error") or "its supervisor is gone"
            return f"the build of {order.what} was lost{site.on_host}: {why}"
        if step == DAMAGED:
            return (
                f"the source of {order.what}{site.on_host} was damaged and is sent again next time"
            )
        signal = status.get("signal_name")
        how = f"was ended by {signal}" if signal else f"failed with status {status['exit_code']}"
        return f"{name} of {order.what} {how}{site.on_host}{first_error(order.log)}"

    def _step(self) -> str:
        """How far the run came: the number of a command, or a word of the script."""
        try:
            return self._transport.read(f"{self._run_dir}/step").decode().strip()
        except MissingFileError:
            return ""


class _Follower:
    """Reads the log while it grows, for progress."""

    def __init__(self, order: Order, run_dir: str) -> None:
        self._order = order
        self._run_dir = run_dir
        self._progress = Progress(order.engine.build.count, order.workshop.on_progress)
        self._seen = 0
        self._line = b""
        self._has_total = False

    def look(self, state: RunState) -> None:
        """Reads on, if there is more than at the last look."""
        if self._progress.is_counting and (state.stdout_bytes or 0) > self._seen:
            self._feed(self._order.site.transport.read(f"{self._run_dir}/stdout", self._seen))

    def rest(self) -> None:
        """Reads what was printed last from the whole log, which is here now."""
        if self._progress.is_counting:
            self._feed(self._order.log.read_bytes()[self._seen :])

    def _feed(self, text: bytes) -> None:
        if text and not self._has_total:
            self._has_total = True
            self._progress.expect(self._dry_run())
        self._seen += len(text)
        *lines, self._line = (self._line + text).split(b"\n")
        for line in lines:
            self._progress.line(line)

    def _dry_run(self) -> str:
        """What make said before it began."""
        try:
            packed = self._order.site.transport.read(f"{self._run_dir}/dry-run.gz")
        except MissingFileError:
            return ""
        return gzip.decompress(packed).decode(errors="replace")
