"""What is done right before a step is said, kept with the step, and a taint when it failed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from benchrunner.definitions import Step, Workload
from benchrunner.probes.noise import read_look, tree
from benchrunner.probes.preparation import Preparer
from benchrunner.surroundings import (
    FILE,
    LOOK_FROM_S,
    SERVER_FILE,
    Around,
    Surroundings,
    of_server_host,
    servers_user_s,
    understood,
)
from benchrunner.transports import Completed
from benchrunner.transports.local import LocalTransport

if TYPE_CHECKING:
    from pathlib import Path

    from benchrunner.events import Event


class NothingTrims(LocalTransport):
    """This machine, if fstrim were not permitted."""

    def run(self, argv: Any, **options: Any) -> Completed:
        if "fstrim" in " ".join(argv):
            return Completed(1, b"", b"fstrim: Operation not permitted\n")
        return super().run(argv, **options)


def workload(*before: str) -> Workload:
    step = {"name": "read", "tool": "fake", "state": "creates", "before": list(before)}
    named = {"name": "w", "title": "W", "engine": "fake", "default_scale": "s"}
    return Workload.model_validate({**named, "scale": {"s": {}}, "steps": [step]})


def around(folder: Path, seen: list[Event], *before: str) -> dict[str, Any]:
    """The file that one step leaves."""
    one = workload(*before)
    (step,) = one.steps
    assert isinstance(step, Step)
    transport = NothingTrims()
    preparer = Preparer(transport, str(folder), root=str(folder), sleep=lambda _: None)
    surroundings = Surroundings(transport, preparer, (), seen.append)
    surroundings.before(one, step, None)
    files = surroundings.after()
    return json.loads(files[FILE]) if files else {}


def test_it_is_said_before_it_is_done_and_again_when_it_failed(tmp_path: Path) -> None:
    seen: list[Event] = []
    left = around(tmp_path, seen, "sync", "fstrim", "cool-down=5")
    assert [(event.kind, event.text) for event in seen] == [
        ("preparation", "before read: sync, fstrim, cool-down=5"),
        ("warning", "read: not-trimmed: the file system of "
         f"{tmp_path} was not trimmed: fstrim: Operation not permitted"),
    ]  # fmt: skip
    parsed = understood(left)
    assert [taint.name for taint in parsed.taints] == ["not-trimmed"]
    assert parsed.facts == {
        "before: sync": "done True",
        "before: fstrim": "note fstrim: Operation not permitted",
        "before: cool-down": "waited_s 5.0",
    }


def test_nothing_wanted_is_nothing_said(tmp_path: Path) -> None:
    seen: list[Event] = []
    assert around(tmp_path, seen) == {}
    assert seen == []


BUSY = "while :; do :; done"


def test_servers_beside_a_step_are_no_noise_and_others_are(tmp_path: Path) -> None:
    """Two shells, each with a child that does nothing but use a CPU: one is our server."""
    shells = [subprocess.Popen(["sh", "-c", f"sh -c '{BUSY}' & wait"]) for _ in range(2)]
    server, stranger = (shell.pid for shell in shells)
    try:
        one = workload()
        here, there = (watched(tmp_path) for _ in range(2))
        (step,) = one.steps
        here.before(one, step, None, [server])
        there.watch(LOOK_FROM_S, [server])
        time.sleep(1.0)
        left = json.loads(here.after()[FILE])
        far = json.loads(there.after()[FILE])
        children = {pid for pid in tree(read_look(left["after"]), [server]) if pid != server}
        foreign = {pid for pid in tree(read_look(left["after"]), [stranger]) if pid != stranger}
    finally:
        for pid in (*children_of(server), *children_of(stranger), server, stranger):
            os.kill(pid, signal.SIGKILL)
        for shell in shells:
            shell.wait()
    assert 0.1 < servers_user_s(left) < 1.5
    found = [mark for mark in understood(left).taints if mark.name == "other-busy-processes"]
    said = found[0].evidence if found else ""
    assert len(children) == len(foreign) == 1
    assert not any(f"pid {pid}" in said for pid in children), said
    assert all(f"pid {pid}" in said for pid in foreign), said
    (busy,) = [mark for mark in of_server_host(far, "db").taints if mark.name == found[0].name]
    assert busy.evidence.startswith("host db, where the servers ran: other processes used a core")
    assert not any(f"pid {pid}" in busy.evidence for pid in children), busy.evidence
    assert "server host: other processes" in of_server_host(far, "db").facts
    without = {key: value for key, value in left.items() if key != "servers"}
    assert servers_user_s(without) == 0.0


def watched(folder: Path) -> Surroundings:
    transport = LocalTransport()
    preparer = Preparer(transport, str(folder), root=str(folder), sleep=lambda _: None)
    return Surroundings(transport, preparer, ())


@pytest.mark.parametrize("expected_s", [None, 1.0, LOOK_FROM_S])
def test_the_host_of_services_is_looked_at_around_steps_that_are_long_enough(
    tmp_path: Path, expected_s: float | None
) -> None:
    around = Around(watched(tmp_path), watched(tmp_path))
    one = workload()
    (step,) = one.steps
    around.before(one, step, expected_s, (), (os.getpid(),))
    assert set(around.after()) == ({FILE, SERVER_FILE} if expected_s == LOOK_FROM_S else set())
    assert around.after() == {}, "nothing is said twice"
    around.before(one, step, expected_s, (), (os.getpid(),))
    around.before(one, step, LOOK_FROM_S, (), ())
    assert set(around.after()) == {FILE}, "a step whose end nobody saw leaves nothing to the next"


def children_of(pid: int) -> list[int]:
    text = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(word) for word in text.stdout.split()]
