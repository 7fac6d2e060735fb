"""Bars in a terminal: what stands in them, what stays above, and that they keep out of the way."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from benchrunner.cli import progress
from benchrunner.cli.bars import Bars
from benchrunner.events import Event

if TYPE_CHECKING:
    from collections.abc import Iterator


class Screen:
    """Bars on a terminal that is a text."""

    def __init__(self, width: int = 120) -> None:
        self.file = io.StringIO()
        console = Console(file=self.file, force_terminal=True, width=width, height=40)
        self.bars = Bars(console)

    def tell(self, kind: str, text: str = "", **data: Any) -> None:
        self.bars(Event(kind, text, data))  # type: ignore[arg-type]

    def new(self) -> str:
        """What was written since the last look, without colours."""
        written = self.file.getvalue()
        self.file.seek(0)
        self.file.truncate()
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", written)

    def rows(self) -> list[str]:
        """The bars as they are drawn now, without the bars themselves."""
        self.new()
        self.bars.draw()
        lines = (re.sub(r"\s*[━╸╺]+ *", " | ", line) for line in self.new().splitlines())
        return [line.rstrip() for line in lines]


@pytest.fixture
def screen() -> Iterator[Screen]:
    made = Screen()
    with made.bars.drawn():
        yield made


def begin(screen: Screen, host: str = "", trial: int = 1, **data: Any) -> None:
    """A trial of two steps."""
    named = {"host": host} if host else {}
    at = f"{host}: " if host else ""
    more = {"steps": 2, "cell": "rocksdb 7.2.2 DIO", **named, **data}
    screen.tell("trial", f"{at}trial {trial} of 2: flash rocksdb 7.2.2 DIO", **more)


def test_nothing_is_drawn_before_there_is_a_plan(screen: Screen) -> None:
    assert screen.rows() == []
    screen.tell("note", "a line")
    screen.tell("note")
    assert screen.new() == "a line\n"
    screen.tell("step-end", "load: ok")
    assert screen.new() == "    load: ok\n"


def test_a_row_for_the_sweep_and_one_for_the_step_of_each_host(screen: Screen) -> None:
    screen.tell("plan", "sweep 1: 2 of 2 trials to run", trials=2, seconds=500)
    for number, host in enumerate(("alpha", "beta"), 1):
        begin(screen, host, number)
        screen.tell("step", f"{host}: load started", host=host, step="load", expected_s=100.0)
    screen.tell("tick", host="alpha", step="load", elapsed_s=61.0, ops_per_sec=1234567.0)
    screen.tell("tick", host="gamma", step="load", elapsed_s=61.0)
    sweep, alpha, beta = screen.rows()
    assert re.fullmatch(r"sweep 1: 0 of 2 trials \| 0:00:0\d, 0:08:\d\d left", sweep)
    assert re.fullmatch(
        r"  alpha load \(rocksdb 7.2.2 DIO\) \| 0:01:0\d, 0:00:3\d left +1,234,567 ops/sec", alpha
    )
    assert beta.startswith("  beta load (rocksdb 7.2.2 DIO) | 0:00:0")


def test_a_trial_that_ends_is_named_and_counted(screen: Screen) -> None:
    screen.tell("plan", "sweep 1: 2 of 2 trials to run", trials=2)
    begin(screen, "alpha")
    screen.tell("step", step="load", host="alpha")
    screen.tell("step-end", "alpha: load: failed: no space", host="alpha")
    screen.tell("trial-end", "alpha: trial failed: load: no space", host="alpha")
    printed = screen.new()
    assert "    alpha: load: failed: no space\n" in printed
    assert "alpha: trial 1 of 2: flash rocksdb 7.2.2 DIO: failed\n" in printed
    (sweep,) = screen.rows()
    assert sweep.startswith("sweep 1: 1 of 2 trials | ")


def test_a_trial_of_which_no_step_ran_says_why(screen: Screen) -> None:
    screen.tell("plan", "sweep 1: 2 of 2 trials to run", trials=2)
    begin(screen)
    screen.tell("trial-end", "trial skipped: no O_DIRECT")
    assert "trial 1 of 2: flash rocksdb 7.2.2 DIO: skipped: no O_DIRECT\n" in screen.new()
    screen.tell("trial-end", "trial ok")
    (sweep,) = screen.rows()
    assert sweep.startswith("sweep 1: 2 of 2 trials | ")


def test_a_second_sweep_takes_the_place_of_the_first(screen: Screen) -> None:
    screen.tell("plan", "sweep 1: 1 of 1 trials to run", trials=1)
    screen.tell("trial-end", "trial ok")
    screen.tell("plan", "sweep 2: 3 of 4 trials to run", trials=3)
    (sweep,) = screen.rows()
    assert sweep.startswith("sweep 2: 0 of 3 trials | ")


def test_a_build_counts_files_and_needs_no_plan(screen: Screen) -> None:
    screen.tell("build-progress", version="RocksDB 7.2.2", done=3, total=317)
    assert screen.rows() == ["  building RocksDB 7.2.2 | 3 of 317 files"]
    screen.tell("build-progress", version="RocksDB 7.2.2", done=4, total=None)
    assert screen.rows() == ["  building RocksDB 7.2.2 | 4 files"]
    screen.tell("build-end", "RocksDB 7.2.2 is ready")
    assert "RocksDB 7.2.2 is ready\n" in screen.new()
    assert screen.rows() == []


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_bars_fit_the_terminal(width: int) -> None:
    screen = Screen(width)
    screen.tell("plan", "sweep 1: 2 of 2 trials to run", trials=2)
    begin(screen, "a-host-with-a-long-name", cell="an-engine-with-a-long-name 1.2.3-dev interleave")
    screen.tell(
        "step", step="fwdrangewhilewriting", host="a-host-with-a-long-name", expected_s=5400
    )
    screen.tell("tick", host="a-host-with-a-long-name", elapsed_s=4000, ops_per_sec=9999999)
    screen.new()
    screen.bars.draw()
    lines = screen.new().splitlines()
    assert len(lines) == 2
    assert all(len(line) <= width for line in lines)
    assert "9,999,999 ops/sec" in lines[1] or width < 60
    assert "━━━" in lines[0]


def test_nothing_is_drawn_over_a_question(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(prompt: str) -> str:
        screen.new()
        screen.bars.draw()
        screen.tell("note", "another host goes on")
        assert screen.new() == "another host goes on\n"
        return f"answer to {prompt}"

    monkeypatch.setattr(progress, "asker", lambda: ask)
    asks = progress.asking(screen.bars)
    assert asks is not None
    assert asks("before") == "answer to before"
    assert screen.rows() == []
    screen.tell("plan", "sweep 1: 1 of 1 trials to run", trials=1)
    assert asks("meanwhile") == "answer to meanwhile"
    assert len(screen.rows()) == 1


def test_who_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "asker", lambda: None)
    assert progress.asking(Screen().bars) is None
    monkeypatch.setattr(progress, "asker", lambda: str)
    assert progress.asking(progress.JsonLines()) is str
