"""One SSH connection as Paramiko makes it, with what Paramiko leaves out.

That is: the signal that ended a command, whether the other side is still heard, larger packets, and
errors in our words. Which host keys are right is for others to say.
"""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING, Any, ClassVar

import paramiko
from paramiko.common import MSG_CHANNEL_REQUEST, MSG_GLOBAL_REQUEST
from paramiko.packet import Packetizer
from paramiko.ssh_exception import IncompatiblePeer

from benchrunner.transports import ConnectionLostError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchrunner.transports.ssh_config import Hop

_WINDOW_BYTES = 32 << 20
"""How much may be under way: 160 MB/s at 200 ms."""
_PACKET_BYTES = 200_000
"""Large packets make reception several times faster; OpenSSH sends up to 256 KiB."""
_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes256-ctr")
"""GCM needs no second pass for a MAC in Python."""
_LOG = "benchrunner.ssh"


class _Heard(Packetizer):
    """Notes when something came from the other side."""

    heard_at = 0.0

    def read_message(self) -> Any:
        message = super().read_message()
        self.heard_at = time.monotonic()
        return message


def _on_channel_request(channel: paramiko.Channel, message: paramiko.Message) -> None:
    """Keeps the name of the signal that ended a command, which Paramiko drops."""
    position = message.packet.tell()
    if message.get_text() == "exit-signal":
        message.get_boolean()
        wire = channel.get_transport()
        if isinstance(wire, Wire):
            wire.exit_signals[channel.get_id()] = message.get_text()
    message.packet.seek(position)
    paramiko.Channel._handle_request(channel, message)  # type: ignore[attr-defined]  # noqa: SLF001


class Wire(paramiko.Transport):
    """A connection whose silence is noticed."""

    _channel_handler_table: ClassVar[dict[int, Any]] = {
        **paramiko.Transport._channel_handler_table,  # type: ignore[attr-defined]  # noqa: SLF001
        MSG_CHANNEL_REQUEST: _on_channel_request,
    }

    def __init__(self, sock: Any) -> None:
        super().__init__(
            sock,
            default_window_size=_WINDOW_BYTES,
            default_max_packet_size=_PACKET_BYTES,
            packetizer_class=_Heard,
        )
        self.exit_signals: dict[int, str] = {}
        self._over = threading.Event()
        self.set_log_channel(_LOG)

    def watch(self, every_s: float, silent_s: float) -> None:
        """Asks for a sign of life when the line is quiet, and ends the connection without one.

        A frozen host still acknowledges packets, so that only an answer counts. The deadline is
        kept by a thread of its own: the one that asks can be stuck in writing.
        """
        packetizer = self._heard()
        packetizer.heard_at = time.monotonic()

        def ask() -> None:
            message = paramiko.Message()
            message.add_byte(bytes([MSG_GLOBAL_REQUEST]))
            message.add_string("keepalive@openssh.com")
            message.add_boolean(True)  # noqa: FBT003 - an answer is wanted
            self.send(message)

        def look() -> None:
            while not self._over.wait(every_s / 4):
                if not self.is_active() or time.monotonic() - packetizer.heard_at > silent_s:
                    self.close()
                    return

        packetizer.set_keepalive(every_s, ask)
        threading.Thread(target=look, name="ssh-watch", daemon=True).start()

    def send(self, message: paramiko.Message) -> None:
        """Sends a message as soon as no exchange of keys is under way."""
        self._send_user_message(message)  # type: ignore[attr-defined]

    def close(self) -> None:
        """Ends the connection and everything on it."""
        self._over.set()
        super().close()

    def _heard(self) -> _Heard:
        assert isinstance(self.packetizer, _Heard)  # noqa: S101
        return self.packetizer


def begin(channel: paramiko.Channel, kind: str, what: bytes) -> None:
    """Asks for a command (``exec``) or a ``subsystem`` on a session, and waits for no answer.

    Paramiko would wait for ever. A refusal closes the channel.
    """
    message = paramiko.Message()
    message.add_byte(bytes([MSG_CHANNEL_REQUEST]))
    message.add_int(channel.remote_chanid)
    message.add_string(kind)
    message.add_boolean(True)  # noqa: FBT003 - a refusal is to be heard
    message.add_string(what)
    wire = channel.get_transport()
    assert isinstance(wire, Wire)  # noqa: S101
    wire.send(message)


def shake_hands(sock: Any, hop: Hop, algorithms: Sequence[str], limit_s: float) -> Wire:
    """An SSH connection on a socket, or on a channel through a jump host; nobody is logged in.

    Raises:
        UnreachableError: What answers is no SSH server, one too old or new, or does not answer.
        ConnectionLostError: It hung up.
    """
    _quiet()
    wire = Wire(sock)
    wire.name = f"ssh {hop.label}"
    options = wire.get_security_options()
    options.key_types = [name for name in algorithms if name in options.key_types]
    options.ciphers = [name for name in _CIPHERS if name in options.ciphers]
    wire.banner_timeout = wire.handshake_timeout = wire.auth_timeout = limit_s
    began = time.monotonic()
    try:
        wire.start_client(timeout=limit_s)
        wire.get_remote_server_key()
    except (paramiko.SSHException, EOFError, OSError) as error:
        wire.close()
        raise _why_no_handshake(error, hop, time.monotonic() - began, limit_s) from error
    except BaseException:
        wire.close()
        raise
    return wire


def connect_socket(hop: Hop, limit_s: float) -> socket.socket:
    """A TCP connection to the first hop.

    Raises:
        UnreachableError: It does not come about.
    """
    try:
        sock = socket.create_connection((hop.address, hop.port), timeout=limit_s)
    except socket.gaierror as error:
        raise UnreachableError(
            f"{hop.label} cannot be reached: there is no host {hop.address}",
            "correct the address in the host's file, or ~/.ssh/config",
        ) from error
    except (TimeoutError, OSError, UnicodeError) as error:
        raise UnreachableError(
            f"{hop.label} cannot be reached: {_words(error, limit_s)}",
            f"{hop.ssh} shows whether it is up and where sshd is",
        ) from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def give_up_unsent(sock: socket.socket, silent_s: float) -> None:
    """Makes the kernel end a connection whose packets are not taken any more."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(silent_s * 1000))


def through(wire: Wire, jump: Hop, hop: Hop, limit_s: float) -> paramiko.Channel:
    """A channel to the next hop through one that we are logged in to.

    Raises:
        UnreachableError: The jump host does not reach it, or may not.
        ConnectionLostError: The connection to the jump host broke.
    """
    try:
        return wire.open_channel(
            "direct-tcpip", (hop.address, hop.port), ("127.0.0.1", 0), timeout=limit_s
        )
    except paramiko.ChannelException as error:
        raise UnreachableError(
            f"{hop.label} cannot be reached through {jump.label}: {error.text.lower()}",
            f"try it from there; sshd on {jump.address} must have AllowTcpForwarding yes",
        ) from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        if wire.is_active():
            raise UnreachableError(
                f"{hop.label} cannot be reached through {jump.label}: no answer within"
                f" {limit_s:.3g} s",
                "try it from there",
            ) from error
        raise ConnectionLostError(f"the connection to {jump.label} broke", jump.with_ssh) from error


def _why_no_handshake(
    error: Exception, hop: Hop, took_s: float, limit_s: float
) -> UnreachableError | ConnectionLostError:
    if isinstance(error, IncompatiblePeer):
        return UnreachableError(
            f"{hop.label} and this program have no way to encrypt in common: {error}",
            "update OpenSSH there",
        )
    if took_s >= limit_s * 0.95 or "No existing session" in str(error):
        return UnreachableError(
            f"{hop.label} cannot be reached: it does not answer within {limit_s:.3g} s",
            "see whether the host hangs; limits.connect_s in its file is the time allowed",
        )
    if "Indecipherable" in str(error) or "Invalid SSH banner" in str(error):
        return UnreachableError(f"what answers at {hop.label} is no SSH server", "correct the port")
    return ConnectionLostError(f"{hop.label} hung up before the login", hop.with_ssh)


def _words(error: Exception, limit_s: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {limit_s:.3g} s"
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return text[:1].lower() + text[1:]


def _quiet() -> None:
    """Keeps Paramiko's own messages from the terminal; whoever sets up logging gets them."""
    import logging

    logger = logging.getLogger(_LOG)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
