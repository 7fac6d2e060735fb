"""What is done right before a step is said, kept with the step, and a taint when it failed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from benchrunner.definitions import Step, Workload
from benchrunner.probes.preparation import Preparer
from benchrunner.surroundings import FILE, Surroundings, understood
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
