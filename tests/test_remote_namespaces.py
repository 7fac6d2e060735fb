"""Hosts with a network of their own: a namespace each, and a cable that can be pulled."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from remote_support import RemoteBench, check_settled, ended, remote

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)


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
