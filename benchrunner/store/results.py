"""What parsers understood: measurements, curves, problems, taints. Replaced as a whole each time.

All of it can be had again from the raw output, so these writes are not durable by themselves; the
next durable one (the end of the trial) takes them along.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, insert, select, update

from benchrunner.errors import StoreError
from benchrunner.model import Measurement, StepState, TrialState
from benchrunner.store.base import StoreBase, batches, insert_absent
from benchrunner.store.canonical import axes_key
from benchrunner.store.rows import MeasurementKey, ParsedStep
from benchrunner.store.schema import measurement, measurement_key, series, step_run, taint, trial

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection

    from benchrunner.model import Parsed, Taint
    from benchrunner.store.rows import TaintOrigin

_UPDATE_STEP = update(step_run).where(step_run.c.id == bindparam("the_id"))
_INSERTS = {table.name: insert(table) for table in (measurement, series, taint)}
_STEPS = (
    select(
        *(
            step_run.c[name]
            for name in ("id", "trial_id", "step", "state", "reason", "superseded", "parsed_at")
        ),
        trial.c.sweep_id,
    )
    .join(trial, trial.c.id == step_run.c.trial_id)
    .where(step_run.c.id.in_(bindparam("ids", expanding=True)))
    .with_for_update(of=step_run)
)
NO_AXES = {"axes": {}, "axes_key": axes_key({})}


class Results(StoreBase):
    """Stores what was parsed and derived, and the taints."""

    def save_parsed(
        self,
        step_run_id: int,
        parsed: Parsed,
        *,
        parser: str,
        parser_version: str,
        derived: Sequence[Measurement] = (),
    ) -> tuple[StepState, str]:
        """Stores what one step run measured in the place of what was parsed before.

        Returns:
            The step's state and reason: problems make an ok step invalid, none make it ok again.
            An ended trial follows its steps.

        Raises:
            StoreError: The step still runs, or a value is not finite or given twice.
        """
        one = ParsedStep(step_run_id, parsed, parser, parser_version, tuple(derived))
        _, ends = self._save([one])
        return ends[step_run_id]

    def save_parsed_batch(self, parsed_steps: Iterable[ParsedStep]) -> int:
        """The same for many step runs in one transaction; returns the number of measurements."""
        return self._save(parsed_steps)[0]

    def _save(
        self, parsed_steps: Iterable[ParsedStep]
    ) -> tuple[int, dict[int, tuple[StepState, str]]]:
        """Number of measurements, and state and reason of each step run."""
        items = {item.step_run_id: item for item in parsed_steps}
        values = {i: _values(item) for i, item in items.items()}
        keys = self._key_ids({key for found in values.values() for key in found})
        with self._database.write("save-parsed", durable=False) as connection:
            steps = _steps(connection, list(items))
            _clear(connection, [row.id for row in steps if row.parsed_at is not None])
            rows = [
                {"step_run_id": step_run_id, "key_id": keys[key], "value": value}
                for step_run_id, found in values.items()
                for key, value in found.items()
            ]
            _insert(connection, measurement, rows)
            _insert(connection, series, [row for item in items.values() for row in _series(item)])
            _insert(connection, taint, [row for item in items.values() for row in _taints(item)])
            ends = self._judge(connection, steps, items)
        return len(rows), ends

    def add_taints(
        self,
        taints: Iterable[Taint],
        *,
        step_run_id: int | None = None,
        trial_id: str | None = None,
        origin: TaintOrigin = "run",
    ) -> None:
        """Adds reasons to distrust a step run or a whole trial; those of a run outlast parsing.

        Raises:
            StoreError: Not exactly one of ``step_run_id`` and ``trial_id`` is given.
        """
        if (step_run_id is None) == (trial_id is None):
            raise StoreError("a taint belongs either to a step run or to a trial")
        rows = [
            {
                "step_run_id": step_run_id,
                "trial_id": trial_id,
                "name": item.name,
                "evidence": item.evidence,
                "remedy": item.remedy,
                "origin": origin,
            }
            for item in taints
        ]
        with self._database.write("add-taints", durable=False) as connection:
            _insert(connection, taint, rows)

    def _key_ids(self, wanted: set[MeasurementKey]) -> dict[MeasurementKey, int]:
        """Numbers of measurement keys; unknown ones are stored first, in their own transaction."""
        missing = wanted - self._keys.keys()
        if missing:
            self._load_keys()
            missing = wanted - self._keys.keys()
        if missing:
            rows = [
                {"phase": phase or "", "run": run, "role": role or "", "metric": metric, **NO_AXES}
                for phase, run, role, metric in sorted(missing, key=repr)
            ]
            with self._database.write("save-keys", durable=False) as connection:
                insert_absent(connection, measurement_key, rows)
            self._load_keys()
        return self._keys

    def _load_keys(self) -> None:
        with self._database.read() as connection:
            rows = connection.execute(select(measurement_key)).all()
        self._keys.update(
            ((row.phase or None, row.run, row.role or None, row.metric), row.id) for row in rows
        )

    def _judge(
        self, connection: Connection, steps: Sequence[Any], items: dict[int, ParsedStep]
    ) -> dict[int, tuple[StepState, str]]:
        """Step runs become ok or invalid by what was parsed; ended trials follow."""
        changed_trials: set[str] = set()
        changes: list[dict[str, Any]] = []
        for row in steps:
            item = items[row.id]
            state, reason = _judged(row, item.parsed)
            if state != row.state:
                detail = {"step": row.step, "was": row.state, "state": state, "reason": reason}
                ids = {"step_run_id": row.id, "trial_id": row.trial_id, "sweep_id": row.sweep_id}
                self._log(connection, "step-judged", detail, **ids)
                if not row.superseded:
                    changed_trials.add(row.trial_id)
            changes.append(
                {
                    "the_id": row.id,
                    "state": state,
                    "reason": reason,
                    "parser": item.parser,
                    "parser_version": item.parser_version,
                    "parsed_at": self._clock(),
                    "problems": list(item.parsed.problems),
                    "facts": dict(item.parsed.facts),
                }
            )
        if changes:
            connection.execute(_UPDATE_STEP, changes)
        for trial_id in sorted(changed_trials):
            self._judge_trial(connection, trial_id)
        return {c["the_id"]: (StepState(c["state"]), c["reason"]) for c in changes}

    def _judge_trial(self, connection: Connection, trial_id: str) -> None:
        row = connection.execute(select(trial).where(trial.c.id == trial_id)).one()
        if row.state not in (TrialState.OK.value, TrialState.INVALID.value):
            return
        invalid = connection.execute(
            select(step_run.c.step, step_run.c.reason)
            .where(
                step_run.c.trial_id == trial_id,
                ~step_run.c.superseded,
                step_run.c.state == StepState.INVALID.value,
            )
            .order_by(step_run.c.position)
        ).first()
        state = TrialState.INVALID if invalid else TrialState.OK
        reason = f"{invalid.step}: {invalid.reason}" if invalid else ""
        values = {"state": state.value, "reason": reason}
        connection.execute(update(trial).where(trial.c.id == trial_id).values(**values))
        detail = {"was": row.state, "state": state.value, "reason": reason}
        self._log(connection, "trial-judged", detail, trial_id=trial_id, sweep_id=row.sweep_id)


def _judged(row: Any, parsed: Parsed) -> tuple[str, str]:
    """State and reason of a step run after parsing; what did not run well stays as it was.

    What its program said last completes the reason, once.
    """
    problems, complaint = parsed.problems, parsed.complaint
    if row.state not in (StepState.OK.value, StepState.INVALID.value):
        told = not complaint or row.reason.endswith(complaint)
        return row.state, row.reason if told else f"{row.reason}: {complaint}"
    if problems:
        return StepState.INVALID.value, "; ".join(problems)
    return StepState.OK.value, ""


def _values(item: ParsedStep) -> dict[MeasurementKey, float]:
    """Parsed and derived numbers by key.

    Raises:
        StoreError: A number is not finite, or there are two for one key.
    """
    found: dict[MeasurementKey, float] = {}
    for phase, run, role, metric, value in (*item.parsed.measurements, *item.derived):
        key = (phase or None, run, role or None, metric)
        if key in found or not math.isfinite(value):
            what = "two values" if key in found else f"the value {value}"
            raise StoreError(
                f"step run {item.step_run_id} has {what} for {metric} "
                f"(phase {phase}, run {run}, role {role})",
                f"report this with the raw output: the parser {item.parser} may not do that",
            )
        found[key] = value
    return found


def _steps(connection: Connection, ids: Sequence[int]) -> list[Any]:
    """The step runs to judge; all must have ended."""
    found: list[Any] = []
    for batch in batches(ids):
        found.extend(connection.execute(_STEPS, {"ids": list(batch)}))
    missing = set(ids) - {row.id for row in found}
    if missing:
        raise StoreError(f"there is no step run {min(missing)}")
    for row in found:
        if not StepState(row.state).final:
            raise StoreError(f"step {row.step} of trial {row.trial_id} has not ended ({row.state})")
    return found


def _clear(connection: Connection, ids: Sequence[int]) -> None:
    """Removes what parsing stored before; taints of the run itself stay."""
    for batch in batches(ids):
        connection.execute(delete(measurement).where(measurement.c.step_run_id.in_(batch)))
        connection.execute(delete(series).where(series.c.step_run_id.in_(batch)))
        of_these = taint.c.step_run_id.in_(batch)
        connection.execute(delete(taint).where(of_these, taint.c.origin == "parse"))


def _insert(connection: Connection, table: Any, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        connection.execute(_INSERTS[table.name], rows)


def _series(item: ParsedStep) -> list[dict[str, Any]]:
    return [
        {"step_run_id": item.step_run_id, "name": name, "points": [list(point) for point in points]}
        for name, points in item.parsed.series.items()
    ]


def _taints(item: ParsedStep) -> list[dict[str, Any]]:
    return [
        {
            "step_run_id": item.step_run_id,
            "name": found.name,
            "evidence": found.evidence,
            "remedy": found.remedy,
            "origin": "parse",
        }
        for found in item.parsed.taints
    ]
