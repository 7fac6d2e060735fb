"""The real program on a fake engine on hosts that are real sshds, with a home folder of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fault_support import FAKE, Bench, wait_for
from hosts_support import supervisor
from sshd_support import DelayProxy, Sshd, make_key, public, running_sshd

from benchrunner import workdir
from benchrunner.host_lease import LOCK_FILE
from benchrunner.launchers.supervisor import PROGRAM
from benchrunner.transports.local import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SUPERVISORS = "cache/supervisor"
"""Where a host keeps them, below its work directory."""


@dataclass
class RemoteHost:
    """One host: its sshd, the network in front of it, and its folders."""

    name: str
    folder: Path
    sshd: Sshd
    network: DelayProxy | None
    """Between us and it, for tests that disturb the connection."""

    work: Path

    @property
    def lock(self) -> Path:
        return self.folder / "lock" / LOCK_FILE

    @property
    def port(self) -> int:
        return self.network.port if self.network else self.sshd.port

    @property
    def address(self) -> str:
        """As known_hosts and messages have it."""
        return f"[{self.sshd.address}]:{self.port}"

    def prepare(self) -> None:
        """Puts the supervisor there, as an earlier sweep would have."""
        workdir.claim(LocalTransport(), str(self.work), "work directory")
        target = self.work / SUPERVISORS / supervisor().parent.name / PROGRAM
        target.parent.mkdir(parents=True)
        shutil.copy(supervisor(), target)

    def records(self, step: str = "*") -> list[Path]:
        """command.json of the steps that were started and not yet removed."""
        return list((self.work / "trials").glob(f"*/runs/*/*-{step}/command.json"))

    def lease(self) -> str:
        """State of the lease, as the host tells it."""
        argv = [str(supervisor()), "lease", "show", "--lock", str(self.lock)]
        shown = subprocess.run(argv, capture_output=True, text=True, check=True)
        return str(json.loads(shown.stdout)["state"])

    def files(self) -> list[Path]:
        """What lies in the folder of trials."""
        trials = self.work / "trials"
        return list(trials.iterdir()) if trials.exists() else []


@dataclass
class RemoteBench(Bench):
    """One results folder, and hosts to sweep on."""

    hosts: dict[str, RemoteHost] = field(default_factory=dict)
    closing: ExitStack = field(default_factory=ExitStack)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def known_hosts(self) -> Path:
        return self.home / ".ssh" / "known_hosts"

    def environment(self, fault: str = "") -> dict[str, str]:
        found = super().environment(fault)
        found.pop("SSH_AUTH_SOCK", None)
        return {**found, "HOME": str(self.home)}

    def disturbed(self, name: str = "alpha", **options: Any) -> tuple[RemoteHost, DelayProxy]:
        """A host, and the network in front of it."""
        host = self.add(name, disturbed=True, **options)
        assert host.network is not None
        return host, host.network

    def add(
        self, name: str, *, prepared: bool = True, disturbed: bool = False,
        place: Mapping[str, Any] | None = None, **changes: Any,
    ) -> RemoteHost:  # fmt: skip
        """A running sshd, trusted, that lets our one key in; ``place`` is for ``Sshd``."""
        folder = self.folder / name
        (folder / "lock").mkdir(parents=True)
        sshd = self.closing.enter_context(
            contextmanager(running_sshd)(folder / "sshd", **(place or {}))
        )
        network = self.closing.enter_context(DelayProxy(sshd.port)) if disturbed else None
        host = self.hosts[name] = RemoteHost(name, folder, sshd, network, folder / "work")
        key = self.home / ".ssh" / "id_ed25519"
        if not key.exists():
            make_key(key)
        sshd.authorize(key)
        with self.known_hosts.open("a") as known:
            known.write(f"{host.address} {public(sshd.host_keys['ed25519'])}\n")
        self.define(host, **changes)
        if prepared:
            host.prepare()
        return host

    def define(self, host: RemoteHost, **changes: Any) -> None:
        """Writes a host's file."""
        fields: dict[str, Any] = {
            "name": host.name, "address": f"{host.sshd.address}:{host.port}", "agent": False,
            "work_dir": str(host.work), "lock_dir": str(host.lock.parent),
            "env": {"PATH": f"{FAKE / 'bin'}:{os.environ['PATH']}"},
            "limits": {"reconnect_s": 40}, **changes,
        }  # fmt: skip
        lines = [f"{key} = {_toml(value)}" for key, value in fields.items()]
        path = self.folder / "hosts" / f"{host.name}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines) + "\n")

    def on_hosts(self, *more: str) -> tuple[str, ...]:
        """Options that name all hosts."""
        return (*(word for name in self.hosts for word in ("--host", name)), *more)

    def started(
        self, *more: str, steps: int = 2, workload: str = "fake", **params: object
    ) -> subprocess.Popen[str]:
        """A sweep on all hosts, of which so many steps have begun."""
        process = self.start(*self.sweep_arguments(workload, *self.on_hosts(*more), **params))
        before = sum(self.executed().values())
        wait_for(f"step {steps}", lambda: self._has_begun(process, before + steps))
        return process

    def _has_begun(self, process: subprocess.Popen[str], steps: int) -> bool:
        begun = sum(self.executed().values()) >= steps
        assert begun or process.poll() is None, process.communicate()
        return begun

    def start(self, *arguments: str, fault: str = "") -> subprocess.Popen[str]:
        """See ``Bench``; it does not outlive the test."""
        process = super().start(*arguments, fault=fault)
        self.closing.callback(_close, process)
        return process

    def resumed(self) -> str:
        """Goes on to the end; what was said."""
        done = self.run("resume", "--format", "none")
        assert done.returncode == 0, done.stderr
        return done.stderr

    def strays(self) -> list[list[bytes]]:
        """Processes of programs that lie below this folder: supervisors, servers of ours."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].startswith(bytes(self.folder)):
                found.append(words)
        return found


@pytest.fixture
def remote(tmp_path: Path, cache: Path) -> Iterator[RemoteBench]:
    """The program on a results folder of its own, without a host yet."""
    bench = RemoteBench(tmp_path, cache)
    with bench.closing:
        yield bench


def _close(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def ended(process: subprocess.Popen[str]) -> str:
    """Waits for a good end; what was said."""
    _, stderr = process.communicate(timeout=90)
    assert process.returncode == 0, stderr
    return stderr


def check_settled(
    bench: RemoteBench, *, trials: int = 1, states: tuple[str, ...] = ("ok",)
) -> None:
    """Every trial has an end, every step ran once, and nothing is left over anywhere."""
    rows = bench.rows()
    assert [row["state"] for row in rows] == [*states] * (trials // len(states)), rows
    assert set(bench.executed().values()) == {1}, "a step ran twice"
    check_clean(bench)


def check_clean(bench: RemoteBench) -> None:
    """No process, no folder of a trial, no lease, no half of a copy is left over."""
    wait_for("the end of all processes", lambda: not bench.orphans() and not bench.strays())
    assert not list(bench.data.rglob("*.partial"))
    with bench.store() as store:
        held = {name: store.lease(name) for name in bench.hosts}
    assert held == dict.fromkeys(bench.hosts)
    for host in bench.hosts.values():
        assert not host.files(), "the host is not clean"
        assert host.lease() in ("released", "free")


def without_job(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Job ids hash parameters and host: the only thing that differs."""
    return [{key: value for key, value in row.items() if key != "job"} for row in rows]


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + " }"
    return json.dumps(value)
