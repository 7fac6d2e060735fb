"""A real sshd on a loopback port, keys made for the test, and a bad network in front of it.

``from sshd_support import sshd`` gives a test module the fixture; nothing here reads or writes the
real ``~/.ssh``.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import queue
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchrunner.definitions import Host
from benchrunner.transports.ssh import SshTransport, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
SFTP_SERVER = "internal-sftp"
_STARTS_WITHIN_S = 10.0


def until(condition: Callable[[], Any], what: str = "it") -> None:
    """Waits for something that another process or thread does."""
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError(f"{what} did not come about within 10 s")


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_key(path: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    """A new key pair; returns the private half's path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    argv = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "test", "-f", str(path)]
    if kind == "rsa":
        argv += ["-b", "2048"]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
    return path


def public(key: Path) -> str:
    """Type and content of a key's public half, as authorized_keys and known_hosts have them."""
    return " ".join(key.with_name(key.name + ".pub").read_text().split()[:2])


def fingerprint_of(key: Path) -> str:
    """As OpenSSH prints it."""
    argv = ["ssh-keygen", "-l", "-f", str(key) + ".pub"]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()[1]


class Sshd:
    """One sshd with a folder of its own."""

    def __init__(
        self,
        folder: Path,
        *,
        host_key_kinds: tuple[str, ...] = ("ed25519",),
        address: str = "127.0.0.1",
        within: tuple[str, ...] = (),
    ) -> None:
        """Makes the keys. ``within`` is a command that starts it elsewhere: in a namespace."""
        self.folder = folder
        self.address = address
        self._within = within
        self.port = free_port()
        self.user = getpass.getuser()
        self.host_keys = {kind: make_key(folder / f"host_{kind}", kind) for kind in host_key_kinds}
        self.client_key = make_key(folder / "client")
        self.settings: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self.authorize(self.client_key)
        self.known_hosts = folder / "known_hosts"
        self.config = folder / "ssh_config"
        self.config.write_text("")
        self.trust()

    # ------------------------------------------------------------ keys

    def authorize(self, *keys: Path) -> None:
        """Lets these keys in, and no others."""
        (self.folder / "authorized_keys").write_text("".join(f"{public(key)}\n" for key in keys))

    def trust(self, name: str | None = None, kind: str = "ed25519") -> None:
        """Makes known_hosts hold this host's key and nothing else."""
        name = name or f"[{self.address}]:{self.port}"
        self.known_hosts.write_text(f"{name} {public(self.host_keys[kind])}\n")

    def change_host_key(self, kind: str = "ed25519") -> None:
        """Gives the host another key, as a new installation would."""
        self.host_keys[kind] = make_key(self.folder / f"host_{kind}", kind)
        self.restart()

    # ------------------------------------------------------------ life

    def start(self) -> None:
        """Starts it, on the same port as ever, and waits until it listens."""
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        settings = {
            "ListenAddress": self.address,
            "Port": str(self.port),
            "AuthorizedKeysFile": str(self.folder / "authorized_keys"),
            "PidFile": str(self.folder / "pid"),
            "UsePAM": "no",
            "StrictModes": "no",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "MaxStartups": "200",
            "MaxSessions": "100",
            "UseDNS": "no",
            "PrintMotd": "no",
            # Debian's bash then reads no ~/.bashrc of whoever runs the tests.
            "SetEnv": "SHLVL=5",
            "Subsystem": f"sftp {SFTP_SERVER}",
            **self.settings,
        }
        lines = [f"{name} {value}" for name, value in settings.items() if value]
        lines += [f"HostKey {key}" for key in self.host_keys.values()]
        config = self.folder / "sshd_config"
        config.write_text("\n".join(lines) + "\n")
        assert SSHD is not None
        self._process = subprocess.Popen(
            [*self._within, SSHD, "-D", "-E", str(self.folder / "log"), "-f", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(self._listens, "sshd listening")

    def stop(self) -> None:
        """Ends it with all its connections."""
        if self._process is None:
            return
        self.thaw()
        # Found first: without their parent nobody can tell whose they are.
        sessions = self.sessions()
        self._process.terminate()
        self._process.wait()
        _kill(sessions)
        self._process = None

    def restart(self) -> None:
        """Ends it and starts it again."""
        self.stop()
        self.start()

    def _listens(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "log").read_text(errors="replace")
        with contextlib.suppress(OSError), socket.create_connection((self.address, self.port)):
            return True
        return False

    # ------------------------------------------------------------ faults

    def sessions(self) -> list[int]:
        """Pids of the processes that serve connections, and of their helpers."""
        assert self._process is not None
        return _below(self._process.pid, "sshd")

    def kill_sessions(self) -> None:
        """Ends every connection as a crash would."""
        _kill(self.sessions())

    def freeze(self) -> None:
        """Stops it and what serves its connections: packets are taken, nothing answers."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets it go on."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: signal.Signals) -> None:
        assert self._process is not None
        for pid in (self._process.pid, *self.sessions()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    # ------------------------------------------------------------ the other side

    def host(self, name: str = "nvme1", **changes: Any) -> Host:
        """Its definition, as an inventory has it."""
        fields: dict[str, Any] = {
            "name": name,
            "address": f"{self.address}:{self.port}",
            "user": self.user,
            "key_files": [str(self.client_key)],
            "agent": False,
        }
        return Host(**{**fields, **changes})

    def connect(self, host: Host | None = None, **options: Any) -> SshTransport:
        """A transport to it that reads no file of the person who runs the tests."""
        options = {"known_hosts": self.known_hosts, "config": self.config, **options}
        return connect(host or self.host(), **options)


def _kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _below(pid: int, program: str) -> list[int]:
    """Pids of a process's descendants that run a program."""
    children: dict[int, list[int]] = {}
    names: dict[int, str] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = entry.read_text().rpartition(")")
            number, _, program_name = name.partition("(")
            names[int(number)] = program_name
            children.setdefault(int(rest.split()[1]), []).append(int(number))
    found, look = [], [pid]
    while look:
        below = [child for child in children.get(look.pop(), []) if names[child] == program]
        found += below
        look += below
    return found


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    """A running sshd, trusted and ready to be logged in to."""
    yield from running_sshd(tmp_path / "sshd")


def running_sshd(folder: Path, **options: Any) -> Iterator[Sshd]:
    """An sshd that is ended afterwards, with everything that it started."""
    if SSHD is None:
        pytest.skip("needs Debian's openssh-server")
    folder.mkdir(parents=True)
    server = Sshd(folder, **options)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def ssh_host(sshd: Sshd) -> Host:
    """The definition of the host that ``sshd`` is."""
    return sshd.host()


@pytest.fixture
def proxy(sshd: Sshd) -> Iterator[DelayProxy]:
    """A network between us and ``sshd``; known_hosts holds the host under the proxy's port."""
    with DelayProxy(sshd.port) as network:
        sshd.trust(f"[127.0.0.1]:{network.port}")
        yield network


class DelayProxy:
    """Passes bytes on to a port; delays, stalls, cuts and counts them."""

    def __init__(self, target_port: int, delay_s: float = 0.0) -> None:
        self._target_port = target_port
        self.delay_s = delay_s
        """One way."""
        self.up_bytes = 0
        """Towards the server."""
        self.down_bytes = 0
        self._flowing = threading.Event()
        self._flowing.set()
        self._cut_at: int | None = None
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=50)
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> DelayProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._flowing.set()
        self.cut()

    def stall(self) -> None:
        """Lets nothing pass; connections stay."""
        self._flowing.clear()

    def resume(self) -> None:
        """Lets everything pass again."""
        self._flowing.set()

    def cut(self) -> None:
        """Resets every connection now."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for sock in pair:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
                sock.close()

    def cut_after(self, count: int) -> None:
        """Resets every connection, once, when so many bytes more have passed."""
        self._cut_at = self.up_bytes + self.down_bytes + count

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target_port))
            except OSError:
                client.close()
                continue
            for sock in (client, server):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._pairs.append((client, server))
            self._pump(client, server, "up_bytes")
            self._pump(server, client, "down_bytes")

    def _pump(self, source: socket.socket, target: socket.socket, counter: str) -> None:
        under_way: queue.Queue[tuple[float, bytes]] = queue.Queue(1000)

        def take() -> None:
            data = b"x"
            while data:
                try:
                    data = source.recv(1 << 16)
                except OSError:
                    data = b""
                under_way.put((time.monotonic() + self.delay_s, data))

        def give() -> None:
            while True:
                due_s, data = under_way.get()
                time.sleep(max(0.0, due_s - time.monotonic()))
                self._flowing.wait()
                try:
                    if not data:
                        target.shutdown(socket.SHUT_WR)
                        return
                    target.sendall(data)
                except OSError:
                    return
                self._count(counter, len(data))

        for work in (take, give):
            threading.Thread(target=work, daemon=True).start()

    def _count(self, counter: str, length: int) -> None:
        with self._lock:
            setattr(self, counter, getattr(self, counter) + length)
            due = self._cut_at is not None and self.up_bytes + self.down_bytes >= self._cut_at
            if due:
                self._cut_at = None
        if due:
            self.cut()
