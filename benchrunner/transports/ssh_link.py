"""A live connection to a host: every hop reached, its key checked, logged in, channels opened.

A link is made once and never mended: when it is found broken, ``ssh`` makes another one.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import paramiko

from benchrunner.errors import TransportError
from benchrunner.transports import ConnectionLostError
from benchrunner.transports.host_keys import (
    OfferedKey,
    algorithms_for,
    judge,
    must_be_known,
    read_known,
)
from benchrunner.transports.sftp import Sftp
from benchrunner.transports.ssh_wire import (
    begin,
    connect_socket,
    give_up_unsent,
    shake_hands,
    through,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchrunner.transports.ssh_config import Hop
    from benchrunner.transports.ssh_login import Keys
    from benchrunner.transports.ssh_wire import Wire

_COMMANDS_AT_ONCE = 7
"""OpenSSH allows ten sessions on a connection: one is for files, one to end commands with, and one
may not be tidied up yet. A server of ours is one of the commands."""
_TIDY_S = 1.0
"""How long a refused session is asked for again."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for a host."""

    connect_s: float
    """For the whole way, and for the opening of a channel."""
    ask_s: float = 10.0
    """Quiet time after which a sign of life is asked for."""
    silent_s: float = 30.0
    """Quiet time after which the connection counts as dead."""
    back_off_s: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)
    """Pauses before each new attempt to do what a broken connection left undone."""


class Link:
    """One connection, used by many threads."""

    def __init__(self, wires: list[Wire], hop: Hop, patience: Patience) -> None:
        self._wires = wires
        self._patience = patience
        self._free = threading.BoundedSemaphore(_COMMANDS_AT_ONCE)
        self._spare = threading.Lock()
        self._lock = threading.Lock()
        self._sftp: Sftp | None = None
        self.label = hop.label
        self.env: Mapping[str, str] = {}
        """What the inventory adds to the environment of every process there."""

    @property
    def alive(self) -> bool:
        """Whether nothing is known to be broken."""
        return all(wire.is_active() for wire in self._wires)

    @contextmanager
    def session(self) -> Iterator[paramiko.Channel]:
        """A channel for one command; waits while too many are open.

        Raises:
            ConnectionLostError: The connection is broken, or the host does not answer.
        """
        with self._free:
            channel = self._open()
            try:
                yield channel
            finally:
                channel.close()

    @contextmanager
    def spare_session(self, limit_s: float) -> Iterator[paramiko.Channel]:
        """A channel beyond those for commands, to end one of them with."""
        with self._spare:
            channel = self._wires[-1].open_session(timeout=limit_s)
            try:
                yield channel
            finally:
                channel.close()

    def sftp(self) -> Sftp:
        """The channel for files, which all threads share."""
        with self._lock:
            if self._sftp is None or self._sftp.broken:
                channel = self._open()
                try:
                    channel.settimeout(self._patience.connect_s)
                    begin(channel, "subsystem", b"sftp")
                    self._sftp = Sftp(channel, self.label)
                except (paramiko.SSHException, EOFError, OSError) as error:
                    channel.close()
                    if isinstance(error, TimeoutError):
                        self.close()
                    if not self.alive:
                        raise self.lost() from error
                    raise TransportError(
                        f"{self.label} offers no file transfer (SFTP)",
                        "apt-get install -y openssh-sftp-server there, and see Subsystem sftp in"
                        " /etc/ssh/sshd_config",
                    ) from error
            return self._sftp

    def lost(self) -> ConnectionLostError:
        """The error for whatever fails because the connection is gone."""
        return ConnectionLostError(
            f"the connection to {self.label} is lost", "see whether the host and the network are up"
        )

    def close(self) -> None:
        """Ends the connection; what still waits on it fails."""
        for wire in reversed(self._wires):
            wire.close()

    def _open(self) -> paramiko.Channel:
        """A session; a refusal may only mean that the host has not tidied up the last ones yet."""
        wire, began_s = self._wires[-1], time.monotonic()
        while True:
            asked_s = time.monotonic()
            try:
                return wire.open_session(timeout=self._patience.connect_s)
            except (paramiko.SSHException, EOFError, OSError) as error:
                now_s = time.monotonic()
                # Neither yes nor no is what a frozen host says: the connection is of no use. (Which
                # it was cannot be read from the error: Paramiko mixes up those of several threads.)
                if not wire.is_active() or now_s - asked_s >= self._patience.connect_s:
                    self.close()
                    raise self.lost() from error
                if now_s - began_s > _TIDY_S:
                    raise TransportError(
                        f"{self.label} opens no further session on this connection",
                        "raise MaxSessions in /etc/ssh/sshd_config there",
                    ) from error
            time.sleep(_TIDY_S / 50)


def open_link(route: tuple[Hop, ...], name: str, keys: Keys, patience: Patience) -> Link:
    """Reaches a host by its route and logs in; ``name`` is the inventory's.

    Raises:
        UnreachableError: A hop cannot be reached.
        UnknownHostKeyError: A hop's key is not known yet.
        ChangedHostKeyError: A hop's key is not the known one.
        LoginRefusedError: A hop accepts none of our keys.
        ConnectionLostError: A connection broke on the way.
    """
    wires: list[Wire] = []
    clock = _Clock(patience.connect_s, keys)
    try:
        for hop in route:
            must_be_known(_next(wires, route, hop, clock), name)
            wires[-1].auth_timeout = clock.left_s()
            keys.log_in(wires[-1], hop)
            wires[-1].watch(patience.ask_s, patience.silent_s)
    except BaseException:
        _close(wires)
        raise
    return Link(wires, route[-1], patience)


def first_doubtful_key(
    route: tuple[Hop, ...], name: str, keys: Keys, patience: Patience
) -> OfferedKey:
    """The key of the first hop that is not known by it, else that of the host itself.

    Nobody logs in to the host; to jump hosts only where their keys are known.
    """
    wires: list[Wire] = []
    clock = _Clock(patience.connect_s, keys)
    try:
        for hop in route:
            offered = _next(wires, route, hop, clock)
            if offered.known != "same" or hop is route[-1]:
                return offered
            keys.log_in(wires[-1], hop)
    finally:
        _close(wires)
    raise AssertionError(f"the route to {name} is empty")


class _Clock:
    """What is left of a time limit; a person who types a passphrase takes nothing from it."""

    def __init__(self, limit_s: float, keys: Keys) -> None:
        self._keys = keys
        self._end_s = time.monotonic() + limit_s - keys.asking_s

    def left_s(self) -> float:
        return max(0.05, self._end_s + self._keys.asking_s - time.monotonic())


def _next(wires: list[Wire], route: tuple[Hop, ...], hop: Hop, clock: _Clock) -> OfferedKey:
    """Connects to the next hop, through the one before, and looks at its key."""
    known = read_known(hop.known_hosts)
    sock: socket.socket | paramiko.Channel
    if wires:
        sock = through(wires[-1], route[len(wires) - 1], hop, clock.left_s())
    else:
        sock = connect_socket(hop, clock.left_s())
    try:
        wires.append(shake_hands(sock, hop, algorithms_for(known, hop.known_as), clock.left_s()))
    except BaseException:
        sock.close()
        raise
    if isinstance(sock, socket.socket):
        give_up_unsent(sock, max(clock.left_s(), 1.0))
    key = wires[-1].get_remote_server_key()
    verdict, line = judge(known, _names(hop), key.asbytes())
    return OfferedKey(
        hop.label, hop.known_as, key.get_name(), key.asbytes(), verdict, line, hop.hash_names
    )


def _names(hop: Hop) -> list[str]:
    """A host's name in known_hosts, then the one without its port."""
    plain = hop.known_as.removeprefix("[").partition("]:")[0]
    return [hop.known_as] if plain == hop.known_as else [hop.known_as, plain]


def _close(wires: list[Wire]) -> None:
    for wire in reversed(wires):
        wire.close()
