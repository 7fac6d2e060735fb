"""A working directory with an inventory, a home folder, and a real sshd as the host nvme1."""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sshd_support import Sshd, public

from benchrunner import workdir
from benchrunner.cli import main
from benchrunner.controller import this_controller
from benchrunner.host_lease import HostLease, HostLock
from benchrunner.launchers import LaunchRequest
from benchrunner.launchers.direct import DirectLauncher
from benchrunner.launchers.supervisor import PROGRAM, ensure_supervisor, supervisor_sources
from benchrunner.model import Command, Handle
from benchrunner.transports.local import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = LocalTransport()
ROOT = Path(__file__).parent.parent


@functools.cache
def supervisor() -> Path:
    """The real one, compiled once."""
    folder = tempfile.mkdtemp(prefix="benchrunner-tests-")
    atexit.register(shutil.rmtree, folder)
    return Path(ensure_supervisor(HERE, supervisor_sources(), folder))


@dataclass
class Lab:
    """A working directory with an inventory, a home folder, and the host nvme1."""

    folder: Path
    sshd: Sshd
    program: Callable[..., tuple[int, str, str]]

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "home" / ".ssh" / "known_hosts"

    @property
    def where(self) -> str:
        return f"{self.sshd.user}@127.0.0.1:{self.sshd.port}"

    def host(self, name: str = "nvme1", **changes: Any) -> None:
        """Writes a host's file."""
        fields: dict[str, Any] = {
            "name": name, "address": f"127.0.0.1:{self.sshd.port}", "user": self.sshd.user,
            "key_files": [str(self.sshd.client_key)], "agent": False, "work_dir": str(self.work),
            "lock_dir": str(self.folder), **changes,
        }  # fmt: skip
        lines = [f"{key} = {_toml(value)}" for key, value in fields.items() if value is not None]
        path = self.folder / "hosts" / f"{name}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines) + "\n")

    def trust(self) -> None:
        """Makes the host's key known."""
        self.known_hosts.parent.mkdir(parents=True, exist_ok=True)
        name = f"[127.0.0.1]:{self.sshd.port}"
        self.known_hosts.write_text(f"{name} {public(self.sshd.host_keys['ed25519'])}\n")

    def prepared(self) -> str:
        """Claims the work directory as a sweep does; the supervisor's path there."""
        workdir.claim(HERE, str(self.work), "work directory")
        target = self.work / "cache" / "supervisor" / supervisor().parent.name / PROGRAM
        target.parent.mkdir(parents=True)
        shutil.copy(supervisor(), target)
        return str(target)

    def trial(self, name: str) -> Path:
        """A trial's folder with a database in it."""
        folder = self.work / "trials" / name
        workdir.claim(HERE, str(folder), f"trial {name}")
        (folder / "db").mkdir()
        (folder / "db" / "000001.sst").write_bytes(b"x" * 3_000_000)
        return folder

    def run(self, folder: Path, *argv: str) -> Handle:
        """Starts a step of a trial."""
        run_dir = f"{folder}/runs/1/01-load"
        request = LaunchRequest(run_dir, "t", Command(argv, {}), "/", interval_s=5.0)
        return DirectLauncher(HERE, str(supervisor())).start(request)

    def ok(self, *arguments: str) -> str:
        """What a verb prints that must end well."""
        code, out, err = self.program("hosts", *arguments)
        assert code == 0, (out, err)
        return out

    def fails(self, code: int, *arguments: str) -> str:
        """What a verb prints that must end with an exit code."""
        found, out, err = self.program("hosts", *arguments)
        assert found == code, (out, err)
        return out + err

    def attended(self, prompt: str, answer: str, *arguments: str) -> tuple[int, str]:
        """A verb with a person at the terminal, who answers when it has asked."""
        mine, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "benchrunner", "hosts", *arguments], stdin=theirs,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        try:
            assert process.stdout is not None
            printed = b""
            # A hidden answer that is typed before the question is thrown away by the terminal.
            while prompt.encode() not in printed:
                byte = process.stdout.read(1)
                assert byte, printed
                printed += byte
            os.write(mine, f"{answer}\n".encode())
            rest, _ = process.communicate(timeout=60)
        finally:
            process.kill()
            os.close(mine)
            os.close(theirs)
        return process.returncode, (printed + rest).decode()


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + " }"
    return json.dumps(value)


@pytest.fixture
def lab(
    tmp_path: Path,
    sshd: Sshd,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Lab]:
    thresholds, handler = gc.get_threshold(), signal.getsignal(signal.SIGTERM)
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BENCHRUNNER_CACHE", str(tmp_path / "home" / "cache"))
    for name in ("BENCHRUNNER_DATA", "BENCHRUNNER_PATH", "SSH_AUTH_SOCK"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["benchrunner", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        assert isinstance(stopped.value.code, int)
        return stopped.value.code, printed.out, printed.err

    made = Lab(tmp_path, sshd, run)
    made.host()
    yield made
    gc.set_threshold(*thresholds)
    signal.signal(signal.SIGTERM, handler)


@contextlib.contextmanager
def held(lab: Lab) -> Iterator[None]:
    """Another controller uses the host."""
    lock = HostLock(HERE, str(supervisor()), str(lab.folder))
    with HostLease.take(lock, this_controller("elsewhere", "a sweep of somebody else")):
        yield


def lines_of(printed: str) -> dict[str, list[str]]:
    """Check -> its lines as (state, evidence)."""
    found: dict[str, list[str]] = {}
    for line in printed.splitlines():
        state, _, rest = line.partition("  ")
        words = rest.split(None, 1)
        if state.strip() in ("ok", "gap", "MISSING", "unknown", "-") and len(words) == 2:
            found.setdefault(words[0], []).append(f"{state.strip()}: {words[1]}")
    return found


def words(printed: str) -> str:
    """The lines of a table without their padding."""
    return "".join(" ".join(line.split()) + "\n" for line in printed.splitlines())
