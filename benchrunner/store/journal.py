"""State changes of trials and step runs, each durable and journalled when the method returns.

The rules of who may become what are here and nowhere else. A trial belongs to the controller that
began it; a controller whose lease was taken over is refused, whatever it still believes.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, insert, select, update

from benchrunner.errors import StoreError
from benchrunner.model import StepState, TrialState
from benchrunner.store.base import StoreBase
from benchrunner.store.engine import WRITES
from benchrunner.store.schema import job, lease, step_run, trial

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from benchrunner.model import Command, Handle
    from benchrunner.store.rows import ServerSeen, StepEnd

BEGIN_FROM = (TrialState.PLANNED, TrialState.RUNNING)
END_FROM_PLANNED = (TrialState.SKIPPED, TrialState.FAILED)
"""A trial that never ran: the host lacks something, or the build failed."""

# Statements are made once: making one anew costs more than running it.
_TRIAL = (
    select(trial, job.c.host)
    .join(job, job.c.id == trial.c.job_id)
    .where(trial.c.id == bindparam("trial_id"))
)
_TRIAL_LOCKED = _TRIAL.with_for_update(of=trial)
_TRIAL_AND_LEASE_LOCKED = (
    _TRIAL.add_columns(lease.c.fence.label("newest_fence"))
    .join(lease, lease.c.host == job.c.host)
    .with_for_update(of=[trial, lease])
)
_STEP = select(step_run).where(step_run.c.id == bindparam("step_run_id"))
_BEGUN = select(step_run.c.id, step_run.c.state).where(
    step_run.c.trial_id == bindparam("trial_id"),
    step_run.c.attempt == bindparam("attempt"),
    step_run.c.step == bindparam("step"),
)
_UNENDED = select(step_run.c.step).where(
    step_run.c.trial_id == bindparam("trial_id"),
    step_run.c.attempt == bindparam("attempt"),
    step_run.c.state.in_((StepState.STARTING.value, StepState.RUNNING.value)),
)
_UPDATE_TRIAL = update(trial).where(trial.c.id == bindparam("the_id"))
_UPDATE_STEP = update(step_run).where(step_run.c.id == bindparam("the_id"))
_INSERT_STEP = insert(step_run).returning(step_run.c.id)

NOT_OURS = "end this controller; benchrunner resume goes on with what is unfinished"


class Journal(StoreBase):
    """Writes down what happens to trials while it happens."""

    def begin_trial(
        self,
        trial_id: str,
        *,
        artifact_id: str | None,
        facts_id: str | None,
        fence: int | None,
        server: ServerSeen | None = None,
    ) -> int:
        """Makes a planned trial ours, or one that a dead controller left running.

        Returns:
            The number of its attempt; nothing of it has begun if the trial was planned.

        Args:
            trial_id: The stored id.
            artifact_id: What it runs; stored before.
            facts_id: Where it runs; stored before.
            fence: Of the lease held on its host; ``None`` only where no lease is used.
            server: The host of its services, where that is another one.

        Raises:
            StoreError: It has ended, another controller runs it, or the lease is not ours.
        """
        # Not durable by itself: nothing has happened yet that a power failure could make untrue.
        with self._database.write("begin-trial", durable=False) as connection:
            row = _trial(connection, trial_id)
            if TrialState(row.state) not in BEGIN_FROM:
                raise StoreError(f"trial {trial_id} has ended ({row.state})", "restart it first")
            _refuse_old_fence(row, fence)
            adopted = row.state == TrialState.RUNNING.value
            if adopted and (row.fence is None) != (fence is None):
                raise StoreError(f"trial {trial_id} is run by another controller", NOT_OURS)
            values = {
                "state": TrialState.RUNNING.value,
                "artifact_id": artifact_id,
                "facts_id": facts_id,
                "fence": fence,
                "started_at": row.started_at if adopted else self._clock(),
                "server_address": None if server is None else server.address,
                "server_facts_id": None if server is None else server.facts_id,
            }
            connection.execute(_UPDATE_TRIAL, {"the_id": trial_id, **values})
            detail = {"fence": fence, "attempt": row.attempt, "artifact": artifact_id}
            what = "trial-adopted" if adopted else "trial-begun"
            self._log(connection, what, detail, trial_id=trial_id, sweep_id=row.sweep_id)
        self._fences[trial_id] = fence
        return int(row.attempt)

    def end_trial(self, trial_id: str, state: TrialState, reason: str = "") -> None:
        """Stores how a trial ended; a planned one can only be skipped or fail to be built.

        Raises:
            StoreError: ``state`` is not final or does not follow, a step still runs, the trial is
                not ours, or the reason is missing.
        """
        with self._database.write("end-trial") as connection:
            row = _trial(connection, trial_id)
            _refuse_trial_end(row, state, reason)
            if row.state == TrialState.RUNNING.value:
                self._refuse_foreign(connection, row)
                _refuse_running_steps(connection, row)
            values = {"state": state.value, "reason": reason, "ended_at": self._clock()}
            connection.execute(_UPDATE_TRIAL, {"the_id": trial_id, **values})
            detail = {"state": state.value, "reason": reason, "attempt": row.attempt}
            self._log(connection, "trial-ended", detail, trial_id=trial_id, sweep_id=row.sweep_id)
        self._fences.pop(trial_id, None)

    def restart_trial(self, trial_id: str, reason: str) -> None:
        """Starts a trial again from nothing: its step runs are kept, but count no more.

        A running trial goes on running in a new attempt; an ended one is planned again.

        Raises:
            StoreError: It has not begun, is not ours, or a step of it still runs.
        """
        with self._database.write("restart-trial") as connection:
            row = _trial(connection, trial_id)
            if row.state == TrialState.PLANNED.value:
                raise StoreError(f"trial {trial_id} has not begun, so it cannot start again")
            running = row.state == TrialState.RUNNING.value
            if running:
                self._refuse_foreign(connection, row)
                _refuse_running_steps(connection, row)
            connection.execute(
                update(step_run).where(step_run.c.trial_id == trial_id).values(superseded=True)
            )
            values: dict[str, Any] = {"attempt": row.attempt + 1, "reason": "", "ended_at": None}
            if not running:
                values |= {"state": TrialState.PLANNED.value, "fence": None, "started_at": None}
            connection.execute(_UPDATE_TRIAL, {"the_id": trial_id, **values})
            detail = {"reason": reason, "attempt": row.attempt + 1, "was": row.state}
            ids = {"trial_id": trial_id, "sweep_id": row.sweep_id}
            self._log(connection, "trial-restarted", detail, **ids)

    def attempt(self, trial_id: str) -> int:
        """The number of the trial's current attempt, from 1."""
        with self._database.read() as connection:
            return int(_trial(connection, trial_id).attempt)

    def trial_state(self, trial_id: str) -> TrialState:
        """Where a trial stands now."""
        with self._database.read() as connection:
            return TrialState(_trial(connection, trial_id).state)

    def begin_step(
        self,
        trial_id: str,
        step: str,
        position: int,
        command: Command,
        run_dir: str,
        host: str | None = None,
    ) -> int:
        """Writes down a step before its process starts, and returns the step run's number.

        The run folder is known from here on, so that whoever comes later can find the process;
        it is on ``host``, if that is another than the job's.

        Raises:
            StoreError: The step was begun already in this attempt, or the trial is not ours.
        """
        with self._database.write("begin-step") as connection:
            row = _trial(connection, trial_id)
            self._refuse_foreign(connection, row)
            _refuse_second_begin(connection, row, step)
            values = {
                "trial_id": trial_id,
                "attempt": row.attempt,
                "step": step,
                "position": position,
                "state": StepState.STARTING.value,
                "argv": list(command.argv),
                "env": dict(command.env),
                "flags": [asdict(note) for note in command.flags],
                "run_dir": run_dir,
                "host": host,
                "started_at": self._clock(),
            }
            done = connection.execute(_INSERT_STEP, values)
            step_run_id = int(done.scalar_one())
            detail = {"step": step, "attempt": row.attempt, "run_dir": run_dir}
            ids = {"trial_id": trial_id, "sweep_id": row.sweep_id, "step_run_id": step_run_id}
            self._log(connection, "step-begun", detail, **ids)
        return step_run_id

    def step_running(self, step_run_id: int, handle: Handle) -> None:
        """Notes the process of a step that has started.

        Raises:
            StoreError: The step is not starting, or its trial is not ours.
        """
        # Not durable by itself: the handle can be read again from the run folder.
        with self._database.write("step-running", durable=False) as connection:
            row, owner = self._step_for_change(connection, step_run_id)
            if row.state != StepState.STARTING.value:
                raise StoreError(f"step {row.step} of trial {row.trial_id} is not starting "
                                 f"({row.state})")  # fmt: skip
            values = {
                "state": StepState.RUNNING.value,
                "pid": handle.pid,
                "start_time": handle.start_time,
                "run_dir": handle.run_dir,
            }
            connection.execute(_UPDATE_STEP, {"the_id": step_run_id, **values})
            detail = {"step": row.step, "pid": handle.pid, "start_time": handle.start_time}
            ids = {"trial_id": owner.id, "sweep_id": owner.sweep_id, "step_run_id": step_run_id}
            self._log(connection, "step-running", detail, **ids)

    def end_step(self, step_run_id: int, state: StepState, end: StepEnd) -> None:
        """Stores how a step's process ended; ``invalid`` is what parsing finds, later.

        Raises:
            StoreError: ``state`` is not an end, the step has ended already, the reason is missing,
                or the trial is not ours.
        """
        with self._database.write("end-step") as connection:
            row, owner = self._step_for_change(connection, step_run_id)
            _refuse_step_end(row, state, end.reason)
            status = end.status or {}
            values = {
                "state": state.value,
                "reason": end.reason,
                "ended_at": self._clock(),
                "exit_code": status.get("exit_code"),
                "signal": status.get("signal"),
                "status": None if end.status is None else dict(end.status),
                "raw_path": end.raw_path,
                "raw_sha256": end.raw_sha256,
                "options": None if end.options is None else dict(end.options),
            }
            connection.execute(_UPDATE_STEP, {"the_id": step_run_id, **values})
            detail = {"step": row.step, "state": state.value, "reason": end.reason}
            ids = {"trial_id": owner.id, "sweep_id": owner.sweep_id, "step_run_id": step_run_id}
            self._log(connection, "step-ended", detail, **ids)

    def _step_for_change(self, connection: Connection, step_run_id: int) -> tuple[Any, Any]:
        """A step run and its trial, which must be ours; both locked."""
        number = {"step_run_id": step_run_id}
        row = connection.execute(_STEP, number).first()
        if row is None:
            raise StoreError(f"there is no step run {step_run_id}")
        owner = _trial(connection, row.trial_id)
        if not self._database.is_sqlite:
            # It may have changed before the lock; a writer to SQLite is alone from its start.
            row = connection.execute(_STEP, number).one()
        if row.superseded:
            raise StoreError(
                f"step {row.step} of trial {row.trial_id} belongs to an earlier attempt"
            )
        self._refuse_foreign(connection, owner)
        return row, owner

    def _refuse_foreign(self, connection: Connection, row: Any) -> None:
        """Only the controller that began a trial under the host's newest fence may change it."""
        if row.state != TrialState.RUNNING.value:
            raise StoreError(f"trial {row.id} is not running ({row.state})", "begin it first")
        if row.id not in self._fences or self._fences[row.id] != row.fence:
            fence = "no lease" if row.fence is None else f"fence {row.fence}"
            raise StoreError(f"trial {row.id} is run by another controller ({fence})", NOT_OURS)
        _refuse_old_fence(row, row.fence)


def _trial(connection: Connection, trial_id: str) -> Any:
    """A trial with its job's host; in a write transaction locked, with the host's newest fence."""
    wanted = {"trial_id": trial_id}
    row = None
    if connection.get_execution_options().get(WRITES):
        row = connection.execute(_TRIAL_AND_LEASE_LOCKED, wanted).first()
        if row is None:  # a host without leases
            row = connection.execute(_TRIAL_LOCKED, wanted).first()
    else:
        row = connection.execute(_TRIAL, wanted).first()
    if row is None:
        raise StoreError(
            f"there is no trial {trial_id!r}", "benchrunner status lists what is stored"
        )
    return row


def _refuse_old_fence(row: Any, fence: int | None) -> None:
    if fence is None:
        return
    newest = getattr(row, "newest_fence", None)
    if newest != fence or (row.fence is not None and row.fence > fence):
        raise StoreError(
            f"the lease of host {row.host!r} was taken over (fence {fence}, now {newest}), "
            f"so trial {row.id} is not ours to change",
            NOT_OURS,
        )


def _refuse_running_steps(connection: Connection, row: Any) -> None:
    running = connection.execute(_UNENDED, {"trial_id": row.id, "attempt": row.attempt}).scalar()
    if running is not None:
        raise StoreError(f"step {running} of trial {row.id} still runs", "end the step first")


def _refuse_trial_end(row: Any, state: TrialState, reason: str) -> None:
    now = TrialState(row.state)
    if (
        not state.final
        or now.final
        or (now is TrialState.PLANNED and state not in END_FROM_PLANNED)
    ):
        raise StoreError(f"trial {row.id} cannot become {state.value}: it is {now.value}")
    if state is not TrialState.OK and not reason:
        raise StoreError(f"trial {row.id} cannot become {state.value} without a reason")


def _refuse_step_end(row: Any, state: StepState, reason: str) -> None:
    now = StepState(row.state)
    allowed = state.final and state is not StepState.INVALID and not now.final
    if not allowed or (now is StepState.RUNNING and state is StepState.SKIPPED):
        raise StoreError(f"step {row.step} of trial {row.trial_id} cannot become {state.value}: "
                         f"it is {now.value}")  # fmt: skip
    if state is not StepState.OK and not reason:
        raise StoreError(f"step {row.step} of trial {row.trial_id} cannot become {state.value} "
                         "without a reason")  # fmt: skip


def _refuse_second_begin(connection: Connection, row: Any, step: str) -> None:
    attempt = {"trial_id": row.id, "attempt": row.attempt, "step": step}
    begun = connection.execute(_BEGUN, attempt).first()
    if begun is not None:
        raise StoreError(
            f"step {step} of trial {row.id} was begun already (step run {begun.id}, {begun.state})",
            "find its process by the run folder, or restart the trial",
        )
