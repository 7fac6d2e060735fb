"""Hosts to measure against: real sshds on loopback ports, with keys of their own, and a slow line.

Nothing here reads or writes the ``~/.ssh`` of whoever measures: processes get a home of their own.
"""

from __future__ import annotations

import getpass
import os
import queue
import shutil
import socket
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.processes import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

_SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
_STARTS_WITHIN_S = 10.0
_BLOCK_BYTES = 1 << 16


@dataclass(frozen=True)
class Finished:
    """A process that ended well."""

    stdout: str
    wall_s: float
    cpu_s: float
    """User and system time, those of its children that it waited for included."""
    rss_mib: float


class Hosts:
    """One sshd for each host, and a catalog that names them ``host1``, ``host2``, and so on."""

    def __init__(self, folder: Path, count: int) -> None:
        if _SSHD is None:
            raise RuntimeError("there is no sshd: apt-get install -y openssh-server")
        self.folder = folder
        self.ports = [_free_port() for _ in range(count)]
        self._ssh = folder / "home" / ".ssh"
        self._ssh.mkdir(parents=True)
        for key in (self._ssh / "id_ed25519", folder / "host_key"):
            argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
            subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
        self._servers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Hosts:
        try:
            for number, port in enumerate(self.ports, 1):
                self._serve(port)
                self.define(f"host{number}", port)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._stop()

    def define(self, name: str, port: int) -> None:
        """A host of the catalog at this port, its key known; hosts share nothing on the disk."""
        path = self.folder / "catalog" / "hosts" / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        lock_dir = self.folder / "locks" / name
        lock_dir.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f'name = "{name}"\naddress = "{getpass.getuser()}@127.0.0.1:{port}"\n'
            f'work_dir = "{self.folder}/work/{name}"\nlock_dir = "{lock_dir}"\nagent = false\n',
            encoding="utf-8",
        )
        key = " ".join((self.folder / "host_key.pub").read_text().split()[:2])
        with (self._ssh / "known_hosts").open("a", encoding="utf-8") as known:
            known.write(f"[127.0.0.1]:{port} {key}\n")

    @property
    def key_file(self) -> Path:
        """What one logs in with."""
        return self._ssh / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        """The keys of all hosts."""
        return self._ssh / "known_hosts"

    def client(self, program: str, port: int) -> list[str]:
        """The start of an OpenSSH client's command line; ``sftp`` and ``ssh`` name ports alike."""
        options = ("BatchMode=yes", f"Port={port}", f"IdentityFile={self.key_file}",
                   f"UserKnownHostsFile={self.known_hosts}")  # fmt: skip
        return [program, "-F", "none", *(word for one in options for word in ("-o", one))]

    def run(self, argv: Sequence[str]) -> Finished:
        """Runs a process whose home folder is that of these hosts' user.

        Raises:
            RuntimeError: It failed.
        """
        environment = {
            **os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "HOME": str(self._ssh.parent)
        }  # fmt: skip
        printed = self.folder / "printed"
        with printed.open("wb") as file:
            began = time.perf_counter()
            process = subprocess.Popen(
                argv, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=file,
                stderr=subprocess.STDOUT,
            )  # fmt: skip
            _, status, used = os.wait4(process.pid, 0)
            wall_s = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        text = printed.read_text(encoding="utf-8", errors="replace")
        if process.returncode != 0:
            reason = " / ".join(text.strip().splitlines()[-2:]) or "it printed nothing"
            command = " ".join(argv)[:200]
            raise RuntimeError(f"{command} ended with {process.returncode}: {reason}")
        return Finished(text, wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)

    def _serve(self, port: int) -> None:
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # noqa: PTH103 - sshd's own place
        settings = {
            "ListenAddress": "127.0.0.1", "Port": port, "HostKey": self.folder / "host_key",
            "AuthorizedKeysFile": self._ssh / "id_ed25519.pub", "PidFile": "none",
            "UsePAM": "no", "StrictModes": "no", "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no", "UseDNS": "no", "PrintMotd": "no",
            # Debian's bash then reads no ~/.bashrc of whoever measures.
            "SetEnv": "SHLVL=5", "Subsystem": "sftp internal-sftp",
        }  # fmt: skip
        config = self.folder / f"sshd-{port}"
        config.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        argv = [str(_SSHD), "-D", "-E", str(self.folder / "sshd.log"), "-f", str(config)]
        self._servers.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL))
        deadline = time.monotonic() + _STARTS_WITHIN_S
        while not _listens(port):
            if time.monotonic() > deadline or self._servers[-1].poll() is not None:
                raise RuntimeError(f"sshd does not listen: {self.folder}/sshd.log says why")
            time.sleep(0.01)

    def _stop(self) -> None:
        for server in self._servers:
            server.terminate()
        for server in self._servers:
            server.wait()


class SlowLine:
    """Passes bytes on to a port, each after a time of its own; any number are under way."""

    def __init__(self, target_port: int, round_trip_s: float) -> None:
        self._target_port = target_port
        self._one_way_s = round_trip_s / 2
        self.accepted_at: list[float] = []
        """When each connection came, in seconds since 1970."""
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=50)
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Takes no more connections; those that are open end with their ends."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.accepted_at.append(time.time())
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._target_port)) as server:
            threads = []
            for source, target in ((client, server), (server, client)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                under_way: queue.Queue[tuple[float, bytes]] = queue.Queue(1000)
                for work, end in ((self._take, source), (self._give, target)):
                    threads.append(
                        threading.Thread(target=work, args=(end, under_way), daemon=True)
                    )
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    def _take(self, source: socket.socket, under_way: queue.Queue[tuple[float, bytes]]) -> None:
        data = b"x"
        while data:
            try:
                data = source.recv(_BLOCK_BYTES)
            except OSError:
                data = b""
            under_way.put((time.monotonic() + self._one_way_s, data))

    def _give(self, target: socket.socket, under_way: queue.Queue[tuple[float, bytes]]) -> None:
        while True:
            due_s, data = under_way.get()
            time.sleep(max(0.0, due_s - time.monotonic()))
            try:
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(data)
            except OSError:
                return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
