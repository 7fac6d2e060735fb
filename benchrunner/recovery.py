"""Whether a trial that a former controller left can be gone on with, or must start again.

In: the journal's rows of an attempt. Out: why it starts again, with all that still runs ended.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from benchrunner.model import StepState
from benchrunner.run_parts import StepEnd
from benchrunner.run_tools import GRACE_S
from benchrunner.transports import ConnectionLostError, UnreachableError
from benchrunner.unfolding import used_services

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchrunner.launchers import Launcher
    from benchrunner.run_parts import Begun
    from benchrunner.run_tools import Tools
    from benchrunner.store.rows import StepRow


def must_restart(tools: Tools, begun: Begun, rows: Mapping[str, StepRow]) -> str:
    """Why what has been done of a trial cannot be gone on with; what still runs is ended."""
    interrupted = any(row.state is StepState.INTERRUPTED for row in rows.values())
    why = "a step was interrupted" if interrupted else _lost(tools, begun, rows)
    for row in rows.values():
        if why and not row.state.final:
            _end(tools, row, why)
    return why


def end_within_reach(tools: Tools, rows: Iterable[StepRow], why: str) -> None:
    """Ends what runs of a trial on one host when the other one is given up.

    What runs on a host that is away stays as it is in the journal: whoever goes on ends it.
    """
    for row in rows:
        if not row.state.final:
            with suppress(ConnectionLostError, UnreachableError):
                _end(tools, row, why)


def _end(tools: Tools, row: StepRow, why: str) -> None:
    launcher = tools.launcher_of(row)
    handle = launcher.find(row.run_dir)
    if handle is not None:
        launcher.stop(handle, GRACE_S)
    tools.journal.end_step(row.id, StepState.INTERRUPTED, StepEnd(why))


def _lost(tools: Tools, begun: Begun, rows: Mapping[str, StepRow]) -> str:
    """What of a trial is no more, in one sentence."""
    steps = begun.trial.job.steps
    for row in rows.values():
        if row.raw_path and not tools.disk.is_intact(row.raw_path, row.raw_sha256):
            return f"the raw output of {row.step} did not reach the disk"
    unfinished = [name for name in steps if name not in rows or not rows[name].state.final]
    needed = used_services(begun.subject.workload, unfinished)
    if gone := _gone(tools.serving(begun.trial.job).launcher, rows, needed):
        return f"service {gone} runs no more"
    if not unfinished or _opens(tools.launcher, rows):
        return ""
    return "" if tools.disk.has_database(begun.trial.id) else "its database is gone"


def _opens(launcher: Launcher, rows: Mapping[str, StepRow]) -> bool:
    """Whether no process of an attempt was started here yet: the first one makes the database."""
    begun = [row for row in rows.values() if row.run_dir and row.host is None]
    if len(begun) == 1 and not begun[0].state.final:
        return launcher.find(begun[0].run_dir) is None
    return not begun


def _gone(launcher: Launcher, rows: Mapping[str, StepRow], services: Sequence[str]) -> str:
    """The first of these services that has ended without that being journalled."""
    for name in services:
        row = rows.get(name)
        if row is None or row.state.final:
            continue
        handle = launcher.find(row.run_dir)
        if handle is not None and launcher.poll(handle).state != "running":
            return name
    return ""
