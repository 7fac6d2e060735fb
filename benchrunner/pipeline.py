"""The stages in order: select, plan, build, run, parse, report. Read it after ``model``.

Each function is one verb of the command line. A sweep is stored whole before anything starts, and
from then on everything is read back from the store: ``sweep`` and ``resume`` are the same code.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchrunner import definitions
from benchrunner.artifacts import Artifacts
from benchrunner.effective import compare_options
from benchrunner.errors import BenchrunnerError, ConfigurationError, NothingSelectedError
from benchrunner.events import Event
from benchrunner.host_session import HostSession, open_host, roots
from benchrunner.live import LiveRate
from benchrunner.model import StepState, TrialState
from benchrunner.plan import make_plan
from benchrunner.reading import StoredStep, read_step
from benchrunner.run import Subject, TrialRunner
from benchrunner.selection import select_versions
from benchrunner.store.rows import CeilingRow

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from benchrunner.model import Command, Plan
    from benchrunner.report.page import PageFiles
    from benchrunner.session import Session
    from benchrunner.store.rows import StepRow, TrialRow


@dataclass(frozen=True, slots=True)
class Prepared:
    """A sweep that could start: its plan and what stands in its way."""

    sweep: definitions.Sweep
    plan: Plan
    obstacles: tuple[str, ...]
    """Sentences; a sweep with obstacles does not start."""


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
    """Versions are resolved and cells expanded; nothing is built, started or stored."""
    refs, skipped = select_versions(session, sweep)
    plan = make_plan(sweep, session.catalog, refs)
    obstacles = _obstacles(session, sweep, plan)
    return Prepared(sweep, _with_skipped(plan, skipped), obstacles)


def begin(session: Session, prepared: Prepared, command_line: Sequence[str]) -> int:
    """Stores the plan and everything it was made from; returns the sweep's number.

    Raises:
        ConfigurationError: Something stands in the way; nothing is stored.
    """
    if prepared.obstacles:
        raise ConfigurationError(prepared.obstacles[0], "benchrunner plan shows what a sweep needs")
    spec = _snapshot(session, prepared)
    plan = prepared.plan
    sweep_id = session.store.add_sweep(
        plan, spec, command_line=command_line, baseline=prepared.sweep.baseline
    )
    text = f"sweep {sweep_id}: {len(plan.trials)} trials, {plan.loads} loads"
    data = {"sweep": sweep_id, "trials": len(plan.trials), "seconds": plan.seconds}
    session.observer(Event("plan", text, data))
    return sweep_id


def carry_on(session: Session, sweep_id: int) -> Summary:
    """Builds and runs whatever of a sweep has not ended, and parses it as it ends."""
    hosts = {t.job.host for t in session.store.trials(sweep_id) if not t.state.final}
    for host in sorted(hosts):
        with open_host(session, host) as ready:
            _Sweep(session, sweep_id, ready).run()
    return summary(session, sweep_id)


def summary(session: Session, sweep_id: int) -> Summary:
    """Counts of a sweep's trials by state, and its workloads (ceilings last)."""
    trials = session.store.trials(sweep_id)
    main = [t.job.workload for t in trials if t.job.engine != "fio"]
    names = dict.fromkeys([*main, *(t.job.workload for t in trials)])
    return Summary(sweep_id, tuple(names), Counter(t.state for t in trials))


def parse_again(session: Session, sweep_id: int | None = None) -> int:
    """Reads all stored raw output again; returns the number of step runs."""
    store = session.store
    sweeps = {t.id: t.sweep_id for t in store.trials(sweep_id)}
    subjects: dict[int, Subjects] = {}
    rows = store.parsable_steps(sweep_id)
    for row in rows:
        number = sweeps[row.trial_id]
        if number not in subjects:
            subjects[number] = Subjects(session, number)
        parse_step(session, row, store.trial(row.trial_id), subjects[number])
    return len(rows)


def parse_step(
    session: Session, row: StepRow, trial: TrialRow, subjects: Subjects
) -> tuple[StepState, str]:
    """Reads one step run's raw output and stores what it says."""
    if not row.raw_path:
        return row.state, row.reason
    subject = subjects.of(trial)
    step = subject.step(row.step)
    tool = subject.tools[step.tool]
    flags = {note.flag: note.asked for note in row.flags if note.given is not None}
    stored = StoredStep(session.raw / row.raw_path, row.state, row.status, flags)
    limits = {c.metric: c.value for c in session.store.ceilings(trial.job.host)}
    found = read_step(stored, step, tool, subject.workload, trial.job.params, limits)
    return session.store.save_parsed(
        row.id, found.parsed, parser=found.parser, parser_version=found.parser_version,
        derived=found.derived,
    )  # fmt: skip


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
    from benchrunner.reporting import report_data

    data = report_data(
        session.store, session.catalog.workload(workload), session.catalog.metrics(), session.raw,
        sweep_ids=sweep_ids, scale=scale,
    )  # fmt: skip
    files = write_page(data, directory or session.pages / workload, formats)
    for kind, path in files.pages.items():
        session.observer(Event("page", f"{kind} page: {path}", {"format": kind, "path": str(path)}))
    return files


class Subjects:
    """What the trials of one stored sweep run: definitions as they were when it began."""

    def __init__(self, session: Session, sweep_id: int) -> None:
        spec = session.store.sweep(sweep_id).spec
        self.sweep = definitions.Sweep.model_validate(spec["sweep"])
        self._session = session
        self._workloads = _revived(spec["workloads"], definitions.Workload)
        self._engines = _revived(spec["engines"], definitions.Engine)
        self._tools = _revived(spec["tools"], definitions.Tool)
        self._made: dict[str, Subject] = {}

    def of(self, trial: TrialRow) -> Subject:
        """The subject of a trial."""
        name = trial.job.workload
        if name not in self._made:
            workload = self._workloads[name]
            self._made[name] = Subject(
                workload=workload,
                engine=self._engines[workload.engine],
                tools={step.tool: self._tools[step.tool] for step in workload.steps},
                flags=self._session.catalog.flags(workload.engine),
                host_env=self._session.catalog.host(trial.job.host).env,
            )
        return self._made[name]


class _Sweep:
    """One sweep's unfinished trials on one host."""

    def __init__(self, session: Session, sweep_id: int, host: HostSession) -> None:
        self._session = session
        self._host = host
        self._subjects = Subjects(session, sweep_id)
        self._trials = [t for t in session.store.trials(sweep_id) if t.job.host == host.name]
        self._artifacts = Artifacts(session)
        self._runner = TrialRunner(
            session.store,
            host.disk,
            host.launcher,
            after_step=self._after_step,
            compare_options=_compare,
            observer=LiveRate(host.transport, session.observer),
        )

    def run(self) -> None:
        """Builds first, so that no compiler disturbs a measurement; then one trial after another."""
        unfinished = [t for t in self._trials if not t.state.final]
        for trial in unfinished:
            self._artifacts.of(trial.job, self._subjects.of(trial))
        for trial in unfinished:
            self._trial(trial)

    def _trial(self, trial: TrialRow) -> None:
        job, store = trial.job, self._session.store
        text = f"trial {trial.position} of {len(self._trials)}: {job.workload} {job.engine} {job.version} {job.variant}"
        data = {"trial": trial.id, "position": trial.position, "trials": len(self._trials)}
        self._session.observer(Event("trial", text, data))
        subject = self._subjects.of(trial)
        artifact = self._artifacts.of(job, subject)
        reason = self._cannot_run(trial, subject)
        if artifact.state != "built" or reason:
            state = TrialState.SKIPPED if reason else TrialState.FAILED
            why = reason or f"build {artifact.state}: {artifact.reason}"
            store.end_trial(trial.id, state, why)
            self._session.observer(Event("trial-end", f"trial {state.value}: {why}", data))
            return
        store.begin_trial(
            trial.id, artifact_id=artifact.id, facts_id=self._host.facts.id, fence=self._host.fence
        )
        self._runner.run(trial.planned(), subject, artifact)
        self._keep_ceilings(trial.id)

    def _cannot_run(self, trial: TrialRow, subject: Subject) -> str:
        """Why a trial that has not begun cannot run here at all."""
        if trial.state is not TrialState.PLANNED:
            return ""
        variant = next(v for v in subject.workload.variants if v.name == trial.job.variant)
        return next((self._host.lacks[n] for n in variant.needs if n in self._host.lacks), "")

    def _after_step(self, step_run_id: int) -> tuple[StepState, str]:
        store = self._session.store
        row = store.step_run(step_run_id)
        return parse_step(self._session, row, store.trial(row.trial_id), self._subjects)

    def _keep_ceilings(self, trial_id: str) -> None:
        """A ceiling workload's rates become the host's ceilings: the best that any step reached."""
        store, trial = self._session.store, self._session.store.trial(trial_id)
        wanted = {
            metric
            for t in self._trials
            for ceiling in (self._subjects.of(t).workload.ceiling,)
            if ceiling is not None and ceiling.workload == trial.job.workload
            for metric in ceiling.taints.values()
        }
        best: dict[str, tuple[float, StepRow]] = {}
        for row in store.step_runs(trial_id):
            for (_, _, _, metric), value in store.measurements(row.id).items():
                if metric in wanted and value > best.get(metric, (0.0, row))[0]:
                    best[metric] = (value, row)
        for metric, (value, row) in best.items():
            store.add_ceiling(
                CeilingRow(self._host.name, self._host.device, metric, value, row.ended_at or 0.0, row.id)
            )


def _compare(command: Command, text: str) -> Mapping[str, Any]:
    return compare_options(command.flags, text)


def _revived(stored: Mapping[str, Any], model: Any) -> dict[str, Any]:
    return {name: model.model_validate(value) for name, value in stored.items()}


def _snapshot(session: Session, prepared: Prepared) -> dict[str, Any]:
    """Everything that the sweep was made from, so that later edits do not reach a running sweep."""
    names = {trial.job.workload for trial in prepared.plan.trials}
    workloads = {name: session.catalog.workload(name) for name in sorted(names)}
    engines = {w.engine: session.catalog.engine(w.engine) for w in workloads.values()}
    tools = {s.tool: session.catalog.tool(s.tool) for w in workloads.values() for s in w.steps}
    return {
        "sweep": prepared.sweep.model_dump(mode="json"),
        "workloads": {name: w.model_dump(mode="json") for name, w in workloads.items()},
        "engines": {name: e.model_dump(mode="json") for name, e in engines.items()},
        "tools": {name: t.model_dump(mode="json") for name, t in tools.items()},
    }


def _with_skipped(plan: Plan, skipped: Sequence[tuple[str, str]]) -> Plan:
    from dataclasses import replace

    return replace(plan, skipped=(*skipped, *plan.skipped))


def _obstacles(session: Session, sweep: definitions.Sweep, plan: Plan) -> tuple[str, ...]:
    """What would make the sweep fail at once: too little disk, a directory that is not ours."""
    from benchrunner import workdir
    from benchrunner.transports.local import LocalTransport
    from benchrunner.units import format_size

    found = []
    for name in sweep.hosts:
        host = session.catalog.host(name)
        if host.address:
            continue
        transport, places = LocalTransport(), roots(session, host)
        for path in dict.fromkeys(p for p in (places.work, places.databases, places.wal) if p):
            try:
                workdir.check_claimable(transport, path)
            except BenchrunnerError as error:
                found.append(error.message)
        where = places.databases or places.work
        free = workdir.disk_free(transport, where)
        if plan.disk_bytes is not None and plan.disk_bytes > free:
            found.append(
                f"host {name} has {format_size(free)} free at {where}, and a trial needs about "
                f"{format_size(plan.disk_bytes)}"
            )
    return tuple(found)


__all__ = ["NothingSelectedError", "Prepared", "Summary"]
