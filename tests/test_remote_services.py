"""Servers beside steps on a host reached over SSH: found, adopted and ended there as here."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fault_support import FAKE
from remote_support import RemoteBench, check_settled, ended, remote

from benchrunner.model import StepState

if TYPE_CHECKING:
    import subprocess

pytestmark = pytest.mark.native

__all__ = ["remote"]

STEPS = ("ask", "ask-again", "alone")


def served(bench: RemoteBench) -> int:
    """How many times a server was started."""
    path = Path(f"{bench.log}.served")
    return len(path.read_text().splitlines()) if path.exists() else 0


def settings() -> dict[str, Any]:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return {"SERVER": FAKE / "bin" / "fake_server", "PORT": one.getsockname()[1]}


def sweep(
    bench: RemoteBench, fault: str = "", **params: object
) -> subprocess.CompletedProcess[str]:
    return bench.sweep("fake-served", *bench.on_hosts(), fault=fault, **settings(), **params)


def check_all_ok(bench: RemoteBench) -> None:
    with bench.store() as store:
        (trial,) = store.trials()
        states = {row.step: row.state for row in store.step_runs(trial.id)}
    assert states == dict.fromkeys(("server", *STEPS), StepState.OK)
    check_settled(bench)


@pytest.mark.parametrize(
    "fault",
    ["", "service-begun", "service-started", "service-stopped", "step-started", "step-stored"],
)
def test_a_server_on_another_host_serves_and_is_ended(remote: RemoteBench, fault: str) -> None:
    remote.add("alpha")
    done = sweep(remote, fault, PAUSE=0.4)
    if fault:
        assert done.returncode == -9, done.stderr
        remote.resumed()
    else:
        assert done.returncode == 0, done.stderr
    assert served(remote) == 1
    check_all_ok(remote)


def test_a_server_outlives_a_lost_connection(remote: RemoteBench) -> None:
    _, network = remote.disturbed()
    process = remote.started(steps=1, workload="fake-served", PAUSE=2, **settings())
    network.cut()
    ended(process)
    assert served(remote) == 1
    check_all_ok(remote)


def test_a_port_in_use_there_says_who_listens(remote: RemoteBench) -> None:
    remote.add("alpha")
    chosen = settings()
    with socket.create_server(("127.0.0.1", int(str(chosen["PORT"])))):
        done = remote.sweep("fake-served", *remote.on_hosts(), **chosen)
    assert done.returncode == 1
    assert f"port {chosen['PORT']} cannot be had, address already in use" in done.stderr
    assert served(remote) == 0
