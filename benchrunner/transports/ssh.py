"""A remote host over SSH. The contract is in ``transports``.

One connection for each host, shared by all threads, made again when it is found broken: what can be
repeated is repeated then, and a command that may have begun is not.
"""

from __future__ import annotations

import secrets
import stat
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from benchrunner.errors import TransportError
from benchrunner.transports import (
    Completed,
    ConnectionLostError,
    MissingFileError,
    OutcomeUnknownError,
    UnreachableError,
)
from benchrunner.transports.sftp import NO_SUCH_FILE, SftpError
from benchrunner.transports.ssh_command import Request, Running, complete, started
from benchrunner.transports.ssh_config import Routes
from benchrunner.transports.ssh_files import CopyError, DamagedCopyError, get_file, put_file, why
from benchrunner.transports.ssh_folders import get_folder, put_folder
from benchrunner.transports.ssh_link import Link, Patience, first_doubtful_key, open_link
from benchrunner.transports.ssh_login import Keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from benchrunner.definitions import Host
    from benchrunner.transports.host_keys import OfferedKey
    from benchrunner.transports.ssh_config import Hop

_Result = TypeVar("_Result")


class SshTransport:
    """A host at the end of a route. It is connected to when it is first used."""

    def __init__(
        self,
        name: str,
        route: tuple[Hop, ...],
        keys: Keys,
        patience: Patience,
        env: Mapping[str, str],
    ) -> None:
        self.host = route[-1].label
        self._name = name
        self._route = route
        self._keys = keys
        self._patience = patience
        self._env = dict(env)
        self._lock = threading.Lock()
        self._link: Link | None = None
        self._connected_once = False
        self._closed = threading.Event()

    def open(self) -> None:
        """Connects, if that has not been done."""
        self._connected()

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        input: bytes | None = None,  # noqa: A002
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Completed:
        """See ``Transport.run``. Once it may have begun it is never repeated.

        ``timeout_s`` counts from the start of the command, not from that of the connection.

        Raises:
            OutcomeUnknownError: The connection was lost meanwhile.
        """
        request = Request(argv, self.host, cwd, {**self._env, **(env or {})})
        return self._again(lambda link: complete(link, request, input, timeout_s), once=True)

    def stream(self, argv: Sequence[str]) -> AbstractContextManager[Running]:
        """Starts a command to talk to: ``read``, ``write``, and ``feed(b"")`` to end its input.

        It ends with the block: its input is closed, or its process group ended on an error.
        """
        return started(self._connected(), Request(argv, self.host, None, self._env))

    def put(self, local: Path, remote: str, mode: int | None = None) -> None:
        """See ``Transport.put``. A large file goes on where an earlier attempt was cut off."""
        self._check(remote)
        token = secrets.token_hex(4)
        sent: set[str] = set()

        def copy(link: Link) -> None:
            if local.is_dir():
                put_folder(link, local, remote, token, sent)
            else:
                put_file(link, local, remote, mode, token)

        with self._explained(f"{local} cannot be copied to {remote}", writing=True):
            self._twice(copy)

    def get(self, remote: str, local: Path) -> None:
        """See ``Transport.get``. Large files go on where an earlier attempt was cut off."""
        self._check(remote)
        token = secrets.token_hex(4)

        def copy(link: Link) -> None:
            known = link.sftp().stat(remote)
            if known.mode is not None and stat.S_ISDIR(known.mode):
                get_folder(link, remote, local, token)
            else:
                get_file(link, remote, known, local, token)

        with self._explained(f"{remote} cannot be fetched to {local}"):
            self._twice(copy)

    def read(self, remote: str, offset: int = 0, limit: int | None = None) -> bytes:
        """See ``Transport.read``."""
        self._check(remote)
        with self._explained(f"{remote} cannot be read"):
            return self._again(lambda link: link.sftp().read_whole(remote, offset, limit))

    def size(self, remote: str) -> int | None:
        """See ``Transport.size``."""
        self._check(remote)
        with self._explained(f"{remote} cannot be looked at"):
            try:
                return self._again(lambda link: link.sftp().stat(remote).size)
            except SftpError as error:
                if error.code == NO_SUCH_FILE:
                    return None
                raise

    def close(self) -> None:
        """Gives up the connection for good; what waits for an answer fails."""
        self._closed.set()
        link = self._link
        if link is not None:
            link.close()

    # ------------------------------------------------------------ the connection

    def _again(self, action: Callable[[Link], _Result], *, once: bool = False) -> _Result:
        """Does something, on a new connection when the one in use breaks.

        ``once``: only if it is certain that nothing has been done yet.
        """
        for pause_s in self._patience.back_off_s:
            try:
                return action(self._connected())
            except ConnectionLostError as error:
                if once and isinstance(error, OutcomeUnknownError):
                    raise
                self._pause(pause_s)
        return action(self._connected())

    def _twice(self, copy: Callable[[Link], None]) -> None:
        """Copies, and once more from the start when what arrived is damaged."""
        try:
            self._again(copy)
        except DamagedCopyError:
            self._again(copy)

    def _connected(self) -> Link:
        with self._lock:
            if self._closed.is_set():
                raise TransportError(f"the connection to {self.host} was closed")
            if self._link is not None and self._link.alive:
                return self._link
            if self._link is not None:
                self._link.close()
            self._link = self._reconnected() if self._connected_once else self._linked()
            self._connected_once = True
            return self._link

    def _reconnected(self) -> Link:
        """A host that was there a moment ago is given time: its sshd may be restarting."""
        for pause_s in self._patience.back_off_s:
            began_s = time.monotonic()
            try:
                return self._linked()
            except (UnreachableError, ConnectionLostError):
                # A host that keeps silent is not one whose sshd is about to be back.
                if time.monotonic() - began_s > self._patience.connect_s / 2:
                    raise
            self._pause(pause_s)
        try:
            return self._linked()
        except ConnectionLostError as error:
            # Whoever asked need not try all of this again.
            raise UnreachableError(error.message, error.hint) from error

    def _linked(self) -> Link:
        link = open_link(self._route, self._name, self._keys, self._patience)
        link.env = self._env
        return link

    def _pause(self, pause_s: float) -> None:
        if self._closed.wait(pause_s):
            raise TransportError(f"the connection to {self.host} was closed")

    # ------------------------------------------------------------ messages

    def _check(self, remote: str) -> None:
        if not remote.startswith("/"):
            raise TransportError(f"{remote!r} is not an absolute path on {self.host}")
        if "\0" in remote:
            raise TransportError(f"{remote!r} is no path on {self.host}: embedded null byte")

    @contextmanager
    def _explained(self, what: str, *, writing: bool = False) -> Iterator[None]:
        """Turns errors of both sides into a sentence that begins with ``what``."""
        try:
            yield
        except SftpError as error:
            if error.code == NO_SUCH_FILE:
                raise MissingFileError(
                    f"{what} on {self.host}: {error.path} is not there"
                ) from error
            reason = why(self._connected().sftp(), error, writing=writing)
            raise TransportError(f"{what} on {self.host}: {reason}") from error
        except CopyError as error:
            raise TransportError(f"{what} on {self.host}: {error}") from error
        except FileNotFoundError as error:
            missing = error.filename or "it"
            raise MissingFileError(f"{what}: {missing} is not there") from error
        except (OSError, ValueError) as error:
            text = (error.strerror if isinstance(error, OSError) else None) or str(error)
            reason = text[:1].lower() + text[1:]
            raise TransportError(f"{what}: {reason} on this machine") from error


def connect(
    host: Host,
    *,
    hosts: Mapping[str, Host] | None = None,
    keys: Keys | None = None,
    known_hosts: Path | None = None,
    config: Path | None = None,
) -> SshTransport:
    """Reaches a host and logs in.

    Args:
        host: The host's definition.
        hosts: The inventory, in which names of jump hosts are looked up.
        keys: The person's, with passphrases that were given already; nobody is asked without.
        known_hosts: The one file of known host keys, in place of OpenSSH's.
        config: The one file of client configuration, in place of OpenSSH's.

    Raises:
        UnreachableError: The host, or a host on the way, cannot be reached.
        UnknownHostKeyError: Nobody has trusted its key yet.
        ChangedHostKeyError: It offers another key than the known one.
        LoginRefusedError: It accepts none of our keys.
    """
    route = Routes(hosts or {}, config, known_hosts).to(host)
    patience = Patience(connect_s=host.limits.connect_s)
    transport = SshTransport(host.name, route, keys or Keys(), patience, host.env)
    transport.open()
    return transport


def offered_key(
    host: Host,
    *,
    hosts: Mapping[str, Host] | None = None,
    keys: Keys | None = None,
    known_hosts: Path | None = None,
    config: Path | None = None,
) -> OfferedKey:
    """The key that a host offers, or the first doubtful one on the way there.

    Trust it, call again, and so on until the answer is known: then the whole way is.
    """
    route = Routes(hosts or {}, config, known_hosts).to(host)
    patience = Patience(connect_s=host.limits.connect_s)
    return first_doubtful_key(route, host.name, keys or Keys(), patience)
