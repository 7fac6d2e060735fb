"""One trial at a time: starts each step under the supervisor, journals every change, keeps the raw.

In: a planned trial, its artifact, and a place to run. Out: run folders in the results folder and
state changes in the journal. It never reads what a tool printed; ``after_step`` does that. The same
code path starts a trial and goes on with one that a killed controller left: for each step it asks
the journal and the run folder what has already happened.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchrunner import faults
from benchrunner.command import Placement, build_command, step_limits
from benchrunner.errors import (
    EXIT_INTERRUPTED,
    BenchrunnerError,
    ConfigurationError,
    LaunchError,
)
from benchrunner.events import Event, Observer, ignore
from benchrunner.launchers import LaunchRequest, RunState
from benchrunner.model import Command, Handle, StepState, TrialState
from benchrunner.outcomes import (
    Outcome,
    blocked_by,
    classify,
    loaded_after,
    starts_pristine,
    trial_outcome,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchrunner import definitions
    from benchrunner.launchers import Launcher
    from benchrunner.model import Artifact, PlannedTrial
    from benchrunner.places import HostDisk
    from benchrunner.store import Store
    from benchrunner.store.rows import StepRow

GRACE_S = 10.0
"""Seconds between TERM and KILL: db_bench needs a moment to close a database."""


@dataclass(frozen=True, slots=True)
class StepEnd:
    """What is stored when a step's process has ended."""

    reason: str = ""
    status: Mapping[str, Any] | None = None
    raw_path: str | None = None
    raw_sha256: str | None = None
    options: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """What a trial runs: definitions of its workload, its engine and the tools of its steps."""

    workload: definitions.Workload
    engine: definitions.Engine
    tools: Mapping[str, definitions.Tool]
    flags: Mapping[str, Any]
    """Flag matrix of the engine's tool (``engines/flags/*.json``), empty when there is none."""
    host_env: Mapping[str, str] = field(default_factory=dict)

    def step(self, name: str) -> definitions.Step:
        """The definition of a step of this workload."""
        return next(step for step in self.workload.steps if step.name == name)


@dataclass(frozen=True, slots=True)
class Hooks:
    """What others do with what happened here."""

    after_step: Callable[[int], tuple[StepState, str]]
    """Reads a step run's raw output; returns its state and reason then."""
    compare_options: Callable[[Command, str], Mapping[str, Any]]
    """Options asked for against the text of those that applied."""
    before_end: Callable[[str], None] = lambda _trial_id: None
    """Called before a trial's end is journalled; again after a crash there."""


class InterruptedByUserError(BenchrunnerError):
    """Ctrl-C ended the running step; what finished before it is stored."""

    exit_code = EXIT_INTERRUPTED


class _StoppedEarlierError(Exception):
    """A step that a former controller started was being stopped when this one came."""


class TrialRunner:
    """Runs trials at one place, one after another."""

    def __init__(
        self,
        journal: Store,
        disk: HostDisk,
        launcher: Launcher,
        hooks: Hooks,
        observer: Observer = ignore,
    ) -> None:
        self._journal = journal
        self._disk = disk
        self._launcher = launcher
        self._hooks = hooks
        self._observer = observer

    def run(self, trial: PlannedTrial, subject: Subject, artifact: Artifact) -> TrialState:
        """Starts a begun trial, or goes on where the journal says it stood; returns its end.

        Raises:
            InterruptedByUserError: Ctrl-C; the step is ended and journalled as interrupted.
        """
        while True:
            rows = {row.step: row for row in self._journal.step_runs(trial.id)}
            why = self._must_restart(trial, rows)
            if why:
                self._journal.restart_trial(trial.id, f"{why}; the trial starts again")
                rows = {}
            try:
                return self._finish(trial, self._steps(trial, subject, artifact, rows))
            except _StoppedEarlierError:
                continue

    def _must_restart(self, trial: PlannedTrial, rows: Mapping[str, StepRow]) -> str:
        """Why what has been done of a trial cannot be gone on with."""
        if any(row.state is StepState.INTERRUPTED for row in rows.values()):
            return "a step was interrupted"
        open_steps = [name for name in trial.job.steps if name not in rows]
        open_steps += [row.step for row in rows.values() if not row.state.final]
        if not rows or not open_steps or self._disk.has_database(trial.id):
            return ""
        why = "its database is gone"
        for row in rows.values():
            if not row.state.final:
                self._journal.end_step(row.id, StepState.INTERRUPTED, StepEnd(why))
        return why

    def _steps(
        self,
        trial: PlannedTrial,
        subject: Subject,
        artifact: Artifact,
        rows: Mapping[str, StepRow],
    ) -> list[Outcome]:
        """Brings every step of an attempt to its end; ``rows`` are those that have begun."""
        attempt = self._journal.attempt(trial.id)
        if not rows:
            self._disk.fresh_database(trial.id, attempt)
        faults.point("database-fresh")
        loaded = ""
        if trial.job.policy == "pristine":
            loaded = loaded_after(subject.workload, trial.job.steps)
        outcomes: list[Outcome] = []
        for position, name in enumerate(trial.job.steps, start=1):
            step = _Step(trial, subject, artifact, subject.step(name), position, attempt)
            outcomes.append(self._step(step, rows.get(name), outcomes))
            if name == loaded and not blocked_by(subject.workload, outcomes):
                self._disk.keep_loaded(trial.id, subject.engine.data.immutable)
                faults.point("loaded-kept")
        return outcomes

    def _finish(self, trial: PlannedTrial, outcomes: Sequence[Outcome]) -> TrialState:
        state, reason = trial_outcome(outcomes)
        faults.point("steps-done")
        self._hooks.before_end(trial.id)
        self._disk.remove(trial.id)
        faults.point("database-removed")
        self._journal.end_trial(trial.id, state, reason)
        faults.point("trial-ended")
        data = {"trial": trial.id, "state": state.value, "reason": reason}
        self._observer(Event("trial-end", f"trial {state.value}{_because(reason)}", data))
        return state

    def _step(self, step: _Step, row: StepRow | None, before: Sequence[Outcome]) -> Outcome:
        """Brings one step to its end, whatever of it has happened already."""
        name = step.definition.name
        if row is not None and row.state.final:
            return self._ended(row)
        if row is None and (blocked := blocked_by(step.subject.workload, before)):
            return self._without_process(step, StepState.SKIPPED, blocked)
        run_dir = row.run_dir if row is not None else self._disk.run_dir(
            step.trial.id, step.attempt, step.position, name
        )  # fmt: skip
        try:
            command = self._command(step, run_dir)
        except ConfigurationError as error:
            # The plan could not know: this very binary does not take what the workload asks.
            return self._without_process(step, StepState.FAILED, error.message)
        step_run_id, handle = self._begin(step, row, command, run_dir)
        state, reason = self._watch(_Running(step, step_run_id, command, handle, row is not None))
        data = {"trial": step.trial.id, "step": name, "state": state.value, "reason": reason,
                "step_run": step_run_id}  # fmt: skip
        self._observer(Event("step-end", f"{name}: {state.value}{_because(reason)}", data))
        return Outcome(name, state, reason)

    def _ended(self, row: StepRow) -> Outcome:
        """A step that ended under a former controller, which may have died before parsing it."""
        state, reason = row.state, row.reason
        if row.parsed_at is None and row.raw_path is not None:
            state, reason = self._hooks.after_step(row.id)
        return Outcome(row.step, state, reason)

    def _without_process(self, step: _Step, state: StepState, reason: str) -> Outcome:
        """Journals a step that is not run at all."""
        trial, name = step.trial, step.definition.name
        step_run_id = self._journal.begin_step(trial.id, name, step.position, Command(()), "")
        self._journal.end_step(step_run_id, state, StepEnd(reason))
        data = {"trial": trial.id, "step": name, "state": state.value, "reason": reason,
                "step_run": step_run_id}  # fmt: skip
        self._observer(Event("step-end", f"{name}: {state.value}: {reason}", data))
        return Outcome(name, state, reason)

    def _begin(
        self, step: _Step, row: StepRow | None, command: Command, run_dir: str
    ) -> tuple[int, Handle]:
        """Journals the step before it starts, so that it is found and never started twice."""
        trial, name = step.trial, step.definition.name
        if row is None:
            if starts_pristine(step.subject.workload, trial.job.steps, name):
                self._disk.restore_loaded(trial.id, step.subject.engine.data.immutable)
                faults.point("loaded-restored")
            step_run_id = self._journal.begin_step(trial.id, name, step.position, command, run_dir)
        else:
            step_run_id = row.id
        faults.point("step-begun")
        handle = None if row is None else self._launcher.find(run_dir)
        if handle is None:
            handle = self._start(step, command, run_dir, begun_before=row is not None)
        faults.point("step-started")
        if row is None or row.state is StepState.STARTING:
            self._journal.step_running(step_run_id, handle)
        faults.point("step-running")
        return step_run_id, handle

    def _command(self, step: _Step, run_dir: str) -> Command:
        db_dir, wal_dir = self._disk.database(step.trial.id)
        placement = Placement(
            db_dir=db_dir, wal_dir=wal_dir, run_dir=run_dir, repetition=step.trial.repetition
        )
        job = step.trial.job
        return build_command(step.definition, step.subject, job, step.artifact, placement)

    def _start(self, step: _Step, command: Command, run_dir: str, *, begun_before: bool) -> Handle:
        name, trial = step.definition.name, step.trial
        db_dir, wal_dir = self._disk.database(trial.id)
        limits = step_limits(step.definition, step.subject, trial.job)
        data = {"trial": trial.id, "step": name, "expected_s": limits.expected_s}
        self._observer(Event("step", f"{name} started", data))
        request = LaunchRequest(
            run_dir=run_dir,
            run_id=f"{trial.id}/{step.position:02d}-{name}",
            command=command,
            cwd=db_dir,
            timeout_s=limits.timeout_s,
            grace_s=GRACE_S,
            du_dirs=tuple(dict.fromkeys((db_dir, wal_dir))),
            device_dir=db_dir,
            clear_env=True,
        )
        try:
            return self._launcher.start(request)
        except LaunchError:
            # The start that a killed controller asked for can come through a moment later.
            found = self._launcher.find(run_dir) if begun_before else None
            if found is None:
                raise
            return found

    def _watch(self, running: _Running) -> tuple[StepState, str]:
        """Waits for the end, brings the run folder home, stores the outcome, has it parsed."""
        name, handle = running.step.definition.name, running.handle
        try:
            ended = self._launcher.wait(handle, self._ticker(running))
            if ended.state == "lost":
                ended = self._launcher.stop(handle, GRACE_S)
        except KeyboardInterrupt:
            ended = self._launcher.stop(handle, GRACE_S)
            self._store_end(running, ended)
            raise InterruptedByUserError(f"interrupted during {name}") from None
        state, reason = self._store_end(running, ended)
        if state is StepState.INTERRUPTED:
            if running.adopted:
                raise _StoppedEarlierError
            raise InterruptedByUserError(f"{name} was stopped from outside")
        parsed = self._hooks.after_step(running.step_run_id)
        return parsed if state is StepState.OK else (state, reason)

    def _ticker(self, running: _Running) -> Callable[[RunState, float], None]:
        trial_id, name = running.step.trial.id, running.step.definition.name

        def tick(state: RunState, elapsed_s: float) -> None:
            where = {"trial": trial_id, "step": name, "run_dir": running.handle.run_dir}
            now = {"elapsed_s": elapsed_s, "stderr_bytes": state.stderr_bytes}
            self._observer(Event("tick", "", {**where, **now}))

        return tick

    def _store_end(self, running: _Running, ended: RunState) -> tuple[StepState, str]:
        faults.point("step-ended")
        step = running.step
        status = ended.status or {"state": "lost"}
        state, reason = classify(status)
        is_engine_tool = step.subject.tools[step.definition.tool].engine == step.subject.engine.name
        glob = step.subject.engine.data.effective_options if is_engine_tool else ""
        collected = self._disk.collect(running.handle.run_dir, step.trial.id, glob)
        faults.point("step-collected")
        options = None
        if collected.options_text is not None:
            options = self._hooks.compare_options(running.command, collected.options_text)
        end = StepEnd(reason, status, collected.raw_path, collected.sha256, options)
        self._journal.end_step(running.step_run_id, state, end)
        faults.point("step-stored")
        return state, reason


@dataclass(frozen=True, slots=True)
class _Step:
    """One step of one trial, with all that is needed to run it."""

    trial: PlannedTrial
    subject: Subject
    artifact: Artifact
    definition: definitions.Step
    position: int
    attempt: int


@dataclass(frozen=True, slots=True)
class _Running:
    """A step whose process was started, by this controller or by one before it."""

    step: _Step
    step_run_id: int
    command: Command
    handle: Handle
    adopted: bool


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""
