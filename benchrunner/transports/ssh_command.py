"""A command on a host, from its start to its end, in a process group that can be ended.

In: an argument list, quoted once for the login shell. A small script of ours becomes the command
(``exec``), so that its pid is the one that the script printed and its end is the channel's end.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shlex
import signal
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import paramiko

from benchrunner.errors import TransportError
from benchrunner.transports import Completed, MissingFileError, OutcomeUnknownError
from benchrunner.transports.ssh_wire import Wire, begin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchrunner.transports.ssh_link import Link

_NO_FOLDER, _FOLDER_DENIED, _DENIED, _NOT_FOUND = 123, 124, 126, 127
_SCRIPT = "; ".join(
    (
        "m=$1 d=$2",
        """trap 'printf "%s failed %s\\n" "$m" "$?" >&2' EXIT""",
        """printf "%s\\n" "$m" """,
        """printf "%s %s\\n" "$m" "$$" >&2""",
        'if [ -n "$d" ]; then [ -d "$d" ] || exit 123; cd -- "$d" 2>/dev/null || exit 124; fi',
        "shift 2",
        'while [ "$1" != -- ]; do export "$1"; shift; done',
        "shift",
        'if [ -d "$1" ] || { [ -f "$1" ] && ! [ -x "$1" ]; }; then'
        " case $1 in */*) exit 126;; esac; fi",
        'exec "$@"',
    )
)
"""Says on both streams where our output begins (a login shell may print before) and its pid. The
trap speaks only when the command could not be started: a trap does not outlive ``exec``."""
_KILL = "; ".join(
    (
        'kill -s KILL -- "-$1" 2>/dev/null',
        "i=0",
        'while kill -s 0 -- "-$1" 2>/dev/null && [ "$i" -lt 25 ]; do sleep 0.02; i=$((i+1)); done',
    )
)
_LONGEST_BYTES = 128 * 1024 - 1
"""Linux takes no longer word, and the whole command is one word of the login shell's."""
_KILL_S = 5.0
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(slots=True)
class Request:
    """What to run, and how messages speak of it."""

    argv: Sequence[str]
    host: str
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The command, shortened."""
        text = " ".join(self.argv)
        return text if len(text) <= 80 else f"{text[:77]}..."


def request_on(link: Link, argv: Sequence[str]) -> Request:
    """A command of our own, with the host's environment."""
    return Request(argv, link.label, env=link.env)


def complete(link: Link, request: Request, data: bytes | None, timeout_s: float) -> Completed:
    """Runs a command to its end; at the time limit it is ended with its process group."""
    with started(link, request) as running:
        end_s = time.monotonic() + timeout_s
        threading.Thread(target=running.feed, args=(data or b"",), daemon=True).start()
        output = _Collected(running.channel.recv)
        for event in (output.ended, running.errors.ended, running.channel.status_event):
            if not event.wait(max(0.0, end_s - time.monotonic())):
                running.stop()
                raise TransportError(
                    f"{request.words} did not end within {timeout_s:g} s on {request.host}"
                    f"{running.doubt}",
                    "find out what it waits for by running it by hand",
                )
        return running.completed(output.content)


@contextlib.contextmanager
def started(link: Link, request: Request) -> Iterator[Running]:
    """Starts a command; leaving the block on an error ends it with its process group."""
    mark = f"br-{secrets.token_hex(8)}"
    line = _line(request, mark)
    with link.session() as channel:
        try:
            begin(channel, "exec", line)
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise _unknown(request, link) from error
        running = Running(link, channel, request, mark)
        try:
            yield running
        except BaseException:
            running.stop()
            raise


class Running:
    """A command that was started."""

    def __init__(self, link: Link, channel: paramiko.Channel, request: Request, mark: str) -> None:
        self.channel = channel
        self.doubt = ""
        """What is to be added to a message when the command could not be ended."""
        self._link = link
        self._request = request
        self._mark = mark.encode()
        self._greeted = False
        self._stopped = False
        self.errors = _Collected(channel.recv_stderr)

    def feed(self, data: bytes) -> None:
        """Sends input and its end; a command need not read it."""
        with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
            self.channel.sendall(data)
            self.channel.shutdown_write()

    def write(self, data: bytes) -> None:
        """Sends input, as soon as the command has taken enough of what was sent before."""
        try:
            self.channel.sendall(data)
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise _unknown(self._request, self._link) from error

    def read(self, size: int) -> bytes:
        """Output as it comes, nothing at its end; for commands that are read while they run."""
        data = self.channel.recv(size)
        if self._greeted or not data:
            return data
        while self._mark + b"\n" not in data:
            more = self.channel.recv(size)
            if not more:
                return b""
            data += more
        self._greeted = True
        return data.partition(self._mark + b"\n")[2] or self.channel.recv(size)

    def completed(self, output: bytes = b"") -> Completed:
        """How the command ended, once its streams have.

        Raises:
            OutcomeUnknownError: The connection broke before the host said how.
            TransportError: It could not be started.
        """
        self._stopped = True
        self.errors.ended.wait()
        self.channel.status_event.wait()
        errors = self.errors.content.partition(self._mark + b" ")[2].partition(b"\n")[2]
        errors, failed, code = errors.partition(self._mark + b" failed ")
        if failed:
            raise self._not_started(int(code))
        exit_code = self._exit_code()
        return Completed(exit_code, output.partition(self._mark + b"\n")[2], errors)

    def stop(self) -> None:
        """Ends the command's process group; does so once."""
        if self._stopped:
            return
        self._stopped = True
        pid = self._pid()
        if pid is None:
            self.doubt = ", and it is unknown whether it began"
            return
        if self._kill(pid):
            return
        self.doubt = f"; process group {pid} could not be ended"

    def _kill(self, pid: int) -> bool:
        """Ends a process group through a second channel; whether that worked."""
        line = shlex.join(["exec", "/bin/sh", "-c", _KILL, "sh", str(pid)])
        try:
            with self._link.spare_session(_KILL_S) as channel:
                begin(channel, "exec", line.encode())
                return channel.status_event.wait(_KILL_S)
        except (TransportError, paramiko.SSHException, EOFError, OSError):
            return False

    def _pid(self) -> int | None:
        found = re.search(rb"%s (\d+)\n" % self._mark, self.errors.content)
        return int(found[1]) if found else None

    def _exit_code(self) -> int:
        if self.channel.exit_status != -1:
            return self.channel.exit_status
        wire = self.channel.get_transport()
        name = (
            wire.exit_signals.pop(self.channel.get_id(), None) if isinstance(wire, Wire) else None
        )
        if name is None:
            raise _unknown(self._request, self._link)
        try:
            return -signal.Signals[f"SIG{name}"].value
        except KeyError:
            raise TransportError(
                f"{self._request.words} was ended on {self._request.host} by a signal that SSH has"
                " no name for"
            ) from None

    def _not_started(self, code: int) -> TransportError:
        request = self._request
        where = f"{request.words} cannot run in {request.cwd} on {request.host}"
        if code == _NO_FOLDER:
            return MissingFileError(f"{where}: no such folder")
        if code == _FOLDER_DENIED:
            return TransportError(f"{where}: permission denied")
        if code == _NOT_FOUND:
            return TransportError(
                f"{request.argv[0]} was not found on {request.host}", "benchrunner doctor"
            )
        why = "permission denied" if code == _DENIED else f"its shell ended with {code}"
        return TransportError(f"{request.words} cannot run on {request.host}: {why}")


class _Collected:
    """A stream read to its end by a thread of its own."""

    def __init__(self, receive: object) -> None:
        self._parts: list[bytes] = []
        self.ended = threading.Event()
        threading.Thread(target=self._read, args=(receive,), daemon=True).start()

    @property
    def content(self) -> bytes:
        return b"".join(self._parts)

    def _read(self, receive: object) -> None:
        assert callable(receive)  # noqa: S101
        try:
            while part := receive(1 << 20):
                self._parts.append(part)
        except (paramiko.SSHException, EOFError, OSError):
            pass
        finally:
            self.ended.set()


def _line(request: Request, mark: str) -> bytes:
    """The one line for the login shell.

    Raises:
        TransportError: It cannot be said in SSH's one line.
    """
    if not request.argv:
        raise TransportError("an empty argument list cannot be run")
    for name in request.env:
        if not _NAME.fullmatch(name):
            raise TransportError(
                f"{request.words} cannot run on {request.host}: {name!r} is no name of an"
                " environment variable"
            )
    settings = [f"{name}={value}" for name, value in request.env.items()]
    words = ["/bin/sh", "-c", _SCRIPT, "sh", mark, request.cwd or "", *settings, "--"]
    line = os.fsencode("exec " + shlex.join([*words, *request.argv]))
    if b"\0" in line:
        raise TransportError(f"{request.words} cannot run on {request.host}: embedded null byte")
    if len(line) > _LONGEST_BYTES:
        raise TransportError(
            f"{request.words} cannot run on {request.host}: {len(line)} bytes are too long for one"
            " command",
            "give long lists as input or in a file",
        )
    return line


def _unknown(request: Request, link: Link) -> OutcomeUnknownError:
    return OutcomeUnknownError(
        f"the connection to {link.label} was lost while {request.words} ran: it is unknown whether"
        " it did its work",
        "look there before doing it again",
    )
