"""Questions about trials: what stands where, what ran, what a page shows. Reads only."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from benchrunner.errors import StoreError
from benchrunner.model import Job, StepState, TrialState
from benchrunner.store import convert
from benchrunner.store.base import batches
from benchrunner.store.canonical import axes_key, version_key
from benchrunner.store.records import Records
from benchrunner.store.results import Results
from benchrunner.store.rows import PageData, PageStep, PageTrial
from benchrunner.store.schema import (
    event,
    job,
    measurement,
    measurement_key,
    series,
    step_run,
    taint,
    trial,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from sqlalchemy import Connection, Select

    from benchrunner.model import Taint
    from benchrunner.store.rows import EventRow, MeasurementKey, Points, StepRow, TrialRow

FINAL = tuple(state.value for state in TrialState if state.final)
RECENT = 5000
"""Step runs that an expected time is made from, the newest first."""


class Queries(Records, Results):
    """Answers from the store."""

    def trials(
        self, sweep_id: int | None = None, states: Collection[TrialState] | None = None
    ) -> tuple[TrialRow, ...]:
        """Trials in the order of their sweeps and plans, with their jobs."""
        statement = select(trial).order_by(trial.c.sweep_id, trial.c.position)
        if sweep_id is not None:
            statement = statement.where(trial.c.sweep_id == sweep_id)
        if states is not None:
            statement = statement.where(trial.c.state.in_([state.value for state in states]))
        with self._database.read() as connection:
            return _with_jobs(connection, connection.execute(statement).all())

    def trial(self, trial_id: str) -> TrialRow:
        """One trial.

        Raises:
            StoreError: There is none of that id.
        """
        with self._database.read() as connection:
            rows = connection.execute(select(trial).where(trial.c.id == trial_id)).all()
            if not rows:
                raise StoreError(f"there is no trial {trial_id!r}", "benchrunner status")
            return _with_jobs(connection, rows)[0]

    def counts_by_state(self, sweep_id: int | None = None) -> dict[TrialState, int]:
        """How many trials stand where; every state is a key."""
        statement = select(trial.c.state, func.count()).group_by(trial.c.state)
        if sweep_id is not None:
            statement = statement.where(trial.c.sweep_id == sweep_id)
        counts = dict.fromkeys(TrialState, 0)
        with self._database.read() as connection:
            for state, count in connection.execute(statement):
                counts[TrialState(state)] = count
        return counts

    def step_runs(self, trial_id: str, *, include_superseded: bool = False) -> tuple[StepRow, ...]:
        """Processes of a trial in the order they began."""
        statement = select(step_run).where(step_run.c.trial_id == trial_id)
        if not include_superseded:
            statement = statement.where(~step_run.c.superseded)
        return self._step_rows(statement)

    def step_run(self, step_run_id: int) -> StepRow:
        """One process.

        Raises:
            StoreError: There is none of that number.
        """
        rows = self._step_rows(select(step_run).where(step_run.c.id == step_run_id))
        if not rows:
            raise StoreError(f"there is no step run {step_run_id}", "benchrunner status")
        return rows[0]

    def running_steps(self) -> tuple[StepRow, ...]:
        """Processes that had not ended when the journal was last written."""
        alive = (StepState.STARTING.value, StepState.RUNNING.value)
        return self._step_rows(select(step_run).where(step_run.c.state.in_(alive)))

    def step_seconds(
        self, cells: Mapping[tuple[str, str], Mapping[str, Any]]
    ) -> dict[tuple[str, str, str], float]:
        """Median wall time of steps that ended well before.

        Args:
            cells: (workload, scale) -> the parameters that a trial must have had to count.

        Returns:
            (workload, scale, step) -> seconds; nothing for a step that never ran so.
        """
        found: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
        with self._database.read() as connection:
            for (workload, scale), params in cells.items():
                jobs = connection.execute(
                    select(job.c.id, job.c.params).where(
                        job.c.workload == workload, job.c.scale == scale
                    )
                )
                ids = [row.id for row in jobs if row.params == dict(params)]
                for batch in batches(ids):
                    for step, seconds in connection.execute(_wall_times(batch)):
                        found[workload, scale, step].append(seconds)
        return {key: median(values) for key, values in found.items()}

    def parsable_steps(self, sweep_id: int | None = None) -> tuple[StepRow, ...]:
        """Ended processes with raw output, parsed or not: what ``parse --all`` reads."""
        statement = select(step_run).where(step_run.c.raw_path.is_not(None))
        if sweep_id is not None:
            of_sweep = select(trial.c.id).where(trial.c.sweep_id == sweep_id)
            statement = statement.where(step_run.c.trial_id.in_(of_sweep))
        return self._step_rows(statement)

    def events(self, sweep_id: int | None = None) -> tuple[EventRow, ...]:
        """The journal, of one sweep or whole, in the order written."""
        statement = select(event).order_by(event.c.id)
        if sweep_id is not None:
            statement = statement.where(event.c.sweep_id == sweep_id)
        with self._database.read() as connection:
            return tuple(convert.to_event(row) for row in connection.execute(statement))

    def measurements(self, step_run_id: int) -> dict[MeasurementKey, float]:
        """What one step run measured."""
        with self._database.read() as connection:
            return self._measurements(connection, [step_run_id])[step_run_id]

    def series(self, step_run_ids: Iterable[int]) -> dict[int, dict[str, Points]]:
        """Curves of step runs, by step run and name."""
        found: dict[int, dict[str, Points]] = defaultdict(dict)
        with self._database.read() as connection:
            for batch in batches(list(step_run_ids)):
                rows = connection.execute(select(series).where(series.c.step_run_id.in_(batch)))
                for row in rows:
                    points = tuple((at, value) for at, value in row.points)
                    found[row.step_run_id][row.name] = points
        return dict(found)

    def taints(self, step_run_id: int) -> tuple[Taint, ...]:
        """Reasons to distrust one step run."""
        with self._database.read() as connection:
            return _taints(connection, taint.c.step_run_id, [step_run_id])[step_run_id]

    def page_rows(
        self,
        workload: str,
        *,
        sweep_ids: Collection[int] | None = None,
        host: str | None = None,
        scale: str | None = None,
    ) -> PageData:
        """The newest ended trials of every cell of a workload, with all that a page shows.

        A cell is (engine, version, variant, host, server, scale, axes). All its repetitions come
        from one sweep: the newest, among ``sweep_ids`` if given, in which a trial of it has ended.
        """
        with self._database.read() as connection:
            newest = _newest_sweeps(connection, _newest(workload, sweep_ids, host, scale))
            rows = _page_trials(connection, newest)
            steps = _page_steps(connection, [row.id for row in rows])
            step_ids = [step.id for found in steps.values() for step in found]
            measured = self._measurements(connection, step_ids)
            tainted = _taints(connection, taint.c.step_run_id, step_ids)
            trial_taints = _taints(connection, taint.c.trial_id, [row.id for row in rows])
        artifacts = self._artifacts(_known(row.artifact_id for row in rows))
        facts = self._facts(_known(i for row in rows for i in (row.facts_id, row.server_facts_id)))
        return PageData(
            tuple(
                PageTrial(
                    row=row,
                    steps=tuple(
                        PageStep(step, measured[step.id], tainted[step.id])
                        for step in steps[row.id]
                    ),
                    artifact=artifacts.get(row.artifact_id or ""),
                    facts=facts.get(row.facts_id or ""),
                    taints=trial_taints[row.id],
                    server_facts=facts.get(row.server_facts_id or ""),
                )
                for row in rows
            )
        )

    def _step_rows(self, statement: Select[Any]) -> tuple[StepRow, ...]:
        with self._database.read() as connection:
            rows = connection.execute(statement.order_by(step_run.c.id))
            return tuple(convert.to_step(row) for row in rows)

    def _measurements(
        self, connection: Connection, ids: Sequence[int]
    ) -> defaultdict[int, dict[MeasurementKey, float]]:
        """Numbers by step run. Keys are few, and joined in here faster than by the database."""
        found: defaultdict[int, dict[MeasurementKey, float]] = defaultdict(dict)
        self._load_keys()
        names = {number: key for key, number in self._keys.items()}
        for batch in batches(ids):
            rows = connection.execute(
                select(measurement).where(measurement.c.step_run_id.in_(batch))
            )
            for step_run_id, key_id, value in rows:
                found[step_run_id][names[key_id]] = value
        return found


def _wall_times(job_ids: Sequence[str]) -> Select[Any]:
    return (
        select(step_run.c.step, measurement.c.value)
        .join(trial, trial.c.id == step_run.c.trial_id)
        .join(measurement, measurement.c.step_run_id == step_run.c.id)
        .join(measurement_key, measurement_key.c.id == measurement.c.key_id)
        .where(
            trial.c.job_id.in_(job_ids),
            step_run.c.state == StepState.OK.value,
            measurement_key.c.metric == "wall_s",
        )
        .order_by(step_run.c.id.desc())
        .limit(RECENT)
    )


def _known(ids: Iterable[str | None]) -> list[str]:
    return sorted({found for found in ids if found is not None})


def _with_jobs(connection: Connection, rows: Sequence[Any]) -> tuple[TrialRow, ...]:
    """Trials with their jobs, each job read once."""
    jobs: dict[str, Job] = {}
    for batch in batches(sorted({row.job_id for row in rows})):
        found = connection.execute(select(job).where(job.c.id.in_(batch)))
        jobs.update((row.id, convert.to_job(row)) for row in found)
    return tuple(convert.to_trial(row, jobs[row.job_id]) for row in rows)


def _newest(
    workload: str, sweep_ids: Collection[int] | None, host: str | None, scale: str | None
) -> Select[Any]:
    """Jobs of a workload, each with the newest sweep in which it ended: one index seek a job."""
    sweep_id = func.max(trial.c.sweep_id)
    newest = select(sweep_id).where(trial.c.job_id == job.c.id, trial.c.state.in_(FINAL))
    if sweep_ids is not None:
        newest = newest.where(trial.c.sweep_id.in_(sweep_ids))
    statement = select(
        job.c.id, job.c.engine, job.c.version, job.c.variant, job.c.host, job.c.server,
        job.c.scale, job.c.axes_key, newest.scalar_subquery().label("newest"),
    ).where(job.c.workload == workload)  # fmt: skip
    if host is not None:
        statement = statement.where(job.c.host == host)
    if scale is not None:
        statement = statement.where(job.c.scale == scale)
    return statement


def _newest_sweeps(connection: Connection, statement: Select[Any]) -> dict[str, int]:
    """Job id -> sweep, for the jobs of every cell that ended in the cell's newest sweep."""
    rows = [row for row in connection.execute(statement) if row.newest is not None]
    of_cell: dict[tuple[str, ...], int] = {}
    for row in rows:
        cell = tuple(row[1:-1])
        of_cell[cell] = max(of_cell.get(cell, 0), row.newest)
    return {row.id: row.newest for row in rows if row.newest == of_cell[tuple(row[1:-1])]}


def _page_trials(connection: Connection, newest: Mapping[str, int]) -> list[TrialRow]:
    """The ended trials of these jobs in these sweeps, in the order of a page."""
    rows: list[Any] = []
    for batch in batches(sorted(newest)):
        statement = select(trial).where(
            trial.c.job_id.in_(batch),
            trial.c.state.in_(FINAL),
            trial.c.sweep_id.in_(sorted({newest[job_id] for job_id in batch})),
        )
        found = connection.execute(statement)
        rows.extend(row for row in found if row.sweep_id == newest[row.job_id])
    trials = list(_with_jobs(connection, rows))
    trials.sort(key=lambda row: (row.repetition, row.position))
    trials.sort(key=lambda row: (row.job.variant, version_key(axes_key(row.job.axes))))
    trials.sort(key=lambda row: version_key(row.job.version), reverse=True)
    trials.sort(key=lambda row: (row.job.engine, row.job.host, row.job.server, row.job.scale))
    return trials


def _page_steps(
    connection: Connection, trial_ids: Sequence[str]
) -> defaultdict[str, list[StepRow]]:
    found: defaultdict[str, list[StepRow]] = defaultdict(list)
    for batch in batches(trial_ids):
        statement = (
            select(step_run)
            .where(step_run.c.trial_id.in_(batch), ~step_run.c.superseded)
            .order_by(step_run.c.position, step_run.c.id)
        )
        for row in connection.execute(statement):
            found[row.trial_id].append(convert.to_step(row))
    return found


def _taints(
    connection: Connection, column: Any, ids: Sequence[Any]
) -> defaultdict[Any, tuple[Taint, ...]]:
    found: defaultdict[Any, tuple[Taint, ...]] = defaultdict(tuple)
    for batch in batches(ids):
        rows = connection.execute(select(taint).where(column.in_(batch)).order_by(taint.c.id))
        for row in rows:
            found[getattr(row, column.name)] += (convert.to_taint(row),)
    return found
