"""Bars in a terminal: the sweep's, and one for the running step or build of each host.

In: events, from any thread. Out: lines that stay, and bars below them. They are drawn by nobody but
us, a few times a second: two threads that draw at once would leave halves of bars behind.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, ProgressColumn
from rich.table import Column
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.progress import Task, TaskID

    from benchrunner.events import Event

_DRAW_EVERY_S = 0.25
_ROOMY, _NARROW = 100, 80
"""Widths of a terminal from which everything has its place, and below which times go."""
_TIMES, _LIVE = 22, 18
"""Widths of their columns."""


def clock(seconds: float) -> str:
    """A duration in a column.

    >>> clock(59.6), clock(3725)
    ('0:00:59', '1:02:05')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


def left_s(elapsed_s: float, done: float, total: float | None, expected_s: float) -> float | None:
    """How long something will go on: as expected, else as it went so far; ``None``: who knows.

    >>> left_s(10, 0, 100, 60), left_s(10, 25, 100, 0), left_s(1, 0, None, 0), left_s(70, 0, 1, 60)
    (50, 30.0, None, None)
    """
    if expected_s:
        return expected_s - elapsed_s if elapsed_s < expected_s else None
    return elapsed_s * (total - done) / done if total and 0 < done <= total else None


class _Times(ProgressColumn):
    """How long it has been going on, and how long it will."""

    def render(self, task: Task) -> Text:
        elapsed_s = time.monotonic() - task.fields["since"]
        if task.fields.get("is_build"):
            return Text("")
        left = left_s(elapsed_s, task.completed, task.total, task.fields["expected_s"])
        return Text(clock(elapsed_s) + (f", {clock(left)} left" if left is not None else ""))


class _What(ProgressColumn):
    """What it is, and how fast."""

    def __init__(self, field: str, width: int) -> None:
        super().__init__(Column(no_wrap=True, overflow="ellipsis", max_width=width))
        self._field = field

    def render(self, task: Task) -> Text:
        return Text(task.fields[self._field])


class Bars:
    """An observer that draws. Nothing is drawn before there is a plan."""

    def __init__(self, console: Console) -> None:
        """``console`` is the terminal."""
        width = console.width
        bar = 20 if width >= _ROOMY else 8
        has_times = width >= _NARROW
        room = width - bar - _LIVE - 2 - (_TIMES + 1 if has_times else 0)
        times = [_Times(Column(no_wrap=True))] if has_times else []
        columns = [_What("what", max(12, room)), BarColumn(bar), *times, _What("live", _LIVE)]
        self._progress = Progress(*columns, console=console, transient=True, auto_refresh=False)
        self._lock = threading.RLock()
        self._is_drawn = False
        self._sweep: TaskID | None = None
        self._sweep_name = ""
        self._trials, self._ended = 0, 0
        self._rows: dict[str, TaskID] = {}
        """Host -> its bar."""
        self._trial: dict[str, str] = {}
        """Host -> its trial in words."""
        self._cell: dict[str, str] = {}
        self._share: dict[str, float] = {}
        """Host -> of a trial that one of its steps is."""
        self._part: dict[str, float] = {}
        """Host -> of its present trial that is done."""

    def __call__(self, event: Event) -> None:
        """Moves a bar, or prints a line above the bars."""
        handler = getattr(self, "_on_" + event.kind.replace("-", "_"), None)
        with self._lock:
            if handler is not None:
                handler(event)
            elif event.text:
                self._print(event.text)

    @contextmanager
    def drawn(self) -> Iterator[None]:
        """Draws as long as the block goes on."""
        over = threading.Event()

        def keep_drawing() -> None:
            while not over.wait(_DRAW_EVERY_S):
                self.draw()

        thread = threading.Thread(target=keep_drawing, name="bars", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self._stop()

    def draw(self) -> None:
        """Draws once."""
        with self._lock:
            if self._is_drawn:
                self._progress.refresh()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """No bars while somebody types: they would wipe out the question."""
        with self._lock:
            was_drawn = self._is_drawn
            self._stop()
        try:
            yield
        finally:
            if was_drawn:
                self._start()

    # ------------------------------------------------------------ events

    def _on_plan(self, event: Event) -> None:
        self._print(event.text)
        if self._sweep is not None:
            self._progress.remove_task(self._sweep)
        self._sweep_name = event.text.partition(":")[0]
        self._trials, self._ended = int(event.data.get("trials") or 0), 0
        self._part.clear()
        expected_s = float(event.data.get("seconds") or 0)
        self._sweep = self._add("", self._trials, expected_s)
        self._show_sweep()
        self._start()

    def _on_trial(self, event: Event) -> None:
        host = _host(event)
        self._trial[host] = event.text
        self._cell[host] = str(event.data.get("cell", ""))
        self._share[host] = 1 / max(1, int(event.data.get("steps", 1)))
        self._part[host] = 0.0
        self._show_sweep()

    def _on_trial_end(self, event: Event) -> None:
        host = _host(event)
        self._drop_row(host)
        is_told = self._part.pop(host, 0.0) > 0  # why, by the step that failed
        self._ended += 1
        self._show_sweep()
        trial = self._trial.pop(host, "")
        outcome = event.text.removeprefix(f"{host}: ").removeprefix("trial ")
        outcome = outcome.partition(":")[0] if is_told else outcome
        self._print(f"{trial}: {outcome}" if trial else event.text)

    def _on_step(self, event: Event) -> None:
        host = _host(event)
        self._drop_row(host)
        what = " ".join(word for word in (host, str(event.data.get("step", ""))) if word)
        cell = self._cell.get(host)
        expected_s = float(event.data.get("expected_s") or 0)
        text = f"  {what} ({cell})" if cell else f"  {what}"
        self._rows[host] = self._add(text, expected_s or None, expected_s)

    def _on_preparation(self, event: Event) -> None:
        self._print(f"    {event.text}")

    def _on_tick(self, event: Event) -> None:
        row = self._rows.get(_host(event))
        if row is None:
            return
        elapsed_s, rate = float(event.data.get("elapsed_s", 0)), event.data.get("ops_per_sec")
        live = f"{rate:,.0f} ops/sec" if rate else ""
        since = time.monotonic() - elapsed_s
        self._progress.update(row, completed=elapsed_s, live=live, since=since)

    def _on_step_end(self, event: Event) -> None:
        host = _host(event)
        self._drop_row(host)
        self._part[host] = min(1.0, self._part.get(host, 0.0) + self._share.get(host, 0.0))
        self._show_sweep()
        self._print(f"    {event.text}")

    def _on_build_progress(self, event: Event) -> None:
        host, data = _host(event), event.data
        version = str(data.get("version", ""))
        what = " ".join(word for word in (host, "building", version) if word)
        if host not in self._rows:
            self._rows[host] = self._add(f"  {what}", None, 0, is_build=True)
            self._start()
        done, total = data.get("done", 0), data.get("total")
        live = f"{done} of {total} files" if total else f"{done} files"
        self._progress.update(self._rows[host], total=total, completed=done, live=live)

    def _on_build_end(self, event: Event) -> None:
        self._drop_row(_host(event))
        self._print(event.text)

    # ------------------------------------------------------------ drawing

    def _add(
        self, what: str, total: float | None, expected_s: float, *, is_build: bool = False
    ) -> TaskID:
        return self._progress.add_task(
            "", total=total, what=what, live="", since=time.monotonic(), expected_s=expected_s,
            is_build=is_build,
        )  # fmt: skip

    def _show_sweep(self) -> None:
        if self._sweep is None:
            return
        what = f"{self._sweep_name}: {self._ended} of {self._trials} trials"
        done = min(float(self._trials), self._ended + sum(self._part.values()))
        self._progress.update(self._sweep, completed=done, what=what)

    def _drop_row(self, host: str) -> None:
        row = self._rows.pop(host, None)
        if row is not None:
            self._progress.remove_task(row)

    def _print(self, text: str) -> None:
        self._progress.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _start(self) -> None:
        with self._lock:
            if not self._is_drawn:
                self._progress.start()
                self._is_drawn = True

    def _stop(self) -> None:
        with self._lock:
            if self._is_drawn:
                self._progress.stop()
                self._is_drawn = False


def _host(event: Event) -> str:
    """The host that an event is of; empty when there is only one."""
    return str(event.data.get("host", ""))
