"""How a long operation looks: bars in a terminal, lines in a log, JSON for scripts, or nothing."""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

import click

from benchrunner.cli.options import asker
from benchrunner.events import Event, Observer, ignore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchrunner.cli.bars import Bars

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
    "preparation": "    ",
    "step": "    ",
    "step-end": "    ",
    "service": "    ",
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

    from benchrunner.cli.bars import Bars

    bars = Bars(Console(stderr=True))
    with bars.drawn():
        yield bars


def asking(watch: Observer) -> Callable[[str], str] | None:
    """Asks for a passphrase beside what an observer draws; ``None`` when nobody is there."""
    ask = asker()
    aside = getattr(watch, "aside", None)
    if ask is None or aside is None:
        return ask

    def ask_aside(prompt: str) -> str:
        with aside():
            return ask(prompt)

    return ask_aside
