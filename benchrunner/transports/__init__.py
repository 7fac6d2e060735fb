"""How a host is reached: the protocol that every transport keeps, and nothing else.

In: argument lists and absolute paths. Out: bytes and exit codes. A transport never interprets what
it carries, and never gives a command to a shell of its own making: it quotes once, inside.
``tests/contract/test_transport.py`` holds every transport to this page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from benchrunner.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Completed:
    """What a command left when it ended; a signal shows as its negative number in ``exit_code``."""

    exit_code: int
    stdout: bytes
    stderr: bytes


class MissingFileError(TransportError):
    """A file or folder is not there; told apart because that is often an answer."""


class UnreachableError(TransportError):
    """No connection to the host comes about: it is off, or its name, port or way is wrong."""


class ConnectionLostError(TransportError):
    """A connection that was there broke."""


class OutcomeUnknownError(ConnectionLostError):
    """A connection broke while a command ran: nobody here knows whether it did its work."""


class LoginRefusedError(TransportError):
    """The host does not accept any of the keys."""


class UnknownHostKeyError(TransportError):
    """Nobody has said yet that the key which a host offers is really that host's."""


class ChangedHostKeyError(TransportError):
    """A host offers another key than the one known for it."""


@dataclass(frozen=True, slots=True)
class Waited:
    """How a supervised run stands when a wait is over; see ``launchers.RunState``."""

    state: Literal["absent", "running", "finished", "lost"]
    status_bytes: bytes | None
    """Contents of ``status.json`` once finished."""
    stdout_bytes: int | None
    stderr_bytes: int | None
    reason: str | None = None
    """Why it is lost."""


@runtime_checkable
class Waiting(Protocol):
    """A transport whose far end tells by itself that a supervised run is over."""

    def wait_run(self, run_dir: str, timeout_s: float) -> Waited:
        """Waits until a run is over, or so long; a run that goes on is ``running``."""
        ...


class Transport(Protocol):
    """One host. Every failure is a ``TransportError`` naming the host, and the command or path."""

    @property
    def host(self) -> str:
        """How messages call the host: ``this machine``, ``bench@nvme1``."""
        ...

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        input: bytes | None = None,  # noqa: A002 - the word that subprocess uses
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Completed:
        """Runs a short command to its end; long ones belong under a launcher.

        ``env`` adds to the host's environment. Any exit code is a result. The time limit ends the
        command with everything in its process group, and is an error.
        """
        ...

    def put(self, local: Path, remote: str, mode: int | None = None) -> None:
        """Copies a file or folder to the host; missing parent folders are made.

        It appears under its name complete or not at all. A file replaces a file; a folder replaces
        nothing. Mode bits are those of ``local``, or ``mode`` for a file. Symbolic links inside a
        folder stay links.
        """
        ...

    def get(self, remote: str, local: Path) -> None:
        """Copies a file or folder from the host, by the same rules as ``put``."""
        ...

    def read(self, remote: str, offset: int = 0, limit: int | None = None) -> bytes:
        """Up to ``limit`` bytes of a file from ``offset``; fewer at its end, none behind it."""
        ...

    def size(self, remote: str) -> int | None:
        """Length of a file in bytes (0 for those of /proc), ``None`` when nothing is there."""
        ...

    def close(self) -> None:
        """Gives up the connection. Running launchers' processes go on."""
        ...


class Running(Protocol):
    """A command that is talked to while it runs."""

    def read(self, size: int, /) -> bytes:
        """Up to so many bytes of its stdout, at least one; nothing at its end."""
        ...

    def write(self, data: bytes, /) -> None:
        """Hands all of the bytes over to its stdin."""
        ...


@runtime_checkable
class Streaming(Transport, Protocol):
    """A transport that can hold a command open to talk to."""

    def stream(self, argv: Sequence[str]) -> AbstractContextManager[Running]:
        """Starts a command; it ends with the block."""
        ...
