"""What ``sweep`` and ``resume`` have in common: run to the end, write pages, say how it went."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from benchrunner.errors import EXIT_TRIAL_FAILED, NothingSelectedError
from benchrunner.events import Event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchrunner.session import Session


def finish(session: Session, sweep_ids: Sequence[int], formats: Sequence[str]) -> None:
    """Carries sweeps to their end and writes their pages; exits 1 when a trial failed."""
    from benchrunner.pipeline import carry_on

    failed = 0
    for sweep_id in sweep_ids:
        summary = carry_on(session, sweep_id)
        failed += summary.failed
        counts = ", ".join(f"{n} {state.value}" for state, n in sorted(summary.states.items()))
        data = {"sweep": sweep_id, **{s.value: n for s, n in summary.states.items()}}
        session.observer(Event("end", f"sweep {sweep_id}: {counts}", data))
        if list(formats) != ["none"]:
            _pages(session, summary.workloads, formats)
    if failed:
        raise click.exceptions.Exit(EXIT_TRIAL_FAILED)


def _pages(session: Session, workloads: Sequence[str], formats: Sequence[str]) -> None:
    from benchrunner.pipeline import write_report

    for workload in workloads:
        try:
            files = write_report(session, workload, formats)
        except NothingSelectedError as nothing:
            session.observer(Event("note", nothing.message))
            continue
        html = files.pages.get("html")
        if html is not None and workload == workloads[0]:
            session.observer(Event("note", f"open {html}"))
