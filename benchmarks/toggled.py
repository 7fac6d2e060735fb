"""Pairs within one run of db_bench: its supervisor is stopped in every other second of it.

Two runs of the same benchmark differ by some per cent on a shared machine, two neighbouring seconds
of one run by much less. In: a supervisor that runs db_bench with ``--report_interval_seconds=1``.
Out: operations/s of neighbouring seconds, watched and unwatched.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from benchmarks.pairs import Pairs

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

_LOOK_S = 0.005
_OVER_S = 3.0
"""Without another second in the report."""
SETTLING_S = 2
"""Seconds at the beginning that count for nothing: opening, first blocks."""


def toggle(supervisor: subprocess.Popen[bytes], report: Path) -> Pairs:
    """Watches a run until it ends, and stops or continues its supervisor from second to second.

    A supervisor that goes on takes the sample that it missed at once, so that a watched second
    holds at least one sample, and often two: more than it has usually.

    Raises:
        RuntimeError: The run gave too little to compare.
    """
    watched = [True]
    """Second by second, whether the supervisor ran in it."""
    changed_at = time.monotonic()
    try:
        while supervisor.poll() is None:
            time.sleep(_LOOK_S)
            while len(watched) <= len(_rates(report)):
                watched.append(_state_of(len(watched)))
                _set(supervisor, running=watched[-1])
                changed_at = time.monotonic()
            if time.monotonic() - changed_at > _OVER_S:
                # The run is over, and somebody must see that.
                _set(supervisor, running=True)
    finally:
        if supervisor.poll() is None:
            _set(supervisor, running=True)
    pairs = paired(watched, _rates(report))
    if not pairs.ours:
        raise RuntimeError(f"{report} holds no two neighbouring seconds to compare")
    return pairs


def paired(watched: list[bool], rates: list[float]) -> Pairs:
    """Neighbouring seconds of both kinds, each second in one pair: watched first, then last, ..."""
    ours, bare = [], []
    for index in range(SETTLING_S, min(len(watched), len(rates)) - 1, 2):
        here, there = rates[index], rates[index + 1]
        if watched[index] != watched[index + 1] and here and there:
            ours.append(here if watched[index] else there)
            bare.append(there if watched[index] else here)
    return Pairs(tuple(ours), tuple(bare))


def _state_of(second: int) -> bool:
    """+ - - + + - - +: every pair has both, and a drift hits both alike."""
    return second % 4 in (0, 3)


def _set(supervisor: subprocess.Popen[bytes], *, running: bool) -> None:
    os.kill(supervisor.pid, signal.SIGCONT if running else signal.SIGSTOP)


def _rates(report: Path) -> list[float]:
    """The column ``interval_qps``; the line that is just being written is left out."""
    if not report.exists():
        return []
    lines = report.read_text(encoding="utf-8").split("\n")[1:-1]
    return [float(line.split(",")[1]) for line in lines]
