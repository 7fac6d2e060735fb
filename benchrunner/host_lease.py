"""The exclusive right to use a host: a lock file on the host itself, shared by all controllers.

In: a transport, the supervisor there (``lease.c`` has the rules), and who we are. Out: a lease that
is kept alive by a thread until it is released, or known to be lost. It knows no store.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from benchrunner.controller import is_seen_dead
from benchrunner.errors import BenchrunnerError, ConfigurationError, HostBusyError, LaunchError
from benchrunner.transports import ConnectionLostError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from benchrunner.controller import Owner
    from benchrunner.transports import Completed, Transport

HELD_BY_ANOTHER = 5
"""Exit code of the supervisor when another controller holds the lease."""
LOCK_FILE = "benchrunner.lease"
STALE_S = 60.0
_SHORT_S = 30.0


class LeaseLostError(HostBusyError):
    """The lease was ours, and is not any more: this controller was taken for dead."""


# ---------------------------------------------------------------- the lock


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has or had the lease, as the lock file says; ``None``: not known."""

    why: str
    """``alive``, ``step-runs``, ``unreadable``, ``lost``; empty when nobody was refused."""
    state: str
    owner: str | None
    about: str | None
    process: str | None
    fence: int | None
    since_unix: float | None
    """By the host's clock."""
    seconds_since_heartbeat: float | None
    """``None`` when that was before the host was booted."""
    stale: bool
    """No sign of life for so long that the holder counts as dead."""
    run_dir: str | None
    """Run folder of what was last started under this lease."""
    running: bool
    """Whether anything that was started under it still runs."""

    @classmethod
    def read(cls, found: Mapping[str, Any], why: str = "") -> Holder:
        """From what the supervisor prints."""
        return cls(why=why, **{name: found[name] for name in cls.__slots__ if name != "why"})

    def describe(self) -> str:
        """Who, since when, how long silent, what runs."""
        if self.state == "unreadable":
            who, silence = "an unknown holder, for the lock file cannot be read", "last changed"
        else:
            who, silence = self.about or "a nameless holder", "last sign of life"
        parts = [who]
        if self.since_unix is not None:
            parts.append(f"since {datetime.fromtimestamp(self.since_unix, UTC):%F %T} UTC")
        if self.seconds_since_heartbeat is not None:
            parts.append(f"{silence} {self.seconds_since_heartbeat:.0f} s ago")
        if self.running:
            parts.append(f"{self.run_dir or 'a step'} runs")
        return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class HostLock:
    """The lock file of one host, and how it is reached."""

    transport: Transport
    supervisor: str
    lock_dir: str = ""
    """Empty: the host's usual folder."""
    stale_s: float = STALE_S
    """Without a heartbeat for so long, we count as dead."""

    def holder(self) -> Holder | None:
        """Who has it now, or had it last; ``None`` when nobody ever had."""
        found = self.ask("show", *self._place())["holder"]
        return None if found is None else Holder.read(found)

    def take(self, owner: Owner, dead: str | None = None) -> dict[str, Any]:
        """Asks for the lease once. ``dead``: an owner that is known to have ended."""
        arguments = ["--owner", owner.id, "--store", owner.store, "--about", owner.about]
        arguments += ["--process", owner.process, "--stale", repr(self.stale_s)]
        if dead is not None:
            arguments += ["--dead", dead]
        return self.ask("take", *self._place(), *arguments)

    def ask(self, verb: str, *arguments: str) -> dict[str, Any]:
        """One round trip to the lock file; a refusal is an answer.

        Raises:
            ConfigurationError: The lock file cannot be used.
            LaunchError: The supervisor does not do what it should.
            TransportError: The host cannot be reached.
        """
        argv = [self.supervisor, "lease", verb, *arguments]
        done = self.transport.run(argv, timeout_s=_SHORT_S)
        if done.exit_code in (0, HELD_BY_ANOTHER):
            return _answer(self.transport.host, done)
        why = done.stderr.decode(errors="replace").strip().removeprefix("br-supervise: ")
        if why.startswith("the lock file "):
            raise ConfigurationError(f"{why} (on {self.transport.host})", _mend(why))
        raise LaunchError(
            f"the lease of {self.transport.host}: {why or 'no reason given'}", "benchrunner doctor"
        )

    def _place(self) -> tuple[str, ...]:
        return ("--lock", f"{self.lock_dir.rstrip('/')}/{LOCK_FILE}") if self.lock_dir else ()


def refuse_lost(host: str, done: Completed) -> None:
    """The error for a supervisor that would not work under a lost lease, if that is how it ended.

    Raises:
        LeaseLostError: Another controller has the lease, or nobody.
    """
    if done.exit_code == HELD_BY_ANOTHER:
        raise _lost(host, _answer(host, done))


def _answer(host: str, done: Completed) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError as error:
        raise LaunchError(
            f"the supervisor on {host} answered {done.stdout[:80]!r}",
            "remove that file: it is compiled again",
        ) from error
    return answer


def _mend(why: str) -> str:
    path = why.removeprefix("the lock file ").partition(" cannot be used: ")[0]
    if "locked" in why:
        return f"fuser {path} names that process; it may be frozen"
    return (
        "set lock_dir of this host to a folder, the same for all, where everybody who benchmarks "
        f"there may write; or as root: install -m 666 /dev/null {path}"
    )


def _busy(lock: HostLock, holder: Holder, path: str) -> HostBusyError:
    if holder.why == "unreadable":
        hint = f"look at it; if nobody benchmarks there: truncate -s 0 {path}"
    elif holder.why == "step-runs":
        hint = (
            "wait for that step to end, or resume with the store that it belongs to, or there: "
            f"br-supervise stop --run-dir {holder.run_dir or 'DIR'}"
        )
    else:
        hint = "wait for it to end, or end that process"
    return HostBusyError(f"{lock.transport.host} is in use by {holder.describe()}", hint)


def _lost(host: str, answer: Mapping[str, Any]) -> LeaseLostError:
    found = answer["holder"]
    if found is None:
        what = f"{answer['lock']} is gone or empty: the host was rebooted, or somebody emptied it"
    else:
        holder = Holder.read(found, answer["why"])
        verb = "was given back" if holder.state == "released" else "is held"
        what = f"it {verb} by {holder.describe()}"
    return LeaseLostError(
        f"the lease of {host} is lost: {what}",
        "nothing more was started there; benchrunner resume goes on when the host is free",
    )


# ---------------------------------------------------------------- the lease


class HostLease:
    """A lease that we hold, kept alive by a thread until it is released or lost."""

    def __init__(self, lock: HostLock, owner: Owner, granted: Mapping[str, Any]) -> None:
        """Of what ``HostLock.take`` granted; ``HostLease.take`` is what to call."""
        self.owner = owner
        self.fence: int = granted["fence"]
        """Greater than that of every earlier lease of this host."""
        found = granted["took_over"]
        self.took_over = None if found is None else Holder.read(found)
        """Who was dead; with ``running``, a step of the same store still runs."""
        self.problem: str | None = None
        """Why the last heartbeat did not arrive, for people; it is tried again."""
        self._lock = lock
        self._path: str = granted["lock"]
        self._claim = ("--owner", owner.id, "--fence", str(self.fence))
        self._loss: LeaseLostError | None = None
        self._ended = threading.Event()
        self._released = False
        self._thread = threading.Thread(target=self._keep_alive, name="lease", daemon=True)
        self._thread.start()

    @classmethod
    def take(
        cls,
        lock: HostLock,
        owner: Owner,
        *,
        wait: bool = True,
        on_wait: Callable[[Holder], None] = lambda _: None,
        stop: threading.Event | None = None,
    ) -> HostLease:
        """Takes the lease when it is free, or its holder dead and nothing of another store runs.

        Args:
            lock: of the host.
            owner: who takes it.
            wait: whether to wait while somebody else has it.
            on_wait: told for whom we wait; again when that changes.
            stop: set by another thread when it is of no use to go on waiting.

        Raises:
            HostBusyError: Somebody else has it, and we do not wait or were stopped.
            ConfigurationError: The lock file cannot be used.
        """
        stop = stop or threading.Event()
        seen, dead = None, None
        pause_s = lock.stale_s / 60
        while True:
            try:
                answer = lock.take(owner, dead)
            except ConnectionLostError:
                if seen is None or stop.wait(pause_s):
                    raise
                continue
            if answer["granted"]:
                return cls(lock, owner, answer)
            holder = Holder.read(answer["holder"], answer["why"])
            if holder.owner != dead and is_seen_dead(holder.process):
                dead = holder.owner
                continue
            if wait and seen != (holder.owner, holder.why):
                on_wait(holder)
            seen = (holder.owner, holder.why)
            if not wait or stop.wait(pause_s):
                raise _busy(lock, holder, answer["lock"])
            pause_s = min(pause_s * 1.5, lock.stale_s / 12)

    def start_arguments(self) -> tuple[str, ...]:
        """For the supervisor's ``start``, ``fresh`` and ``remove``: only while this is held."""
        return ("--lease", self._path, *self._claim)

    def check(self) -> None:
        """Nothing, while we hold it as far as we know.

        Raises:
            LeaseLostError: Another controller has taken the host over.
        """
        if self._loss is not None:
            raise self._loss

    def release(self) -> None:
        """Gives the host back; a second call changes nothing.

        Raises:
            LeaseLostError: Somebody has taken it over before.
            TransportError: The host cannot be reached: it is free when our heartbeat is stale.
        """
        if self._released:
            return
        self._released = True
        self._ended.set()
        self._thread.join()
        self.check()
        self._note(self._lock.ask("release", "--lock", self._path, *self._claim))
        self.check()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Releases it; if that fails after another error, it is a note to that one."""
        try:
            self.release()
        except BenchrunnerError as failure:
            if error is None:
                raise
            error.add_note(str(failure))

    def _keep_alive(self) -> None:
        pause_s = self._lock.stale_s / 4
        while not self._ended.wait(pause_s):
            arrived = self._beat()
            pause_s = self._lock.stale_s / (4 if arrived else 20)

    def _beat(self) -> bool:
        """Only an answer that says so is a loss; everything else may be better the next time."""
        try:
            answer = self._lock.ask("renew", "--lock", self._path, *self._claim)
        except BenchrunnerError as error:
            self.problem = error.message
            return False
        self.problem = None
        self._note(answer)
        return True

    def _note(self, answer: Mapping[str, Any]) -> None:
        if not answer["granted"]:
            self._loss = _lost(self._lock.transport.host, answer)
            self._ended.set()
