"""How a long operation looks: bars in a terminal, lines in a log, JSON for scripts, or nothing."""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

import click

from benchrunner.events import Event, Observer, ignore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress, TaskID

LINE_EVERY_S = 30.0
"""A log without a terminal gets a sign of life this often."""


def duration(seconds: float) -> str:
    """A duration for people.

    >>> duration(59.4), duration(61), duration(7322)
    ('59 s', '1:01 min', '2:02:02 h')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d} h"


class JsonLines:
    """One JSON object a line on standard output; ticks left out."""

    def __call__(self, event: Event) -> None:
        """Prints the event unless it is a tick."""
        if event.kind not in ("tick", "build-progress"):
            record = {"at": time.time(), "event": event.kind, "text": event.text, **event.data}
            click.echo(json.dumps(record, default=str))


class PlainLines:
    """One line an event, and now and then a sign of life during long steps and builds."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._quiet_until = time.monotonic() + LINE_EVERY_S

    def __call__(self, event: Event) -> None:
        """Prints a line where the event has something to say."""
        if event.kind in ("tick", "build-progress"):
            if time.monotonic() < self._quiet_until:
                return
            text = live_text(event)
        else:
            text = event.text
        self._quiet_until = time.monotonic() + LINE_EVERY_S
        if text:
            stamp = time.strftime("%H:%M:%S")
            click.echo(f"{stamp} {INDENT.get(event.kind, '')}{text}", file=self._stream)


INDENT = {
    "step": "    ",
    "step-end": "    ",
    "tick": "    ",
    "trial-end": "  ",
    "build-progress": "  ",
}


def live_text(event: Event) -> str:
    """What is going on right now, from a tick."""
    data = event.data
    if event.kind == "build-progress":
        total = f" of {data['total']}" if data.get("total") else ""
        return f"building {data.get('version', '')}: {data.get('done', 0)}{total} files"
    parts = [f"{data.get('step', '')}: {duration(float(data.get('elapsed_s', 0)))}"]
    if data.get("ops_per_sec"):
        parts.append(f"{data['ops_per_sec']:,.0f} ops/sec")
    return ", ".join(parts)


class Bars:
    """Two bars in a terminal: the sweep's trials, and the running step or build."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._sweep: TaskID | None = None
        self._step: TaskID | None = None
        self._expected_s = 0.0
        self._share = 0.0
        """Of the sweep's bar, that one step of the present trial is."""

    def __call__(self, event: Event) -> None:
        """Moves a bar, or prints a line above the bars."""
        handler = getattr(self, "_on_" + event.kind.replace("-", "_"), None)
        if handler is not None:
            handler(event)
        elif event.text:
            self._progress.console.print(event.text, highlight=False, markup=False)

    def _on_plan(self, event: Event) -> None:
        self._progress.console.print(event.text, highlight=False, markup=False)
        if self._sweep is not None:
            self._progress.remove_task(self._sweep)
        total = event.data.get("trials")
        self._sweep = self._progress.add_task("sweep", total=total, live="")

    def _on_trial(self, event: Event) -> None:
        self._share = 1 / event.data.get("steps", 1)
        if self._sweep is not None:
            self._progress.update(self._sweep, description=event.text)

    def _on_step(self, event: Event) -> None:
        self._drop_step()
        self._expected_s = float(event.data.get("expected_s") or 0)
        self._step = self._progress.add_task(
            f"  {event.data.get('step', '')}", total=self._expected_s or None, live=""
        )

    def _on_tick(self, event: Event) -> None:
        if self._step is None:
            return
        elapsed = float(event.data.get("elapsed_s", 0))
        shown = min(elapsed, self._expected_s) if self._expected_s else elapsed
        live = live_text(event).partition(", ")[2]
        self._progress.update(self._step, completed=shown, live=live)

    def _on_step_end(self, event: Event) -> None:
        self._drop_step()
        self._progress.console.print(f"    {event.text}", highlight=False, markup=False)
        if self._sweep is not None:
            self._progress.advance(self._sweep, self._share)

    def _on_build_progress(self, event: Event) -> None:
        if self._step is None:
            self._step = self._progress.add_task("  build", total=None, live="")
        data = event.data
        self._progress.update(
            self._step, description=f"  build {data.get('version', '')}", total=data.get("total"),
            completed=data.get("done", 0), live=f"{data.get('done', 0)} files",
        )  # fmt: skip

    def _on_build_end(self, event: Event) -> None:
        self._drop_step()
        self._progress.console.print(event.text, highlight=False, markup=False)

    def _drop_step(self) -> None:
        if self._step is not None:
            self._progress.remove_task(self._step)
            self._step = None


@contextmanager
def observer(*, quiet: bool, as_json: bool) -> Iterator[Observer]:
    """The observer that fits where output goes: a terminal, a log, a script."""
    if as_json:
        yield JsonLines()
    elif quiet:
        yield ignore
    elif sys.stderr.isatty():
        with _bars() as bars:
            yield bars
    else:
        yield PlainLines(sys.stderr)


@contextmanager
def _bars() -> Iterator[Bars]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[live]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bars(progress)
