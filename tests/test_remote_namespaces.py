"""Hosts with a network of their own: a namespace each, and a cable that can be pulled."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from fault_support import FAKE
from remote_support import RemoteBench, check_clean, check_settled, ended, remote

from benchrunner.model import StepState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.native

__all__ = ["remote"]


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@dataclass
class Namespace:
    """A network namespace, and the cable to it."""

    name: str
    number: int

    @property
    def cable(self) -> str:
        return f"br{os.getpid() % 10000}x{self.number}"

    @property
    def place(self) -> dict[str, Any]:
        """For an sshd."""
        within = ("ip", "netns", "exec", self.name)
        return {"address": f"10.251.{self.number}.2", "within": within}

    def make(self) -> None:
        ip("netns", "add", self.name)
        ip("link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        ip("addr", "add", f"10.251.{self.number}.1/30", "dev", self.cable)
        ip("link", "set", self.cable, "up")
        inside = ("-n", self.name)
        ip(*inside, "addr", "add", f"10.251.{self.number}.2/30", "dev", "eth0")
        ip(*inside, "link", "set", "eth0", "up")
        ip(*inside, "link", "set", "lo", "up")

    def remove(self) -> None:
        # The cable by itself: the kernel takes its time with what is in a namespace.
        for words in (("link", "del", self.cable), ("netns", "del", self.name)):
            subprocess.run(["ip", *words], check=False, capture_output=True)


@pytest.fixture
def namespaces() -> Iterator[list[Namespace]]:
    """Two of them."""
    made = [Namespace(f"benchrunner-{os.getpid()}-{number}", number) for number in (1, 2)]
    try:
        for namespace in made:
            namespace.make()
        yield made
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"network namespaces are not to be had here: {error}")
    finally:
        for namespace in made:
            namespace.remove()


def test_hosts_with_networks_of_their_own_and_a_cable_that_is_pulled(
    namespaces: list[Namespace], remote: RemoteBench
) -> None:
    for name, namespace in zip(("alpha", "beta"), namespaces, strict=True):
        remote.add(name, place=namespace.place)
    process = remote.started(PAUSE=1.5, steps=2)
    ip("link", "set", namespaces[0].cable, "down")
    time.sleep(2.5)
    ip("link", "set", namespaces[0].cable, "up")
    ended(process)
    check_settled(remote, trials=2)


# ---------------------------------------------------------------- from one to the other

BETWEEN = ("10.252.0.1", "10.252.0.2")
"""Addresses of a cable that only the two namespaces are on."""


def connect(namespaces: list[Namespace]) -> None:
    here, there = (("between", "netns", namespace.name) for namespace in namespaces)
    ip("link", "add", *here, "type", "veth", "peer", "name", *there)
    for namespace, address in zip(namespaces, BETWEEN, strict=True):
        ip("-n", namespace.name, "addr", "add", f"{address}/30", "dev", "between")
        ip("-n", namespace.name, "link", "set", "between", "up")


class Shipped(RemoteBench):
    """With the shipped catalog."""

    def command(self, *arguments: str) -> list[str]:
        words = super().command(*arguments)
        at = words.index("--catalog") if "--catalog" in words else None
        return words if at is None else words[:at] + words[at + 2 :]


@pytest.fixture
def shipped(tmp_path: Path, cache: Path) -> Iterator[Shipped]:
    bench = Shipped(tmp_path, cache)
    with bench.closing:
        yield bench


@pytest.mark.slow
def test_iperf3_redis_and_http_from_one_host_to_another(
    namespaces: list[Namespace], shipped: Shipped
) -> None:
    connect(namespaces)
    shipped.add("alpha", place=namespaces[0].place, build="controller")
    shipped.add("beta", place=namespaces[1].place, service_address=BETWEEN[1])
    words = ("--only", "net,redis,http", "--host", "alpha", "--server", "beta")
    done = shipped.run("sweep", "host-numbers", "--scale", "test", *words)
    assert done.returncode == 0, done.stderr
    with shipped.store() as store:
        (trial,) = store.trials()
        rows = {row.step: row for row in store.step_runs(trial.id)}
        assert {row.state for row in rows.values()} == {StepState.OK}
        assert set(rows) == {"net", "redis", "http", "iperf3-server", "redis-server", "nginx"}
        assert BETWEEN[1] in " ".join(rows["redis-server"].argv)
        found = store.measurements(rows["net"].id)
        assert [v for (_, _, _, name), v in found.items() if name == "network_gbit_per_sec"]
    page = (shipped.data / "pages" / "host-numbers" / "README.md").read_text()
    assert f"Servers ran on beta, reached from alpha at {BETWEEN[1]}" in page
    check_clean(shipped)


def test_a_server_that_the_clients_cannot_reach(
    namespaces: list[Namespace], remote: RemoteBench
) -> None:
    """It listens on an address that only its own host knows the way to."""
    ip("-n", namespaces[1].name, "addr", "add", "10.253.0.1/32", "dev", "lo")
    remote.add("alpha", place=namespaces[0].place)
    remote.add("beta", place=namespaces[1].place, service_address="10.253.0.1")
    server: dict[str, Any] = {"SERVER": FAKE / "bin" / "fake_server", "PORT": 23456}
    done = remote.sweep("fake-served", "--host", "alpha", "--server", "beta", **server)
    assert done.returncode == 1
    why = "it is ready on beta, but alpha cannot connect to 10.253.0.1:23456: network is unreach"
    assert f"service server: failed: {why}" in done.stderr
    with remote.store() as store:
        (trial,) = store.trials()
        states = {row.step: row.state for row in store.step_runs(trial.id)}
    assert (states["server"], states["ask"]) == (StepState.FAILED, StepState.FAILED)
    assert (states["ask-again"], states["alone"]) == (StepState.SKIPPED, StepState.OK)
    check_clean(remote)
