"""The stages in order: select, plan, build, run, parse, report. Read it after ``model``.

Each function is one verb of the command line. A sweep is stored whole before anything starts, and
from then on everything is read back from the store: ``sweep`` and ``resume`` are the same code.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchrunner.command import LOOPBACK, Placement, build_command
from benchrunner.errors import ConfigurationError, MissingStoreError
from benchrunner.events import Event
from benchrunner.host_places import obstacles
from benchrunner.host_session import open_host
from benchrunner.model import TrialState
from benchrunner.plan import make_plan
from benchrunner.run_parts import Subject, beside
from benchrunner.selection import select_versions
from benchrunner.server_host import open_both
from benchrunner.side_by_side import on_each, tagged
from benchrunner.stored import StoredSweep, parse_step, snapshot
from benchrunner.sweeping import SweepOnHost
from benchrunner.transports.ssh_config import parse_address
from benchrunner.unfolding import tool_names, unfolded, used_services

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from benchrunner import definitions
    from benchrunner.catalog import Catalog
    from benchrunner.model import Command, Job, Plan
    from benchrunner.report.page import PageFiles
    from benchrunner.session import Session


@dataclass(frozen=True, slots=True)
class Prepared:
    """A sweep that could start: its plan and what stands in its way."""

    sweep: definitions.Sweep
    plan: Plan
    obstacles: tuple[ConfigurationError, ...]
    """What stands in the way, and what mends it; a sweep with obstacles does not start."""


@dataclass(frozen=True, slots=True)
class Summary:
    """How the trials of a sweep stand."""

    sweep_id: int
    workloads: tuple[str, ...]
    states: Mapping[TrialState, int]

    @property
    def failed(self) -> int:
        """Trials that did not end well."""
        bad = (TrialState.FAILED, TrialState.TIMEOUT, TrialState.INVALID)
        return sum(self.states.get(state, 0) for state in bad)


def prepare(session: Session, sweep: definitions.Sweep) -> Prepared:
    """Versions are resolved and cells expanded; nothing is built, started or stored.

    Raises:
        ConfigurationError: The sweep names what does not exist, or a command cannot be made.
        NothingSelectedError: No cell is left.
    """
    refs, skipped = select_versions(session, sweep)
    plan = make_plan(sweep, session.catalog, refs)
    history = measured_seconds(session, plan)
    if history:
        plan = make_plan(sweep, session.catalog, refs, history)
    check_commands(session.catalog, plan)
    plan = replace(plan, skipped=(*skipped, *plan.skipped))
    return Prepared(sweep, plan, obstacles(session, sweep, plan))


def measured_seconds(session: Session, plan: Plan) -> Mapping[tuple[str, str, str], float]:
    """What steps took before with the same parameters: (workload, scale, step) -> seconds."""
    try:
        store = session.open_existing()
    except MissingStoreError:
        return {}
    params: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for trial in plan.trials:
        found = params.setdefault((trial.job.workload, trial.job.scale), [])
        if trial.job.params not in found:
            found.append(trial.job.params)
    alike = {key: found[0] for key, found in params.items() if len(found) == 1}
    return store.step_seconds(alike)


def check_commands(catalog: Catalog, plan: Plan) -> None:
    """Makes every command as far as that goes without a build, so that mistakes show now.

    Raises:
        ConfigurationError: A flag that no version knows, a template without a value.
    """
    for job, command_of in dry_commands(catalog, plan):
        for name in (*job.steps, *used_services(catalog.workload(job.workload), job.steps)):
            command_of(name)


def dry_commands(catalog: Catalog, plan: Plan) -> Iterator[tuple[Job, Callable[[str], Command]]]:
    """Each job of a plan, and the command of each of its steps before anything is built."""
    for trial in {trial.job.id: trial for trial in plan.trials}.values():
        job, workload = trial.job, catalog.workload(trial.job.workload)
        subject = Subject(
            workload=unfolded(workload, job),
            engine=catalog.engine(job.engine),
            tools={name: catalog.tool(name) for name in tool_names(workload)},
            flags=catalog.flags(job.engine),
            host_env=catalog.host(job.host).env,
        )
        others = {
            name: beside(subject, job, catalog.engine(name), catalog.flags(name))
            for name in workload.also
        }
        logs = "/WAL" if workload.data_on == "memory" else "/DB"
        address = LOOPBACK
        if job.server:
            server = catalog.host(job.server)
            written = parse_address(server.address).host if server.address else job.server
            address = server.service_address or written
        placement = Placement(db_dir="/DB", wal_dir=logs, run_dir="/RUN", server_address=address)

        def command_of(
            name: str,
            subject: Subject = subject,
            job: Job = job,
            where: Placement = placement,
            others: Mapping[str, tuple[Subject, Job]] = others,
        ) -> Command:
            step = subject.step(name)
            return build_command(step, *others.get(step.engine, (subject, job)), None, where)

        yield job, command_of


def begin(session: Session, prepared: Prepared, command_line: Sequence[str]) -> int:
    """Stores the plan and everything it was made from; returns the sweep's number.

    Raises:
        ConfigurationError: Something stands in the way; nothing is stored.
    """
    if prepared.obstacles:
        first, *others = prepared.obstacles
        more = f" (and {len(others)} more: benchrunner plan shows all)" if others else ""
        raise ConfigurationError(first.message + more, first.hint)
    return session.store.add_sweep(
        prepared.plan,
        snapshot(session, prepared.sweep, prepared.plan),
        command_line=command_line,
        baseline=prepared.sweep.baseline,
    )


def carry_on(session: Session, sweep_id: int) -> Summary:
    """Builds and runs whatever of a sweep has not ended, and parses it as it ends."""
    row = session.store.sweep(sweep_id)
    stored = StoredSweep(row.spec, session.catalog.flags)
    trials = session.store.trials(sweep_id)
    unfinished = [t for t in trials if not t.state.final]
    text = f"sweep {sweep_id}: {len(unfinished)} of {len(trials)} trials to run"
    seconds = None if row.seconds is None else row.seconds * len(unfinished) / len(trials)
    data = {"sweep": sweep_id, "trials": len(unfinished), "seconds": seconds}
    session.observer(Event("plan", text, data))
    hosts = sorted({t.job.host for t in unfinished})
    lock = threading.Lock()

    def work(host: str) -> None:
        if len(hosts) == 1:
            _on_host(session, sweep_id, stored, host)
            return
        with session.in_thread(tagged(session.observer, host, lock)) as own:
            _on_host(own, sweep_id, stored, host)

    on_each(hosts, work, session.stop)
    return summary(session, sweep_id)


def _on_host(session: Session, sweep_id: int, stored: StoredSweep, host: str) -> None:
    unfinished = [t for t in session.store.trials(sweep_id) if not t.state.final]
    room = stored.room(host, unfinished)
    definition = stored.host(host)
    server = next((t.job.server for t in unfinished if t.job.server), "")
    if not server:
        with open_host(session, definition, room) as ready:
            SweepOnHost(session, sweep_id, stored, ready).run()
        return
    with open_both(session, definition, stored.host(server), room) as (ready, serving):
        SweepOnHost(session, sweep_id, stored, ready, serving).run()


def session_of(session: Session, sweep_id: int) -> Session:
    """The session for a stored sweep: places as they were chosen when it began.

    What the command line says now goes over what it said then.
    """
    now = session.settings
    then = StoredSweep(session.store.sweep(sweep_id).spec).choices
    settings = replace(
        now,
        choices=then,
        cache=Path(then.cache) if now.choices.cache is None and then.cache else now.cache,
        catalog=Path(then.catalog) if now.catalog is None and then.catalog else now.catalog,
    )
    return session.with_settings(settings)


def summary(session: Session, sweep_id: int) -> Summary:
    """Counts of a sweep's trials by state, and its workloads (ceilings last)."""
    trials = session.store.trials(sweep_id)
    asked = session.store.sweep(sweep_id).spec["sweep"]["workloads"]
    names = dict.fromkeys([*asked, *(t.job.workload for t in trials)])
    return Summary(sweep_id, tuple(names), Counter(t.state for t in trials))


def parse_again(session: Session, sweep_id: int | None = None) -> int:
    """Reads all stored raw output again; returns the number of step runs."""
    store = session.store
    if sweep_id is not None:
        store.sweep(sweep_id)
    trials = {t.id: t for t in store.trials(sweep_id)}
    stored: dict[int, StoredSweep] = {}
    devices: dict[str | None, str] = {}
    rows = store.parsable_steps(sweep_id)
    for row in rows:
        trial = trials[row.trial_id]
        if trial.sweep_id not in stored:
            stored[trial.sweep_id] = StoredSweep(store.sweep(trial.sweep_id).spec)
        if trial.facts_id not in devices:
            facts = store.facts(trial.facts_id) if trial.facts_id is not None else None
            devices[trial.facts_id] = facts.device if facts is not None else ""
        parse_step(session, row, trial, stored[trial.sweep_id], devices[trial.facts_id])
    return len(rows)


def write_report(
    session: Session,
    workload: str,
    formats: Sequence[str],
    directory: Path | None = None,
    *,
    sweep_ids: Collection[int] | None = None,
    scale: str | None = None,
) -> PageFiles:
    """Writes the page of a workload from the store.

    Raises:
        NothingSelectedError: There is nothing to show.
    """
    from benchrunner.report.page import write_page
    from benchrunner.reporting import Asked, report_data

    definition = session.catalog.workload(workload)
    titles = {name: session.catalog.engine(name).title for name in definition.engines}
    asked = Asked(sweep_ids, scale)
    data = report_data(
        session.store, definition, session.catalog.metrics(), session.raw, asked, titles
    )
    files = write_page(data, directory or session.pages / workload, formats)
    for kind, path in files.pages.items():
        session.observer(Event("page", f"{kind} page: {path}", {"format": kind, "path": str(path)}))
    return files
