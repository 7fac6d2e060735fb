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
    at = f"{_host(event)}: " if _host(event) else ""
    if event.kind == "build-progress":
        total = f" of {data['total']}" if data.get("total") else ""
        return f"{at}building {data.get('version', '')}: {data.get('done', 0)}{total} files"
    parts = [f"{at}{data.get('step', '')}: {duration(float(data.get('elapsed_s', 0)))}"]
    if data.get("ops_per_sec"):
        parts.append(f"{data['ops_per_sec']:,.0f} ops/sec")
    return ", ".join(parts)


class Bars:
    """Bars in a terminal: the sweep's trials, and the running step or build of each host."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._sweep: TaskID | None = None
        self._steps: dict[str, TaskID] = {}
        self._expected_s: dict[str, float] = {}
        self._shares: dict[str, float] = {}
        """Of the sweep's bar, that one step of a host's present trial is."""

    def __call__(self, event: Event) -> None:
        """Moves a bar, or prints a line above the bars."""
        handler = getattr(self, "_on_" + event.kind.replace("-", "_"), None)
        if handler is not None:
            handler(event)
        elif event.text:
            self._print(event.text)

    def _print(self, text: str) -> None:
        self._progress.console.print(text, highlight=False, markup=False)

    def _on_plan(self, event: Event) -> None:
        self._print(event.text)
        if self._sweep is not None:
            self._progress.remove_task(self._sweep)
        total = event.data.get("trials")
        self._sweep = self._progress.add_task("sweep", total=total, live="")

    def _on_trial(self, event: Event) -> None:
        self._shares[_host(event)] = 1 / event.data.get("steps", 1)
        if self._sweep is not None:
            self._progress.update(self._sweep, description=event.text)

    def _on_step(self, event: Event) -> None:
        host = _host(event)
        self._drop_step(host)
        self._expected_s[host] = float(event.data.get("expected_s") or 0)
        name = " ".join(word for word in (host, event.data.get("step", "")) if word)
        self._steps[host] = self._progress.add_task(
            f"  {name}", total=self._expected_s[host] or None, live=""
        )

    def _on_tick(self, event: Event) -> None:
        host = _host(event)
        if host not in self._steps:
            return
        elapsed = float(event.data.get("elapsed_s", 0))
        expected_s = self._expected_s.get(host, 0.0)
        shown = min(elapsed, expected_s) if expected_s else elapsed
        live = live_text(event).partition(", ")[2]
        self._progress.update(self._steps[host], completed=shown, live=live)

    def _on_step_end(self, event: Event) -> None:
        host = _host(event)
        self._drop_step(host)
        self._print(f"    {event.text}")
        if self._sweep is not None:
            self._progress.advance(self._sweep, self._shares.get(host, 1.0))

    def _on_build_progress(self, event: Event) -> None:
        host, data = _host(event), event.data
        if host not in self._steps:
            self._steps[host] = self._progress.add_task("  build", total=None, live="")
        what = " ".join(word for word in (host, "build", data.get("version", "")) if word)
        self._progress.update(
            self._steps[host], description=f"  {what}", total=data.get("total"),
            completed=data.get("done", 0), live=f"{data.get('done', 0)} files",
        )  # fmt: skip

    def _on_build_end(self, event: Event) -> None:
        self._drop_step(_host(event))
        self._print(event.text)

    def _drop_step(self, host: str) -> None:
        task = self._steps.pop(host, None)
        if task is not None:
            self._progress.remove_task(task)


def _host(event: Event) -> str:
    """The host that an event is of; empty when there is only one."""
    return str(event.data.get("host", ""))


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
