"""How fast a running db_bench is right now, from the end of its standard error."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from benchrunner.events import Event, Observer

if TYPE_CHECKING:
    from benchrunner.transports import Transport

LOOK_EVERY_S = 1.0
TAIL_BYTES = 16 * 1024
_INTERVAL = re.compile(rb"thread (\d+): \(\d+,\d+\) ops and \(([\d.]+),[\d.]+\) ops/second")


def current_rate(tail: bytes, step: str = "") -> float | None:
    """Operations per second, summed over the threads' newest interval lines.

    Thread 0 of a step like readwhilewriting is the writer, which the result leaves out as well.

    >>> tail = b"thread 0: (9,9) ops and (100.0,90.0) ops/second in (1,1) seconds"
    >>> current_rate(tail), current_rate(tail, "readwhilewriting")
    (100.0, None)
    """
    newest = {match[1]: float(match[2]) for match in _INTERVAL.finditer(tail)}
    if "while" in step:
        newest.pop(b"0", None)
    return sum(newest.values()) if newest else None


class LiveRate:
    """An observer in front of another: adds ``ops_per_sec`` to ticks, at most once a second."""

    def __init__(self, transport: Transport, observer: Observer) -> None:
        self._transport = transport
        self._observer = observer
        self._looked_at = time.monotonic()

    def __call__(self, event: Event) -> None:
        """Passes events on; most ticks are dropped, because nobody can read that fast."""
        if event.kind != "tick":
            self._observer(event)
            return
        if time.monotonic() - self._looked_at < LOOK_EVERY_S:
            return
        self._looked_at = time.monotonic()
        size = event.data.get("stderr_bytes") or 0
        tail = self._transport.read(
            f"{event.data['run_dir']}/stderr", max(0, size - TAIL_BYTES), TAIL_BYTES
        )
        rate = current_rate(tail, str(event.data.get("step", "")))
        self._observer(Event("tick", "", {**event.data, "ops_per_sec": rate}))
