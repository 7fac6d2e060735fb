"""What ``sweep`` and ``resume`` have in common: run to the end, write pages, say how it went."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from benchrunner.errors import EXIT_TRIAL_FAILED, NothingSelectedError
from benchrunner.events import Event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchrunner.pipeline import Summary
    from benchrunner.session import Session


def finish(session: Session, sweep_ids: Sequence[int], formats: Sequence[str]) -> None:
    """Carries sweeps to their end and writes their pages; exits 1 when a trial failed.

    Raises:
        InterruptedByUserError: Ctrl-C; the hint is the command that goes on.
    """
    from benchrunner.pipeline import session_of

    failed = 0
    for sweep_id in sweep_ids:
        own = session_of(session, sweep_id)
        summary = _carried_on(own, sweep_id)
        failed += summary.failed
        counts = ", ".join(f"{n} {state.value}" for state, n in sorted(summary.states.items()))
        data = {"sweep": sweep_id, **{s.value: n for s, n in summary.states.items()}}
        own.observer(Event("end", f"sweep {sweep_id}: {counts}", data))
        if formats:
            _pages(own, summary.workloads, formats)
    if failed:
        raise click.exceptions.Exit(EXIT_TRIAL_FAILED)


def _carried_on(session: Session, sweep_id: int) -> Summary:
    """Runs a sweep; an interruption tells how to go on."""
    from benchrunner.pipeline import carry_on
    from benchrunner.run_steps import InterruptedByUserError

    try:
        return carry_on(session, sweep_id)
    except InterruptedByUserError as error:
        raise InterruptedByUserError(error.message, session.resume_command) from None
    except KeyboardInterrupt:
        raise InterruptedByUserError("interrupted", session.resume_command) from None


def _pages(session: Session, workloads: Sequence[str], formats: Sequence[str]) -> None:
    from benchrunner.pipeline import write_report

    first = ""
    for workload in workloads:
        try:
            files = write_report(session, workload, formats)
        except NothingSelectedError as nothing:
            session.observer(Event("note", nothing.message))
            continue
        html = files.pages.get("html")
        if html is not None and workload == workloads[0]:
            first = f"open {html}"
    if first:
        session.observer(Event("note", first))
