"""Records that do not change state: sweeps and plans, artifacts, host facts, ceilings, settings."""

from __future__ import annotations

from importlib import metadata as packages
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, insert, select, update

from benchrunner.errors import StoreError
from benchrunner.model import TrialState
from benchrunner.store import convert
from benchrunner.store.base import StoreBase, batches, insert_absent
from benchrunner.store.rows import MEMORY, CeilingRow
from benchrunner.store.schema import (
    artifact,
    ceiling,
    host_facts,
    job,
    setting,
    step_run,
    sweep,
    trial,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Select

    from benchrunner.model import Artifact, HostFacts, Plan
    from benchrunner.store.rows import SweepRow

UNFINISHED = (TrialState.PLANNED.value, TrialState.RUNNING.value)


class Records(StoreBase):
    """Adds records and reads them back."""

    def add_sweep(
        self,
        plan: Plan,
        spec: Mapping[str, Any],
        *,
        command_line: Sequence[str] = (),
        baseline: Mapping[str, str] | None = None,
    ) -> int:
        """Stores a whole plan, before any of it starts, and returns the sweep's number.

        A plan can be swept many times: the stored id of a trial is the plan's, with the sweep's
        number in front. ``trials(sweep_id)`` returns them.

        Raises:
            StoreError: The plan has no trials, or lists one of them twice.
        """
        _refuse_unclear(plan)
        jobs = {planned.job.id: convert.job_values(planned.job) for planned in plan.trials}
        with self._database.write("add-sweep") as connection:
            values = {
                "name": plan.sweep,
                "created_at": self._clock(),
                "spec": dict(spec),
                "baseline": dict(baseline or {}),
                "command_line": list(command_line),
                "benchrunner_version": own_version(),
                "expected": convert.expected_values(plan),
            }
            done = connection.execute(insert(sweep).returning(sweep.c.id), values)
            sweep_id = int(done.scalar_one())
            insert_absent(connection, job, list(jobs.values()))
            connection.execute(
                insert(trial),
                [
                    {
                        "id": f"{sweep_id}-{planned.id}",
                        "sweep_id": sweep_id,
                        "job_id": planned.job.id,
                        "repetition": planned.repetition,
                        "position": planned.position,
                        "state": TrialState.PLANNED.value,
                    }
                    for planned in plan.trials
                ],
            )
            detail = {"name": plan.sweep, "trials": len(plan.trials)}
            self._log(connection, "sweep-planned", detail, sweep_id=sweep_id)
        return sweep_id

    def sweeps(self) -> tuple[SweepRow, ...]:
        """Every sweep, newest first."""
        with self._database.read() as connection:
            rows = connection.execute(_sweeps().order_by(sweep.c.id.desc()))
            return tuple(convert.to_sweep(row) for row in rows)

    def sweep(self, sweep_id: int) -> SweepRow:
        """One sweep.

        Raises:
            StoreError: There is none of that number.
        """
        with self._database.read() as connection:
            row = connection.execute(_sweeps().where(sweep.c.id == sweep_id)).first()
        if row is None:
            raise StoreError(f"there is no sweep {sweep_id} in {self._database.where}", HINT_STATUS)
        return convert.to_sweep(row)

    def latest_sweep(self) -> SweepRow | None:
        """The sweep added last; ``None`` in an empty store."""
        with self._database.read() as connection:
            row = connection.execute(_sweeps().order_by(sweep.c.id.desc()).limit(1)).first()
        return None if row is None else convert.to_sweep(row)

    def unfinished_sweeps(self) -> tuple[SweepRow, ...]:
        """Sweeps with planned or running trials, oldest first: what ``resume`` goes on with."""
        waiting = select(trial.c.sweep_id).where(
            trial.c.sweep_id == sweep.c.id, trial.c.state.in_(UNFINISHED)
        )
        with self._database.read() as connection:
            rows = connection.execute(_sweeps().where(waiting.exists()).order_by(sweep.c.id))
            return tuple(convert.to_sweep(row) for row in rows)

    def save_artifact(self, value: Artifact) -> None:
        """Stores a build, also a failed one; a later build of the same id replaces it."""
        values = convert.artifact_values(value)
        with self._database.write("save-artifact") as connection:
            row = values | {"created_at": self._clock()}
            insert_absent(connection, artifact, [row])
            connection.execute(update(artifact).where(artifact.c.id == value.id).values(**values))
            detail = {"artifact": value.id, "state": value.state, "reason": value.reason}
            self._log(connection, "artifact-saved", detail)

    def artifact(self, artifact_id: str) -> Artifact | None:
        """One artifact; ``None`` when it was never stored."""
        return self._artifacts([artifact_id]).get(artifact_id)

    def save_facts(self, facts: HostFacts) -> None:
        """Stores what was observed on a host; the same facts seen again change nothing."""
        values = {
            "id": facts.id,
            "host": facts.host,
            "taken_at": facts.taken_at,
            "boot_id": facts.boot_id,
            "facts": dict(facts.facts),
        }
        with self._database.write("save-facts") as connection:
            insert_absent(connection, host_facts, [values])

    def facts(self, facts_id: str) -> HostFacts | None:
        """Host facts by their id; ``None`` when they were never stored."""
        return self._facts([facts_id]).get(facts_id)

    def last_facts(self, host: str) -> HostFacts | None:
        """Those under which a trial was last begun on a host; ``None`` before the first one."""
        seen = ((job.c.host, trial.c.facts_id), (job.c.server, trial.c.server_facts_id))
        newest = [
            select(trial.c.sweep_id, trial.c.started_at, facts_id)
            .join(job, job.c.id == trial.c.job_id)
            .where(role == host, facts_id.is_not(None))
            .order_by(trial.c.sweep_id.desc(), trial.c.started_at.desc())
            .limit(1)
            for role, facts_id in seen
        ]
        with self._database.read() as connection:
            rows = [row for s in newest for row in connection.execute(s)]
        return self.facts(max(rows, key=lambda row: (row[0], row[1] or 0.0))[2]) if rows else None

    def add_ceiling(self, value: CeilingRow) -> None:
        """Stores what a host's device can do; its step run tells the workload and step."""
        names = (
            "host", "device", "metric", "value", "taken_at", "step_run_id", "block_bytes"
        )  # fmt: skip
        with self._database.write("add-ceiling") as connection:
            connection.execute(insert(ceiling), {name: getattr(value, name) for name in names})

    def ceilings(self, host: str, device: str | None = None) -> tuple[CeilingRow, ...]:
        """The newest ceiling of each device, metric and size of a block of a host.

        Args:
            host: its name.
            device: only of this one and of the host's memory; ``None``: of all.
        """
        here = ceiling.c.host == host
        newest = (
            select(func.max(ceiling.c.id))
            .where(here if device is None else here & ceiling.c.device.in_((device, MEMORY)))
            .group_by(ceiling.c.device, ceiling.c.metric, ceiling.c.block_bytes)
        )
        sources = (
            ceiling.outerjoin(step_run, ceiling.c.step_run_id == step_run.c.id)
            .outerjoin(trial, step_run.c.trial_id == trial.c.id)
            .outerjoin(job, trial.c.job_id == job.c.id)
        )
        columns = [column for column in ceiling.c if column.name != "id"]
        statement = (
            select(*columns, job.c.workload, step_run.c.step)
            .select_from(sources)
            .where(ceiling.c.id.in_(newest))
            .order_by(ceiling.c.id)
        )
        with self._database.read() as connection:
            return tuple(CeilingRow(**row._asdict()) for row in connection.execute(statement))

    def setting(self, key: str) -> Any:
        """A stored setting; ``None`` when it was never set."""
        with self._database.read() as connection:
            statement = select(setting.c.value).where(setting.c.key == key)
            return connection.execute(statement).scalar()

    def save_setting(self, key: str, value: Any) -> None:
        """Stores a setting in the place of an older one."""
        with self._database.write("save-setting") as connection:
            insert_absent(connection, setting, [{"key": key, "value": value}])
            connection.execute(update(setting).where(setting.c.key == key).values(value=value))

    def _artifacts(self, ids: Sequence[str]) -> dict[str, Artifact]:
        found: dict[str, Artifact] = {}
        with self._database.read() as connection:
            for batch in batches(ids):
                rows = connection.execute(select(artifact).where(artifact.c.id.in_(batch)))
                found.update((row.id, convert.to_artifact(row)) for row in rows)
        return found

    def _facts(self, ids: Sequence[str]) -> dict[str, HostFacts]:
        found: dict[str, HostFacts] = {}
        with self._database.read() as connection:
            for batch in batches(ids):
                rows = connection.execute(select(host_facts).where(host_facts.c.id.in_(batch)))
                found.update((row.id, convert.to_facts(row)) for row in rows)
        return found


HINT_STATUS = "benchrunner status lists what is stored"


def _sweeps() -> Select[Any]:
    unfinished = (
        select(func.count())
        .select_from(trial)
        .where(trial.c.sweep_id == sweep.c.id, trial.c.state.in_(UNFINISHED))
        .scalar_subquery()
    )
    return select(sweep, unfinished.label("unfinished"))


def _refuse_unclear(plan: Plan) -> None:
    if not plan.trials:
        raise StoreError(f"sweep {plan.sweep!r} has no trials to store", "benchrunner plan")
    seen: set[object] = set()
    for planned in plan.trials:
        for key in (planned.id, planned.position, (planned.job.id, planned.repetition)):
            if key in seen:
                raise StoreError(
                    f"the plan of sweep {plan.sweep!r} lists trial {planned.id} twice ({key!r})",
                    "report this: a plan numbers its trials",
                )
            seen.add(key)


def own_version() -> str:
    """The installed version of this program."""
    try:
        return packages.version("benchrunner")
    except packages.PackageNotFoundError:
        return "0+not-installed"
