"""One trial at a time: starts each step under the supervisor, journals every change, keeps the raw.

In: a planned trial, its artifact, and a place to run. Out: run folders in the results folder and
state changes in the journal. It never reads what a tool printed; ``after_step`` does that. The same
code path starts a trial and goes on with one that a killed controller left: for each step it asks
the journal and the run folder what has already happened.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from benchrunner import faults
from benchrunner.command import Placement, build_command, step_limits
from benchrunner.errors import BenchrunnerError
from benchrunner.events import Event, Observer, ignore
from benchrunner.launchers import LaunchRequest, RunState
from benchrunner.model import Command, Handle, StepState, TrialState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from benchrunner import definitions
    from benchrunner.launchers import Launcher
    from benchrunner.model import Artifact, PlannedTrial

GRACE_S = 10.0
"""Seconds between TERM and KILL: db_bench needs a moment to close a database."""


class StepRow(Protocol):
    """What the journal remembers of a step run."""

    @property
    def id(self) -> int: ...
    @property
    def step(self) -> str: ...
    @property
    def state(self) -> StepState: ...
    @property
    def reason(self) -> str: ...
    @property
    def run_dir(self) -> str: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def start_time(self) -> int | None: ...
    @property
    def attempt(self) -> int: ...


class Journal(Protocol):
    """The part of the store that running needs; every call is durable when it returns."""

    def begin_trial(
        self, trial_id: str, *, artifact_id: str | None, facts_id: str | None, fence: int | None
    ) -> None: ...
    def end_trial(self, trial_id: str, state: TrialState, reason: str = "") -> None: ...
    def restart_trial(self, trial_id: str, reason: str) -> None: ...
    def attempt(self, trial_id: str) -> int: ...
    def trial_state(self, trial_id: str) -> TrialState: ...
    def begin_step(
        self, trial_id: str, step: str, position: int, command: Command, run_dir: str
    ) -> int: ...
    def step_running(self, step_run_id: int, handle: Handle) -> None: ...
    def end_step(self, step_run_id: int, state: StepState, end: StepEnd) -> None: ...
    def step_runs(self, trial_id: str) -> Sequence[StepRow]: ...


@dataclass(frozen=True, slots=True)
class StepEnd:
    """What is stored when a step's process has ended."""

    reason: str = ""
    status: Mapping[str, Any] | None = None
    raw_path: str | None = None
    raw_sha256: str | None = None
    options: Mapping[str, Any] | None = None


class Disk(Protocol):
    """Databases and raw folders of one host; see ``places``."""

    def fresh_database(self, trial_id: str) -> tuple[str, str]: ...
    def database(self, trial_id: str) -> tuple[str, str]: ...
    def run_dir(self, trial_id: str, attempt: int, position: int, step: str) -> str: ...
    def keep_loaded(self, trial_id: str, immutable: Sequence[str]) -> None: ...
    def restore_loaded(self, trial_id: str, immutable: Sequence[str]) -> None: ...
    def collect(self, run_dir: str, trial_id: str, options_glob: str) -> Collected: ...
    def remove(self, trial_id: str, run_dirs: Sequence[str]) -> None: ...


@dataclass(frozen=True, slots=True)
class Collected:
    """A run folder brought home: where it is, its hash, and the options that really applied."""

    raw_path: str
    sha256: str
    options_text: str | None


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
class Outcome:
    """How one step ended."""

    step: str
    state: StepState
    reason: str = ""


class InterruptedByUserError(BenchrunnerError):
    """Ctrl-C ended the running step; what finished before it is stored."""

    exit_code = 130


AfterStep = "Callable[[int], tuple[StepState, str]]"


def classify(status: Mapping[str, Any]) -> tuple[StepState, str]:
    """Outcome of a process from the supervisor's status.

    >>> classify({"state": "exited", "exit_code": 0})[0].value
    'ok'
    >>> classify({"state": "exited", "exit_code": 1})
    (<StepState.FAILED: 'failed'>, 'it exited with status 1')
    """
    state, wall = status.get("state"), status.get("wall_s")
    if state == "timeout":
        return StepState.TIMEOUT, f"it was ended at its time limit after {wall:.0f} s"
    if state == "killed":
        return StepState.INTERRUPTED, "it was stopped on request"
    if state == "lost":
        why = status.get("error") or "its supervisor was killed or the host restarted"
        return StepState.FAILED, f"it was lost: {why}"
    if status.get("oom_killed"):
        return StepState.FAILED, "the kernel killed it because memory ran out"
    if status.get("signal"):
        name = status.get("signal_name") or status["signal"]
        return StepState.FAILED, f"it was killed by signal {name}"
    if state == "failed":
        return StepState.FAILED, str(status.get("error") or "it could not be started")
    if status.get("exit_code") != 0:
        return StepState.FAILED, f"it exited with status {status.get('exit_code')}"
    return StepState.OK, ""


def trial_outcome(outcomes: Sequence[Outcome]) -> tuple[TrialState, str]:
    """State of a trial from its steps: the first thing that went wrong names it.

    >>> trial_outcome([Outcome("load", StepState.OK), Outcome("read", StepState.TIMEOUT, "slow")])
    (<TrialState.TIMEOUT: 'timeout'>, 'read: slow')
    """
    for wanted, state in (
        (StepState.FAILED, TrialState.FAILED),
        (StepState.TIMEOUT, TrialState.TIMEOUT),
        (StepState.INVALID, TrialState.INVALID),
    ):
        for outcome in outcomes:
            if outcome.state is wanted:
                return state, f"{outcome.step}: {outcome.reason}"
    if outcomes and all(outcome.state is StepState.SKIPPED for outcome in outcomes):
        return TrialState.SKIPPED, outcomes[0].reason
    return TrialState.OK, ""


def blocked_by(subject: Subject, outcomes: Sequence[Outcome]) -> str:
    """Why no further step may run: an earlier one left the database in an unknown state."""
    for outcome in outcomes:
        bad = outcome.state in (StepState.FAILED, StepState.TIMEOUT)
        if bad and subject.step(outcome.step).state != "keeps":
            return f"{outcome.step} did not finish, so the database is in an unknown state"
    return ""


def loaded_after(workload: definitions.Workload) -> str:
    """Name of the step after which the database counts as loaded (policy ``pristine``)."""
    creating = {step.name for step in workload.steps if step.state == "creates"}
    loading = [s.name for s in workload.steps if s.name in creating or s.part_of in creating]
    return loading[-1] if loading else ""


class TrialRunner:
    """Runs trials at one place, one after another."""

    def __init__(
        self,
        journal: Journal,
        disk: Disk,
        launcher: Launcher,
        *,
        after_step: Callable[[int], tuple[StepState, str]],
        compare_options: Callable[[Command, str], Mapping[str, Any]],
        observer: Observer = ignore,
    ) -> None:
        self._journal = journal
        self._disk = disk
        self._launcher = launcher
        self._after_step = after_step
        self._compare_options = compare_options
        self._observer = observer

    def run(self, trial: PlannedTrial, subject: Subject, artifact: Artifact) -> TrialState:
        """Starts a begun trial, or goes on where the journal says it stood; returns its final state.

        Raises:
            InterruptedByUserError: Ctrl-C; the step is ended and journalled as interrupted.
        """
        rows = {row.step: row for row in self._journal.step_runs(trial.id)}
        if any(row.state is StepState.INTERRUPTED for row in rows.values()):
            self._journal.restart_trial(trial.id, "a step was interrupted; the trial starts again")
            rows = {}
        if not rows:
            self._disk.fresh_database(trial.id)
        faults.point("database-fresh")
        outcomes: list[Outcome] = []
        for position, name in enumerate(trial.job.steps, start=1):
            step = _Step(trial, subject, artifact, subject.step(name), position)
            outcome = self._step(step, rows.get(name), blocked_by(subject, outcomes))
            outcomes.append(outcome)
            if trial.job.policy == "pristine" and name == loaded_after(subject.workload):
                self._disk.keep_loaded(trial.id, subject.engine.data.immutable)
        return self._finish(trial, outcomes)

    def _finish(self, trial: PlannedTrial, outcomes: Sequence[Outcome]) -> TrialState:
        state, reason = trial_outcome(outcomes)
        faults.point("steps-done")
        self._disk.remove(trial.id, [row.run_dir for row in self._journal.step_runs(trial.id)])
        faults.point("database-removed")
        self._journal.end_trial(trial.id, state, reason)
        faults.point("trial-ended")
        data = {"trial": trial.id, "state": state.value, "reason": reason}
        self._observer(Event("trial-end", f"trial {state.value}{_because(reason)}", data))
        return state

    def _step(self, step: _Step, row: StepRow | None, blocked: str) -> Outcome:
        """Brings one step to its end, whatever of it has happened already."""
        name = step.definition.name
        if row is not None and row.state.final:
            return Outcome(name, row.state, row.reason)
        if row is None and blocked:
            return self._skip(step, blocked)
        step_run_id, run_dir, command, handle = self._begin(step, row)
        state, reason = self._watch(step, step_run_id, run_dir, command, handle)
        data = {"trial": step.trial.id, "step": name, "state": state.value, "reason": reason,
                "step_run": step_run_id}  # fmt: skip
        self._observer(Event("step-end", f"{name}: {state.value}{_because(reason)}", data))
        return Outcome(name, state, reason)

    def _skip(self, step: _Step, reason: str) -> Outcome:
        trial, name = step.trial, step.definition.name
        step_run_id = self._journal.begin_step(trial.id, name, step.position, Command(()), "")
        self._journal.end_step(step_run_id, StepState.SKIPPED, StepEnd(reason))
        return Outcome(name, StepState.SKIPPED, reason)

    def _begin(self, step: _Step, row: StepRow | None) -> tuple[int, str, Command, Handle]:
        """Journals the step before it starts, so that it can be found and is never started twice."""
        trial, definition = step.trial, step.definition
        if row is None and self._needs_pristine(step):
            self._disk.restore_loaded(trial.id, step.subject.engine.data.immutable)
        attempt = self._journal.attempt(trial.id)
        run_dir = row.run_dir if row else self._disk.run_dir(
            trial.id, attempt, step.position, definition.name
        )  # fmt: skip
        command = self._command(step, run_dir)
        if row is None:
            step_run_id = self._journal.begin_step(
                trial.id, definition.name, step.position, command, run_dir
            )
        else:
            step_run_id = row.id
        faults.point("step-begun")
        handle = self._adopt_or_start(step, command, run_dir, row)
        faults.point("step-started")
        if row is None or row.state is StepState.STARTING:
            self._journal.step_running(step_run_id, handle)
        faults.point("step-running")
        return step_run_id, run_dir, command, handle

    def _needs_pristine(self, step: _Step) -> bool:
        workload, definition = step.subject.workload, step.definition
        if step.trial.job.policy != "pristine" or definition.part_of or not definition.measure:
            return False
        order = [s.name for s in workload.steps]
        return order.index(definition.name) > order.index(loaded_after(workload))

    def _command(self, step: _Step, run_dir: str) -> Command:
        db_dir, wal_dir = self._disk.database(step.trial.id)
        placement = Placement(
            db_dir=db_dir,
            wal_dir=wal_dir,
            run_dir=run_dir,
            step_index=step.position,
            repetition=step.trial.repetition,
        )
        return build_command(step.definition, step.subject, step.trial.job, step.artifact, placement)

    def _adopt_or_start(
        self, step: _Step, command: Command, run_dir: str, row: StepRow | None
    ) -> Handle:
        if row is not None:
            found = self._launcher.find(run_dir)
            if found is not None:
                return found
        db_dir, wal_dir = self._disk.database(step.trial.id)
        limits = step_limits(step.definition, step.subject, step.trial.job)
        data = {"trial": step.trial.id, "step": step.definition.name, "expected_s": limits.expected_s}
        self._observer(Event("step", f"{step.definition.name} started", data))
        request = LaunchRequest(
            run_dir=run_dir,
            run_id=f"{step.trial.id}/{step.position:02d}-{step.definition.name}",
            command=command,
            cwd=db_dir,
            timeout_s=limits.timeout_s,
            grace_s=GRACE_S,
            interval_s=1.0,
            du_dirs=tuple(dict.fromkeys((db_dir, wal_dir))),
            device_dir=db_dir,
            clear_env=True,
        )
        return self._launcher.start(request)

    def _watch(
        self, step: _Step, step_run_id: int, run_dir: str, command: Command, handle: Handle
    ) -> tuple[StepState, str]:
        """Waits for the end, brings the run folder home, stores the outcome, has it parsed."""

        def tick(state: RunState, elapsed_s: float) -> None:
            data = {"trial": step.trial.id, "step": step.definition.name, "elapsed_s": elapsed_s,
                    "run_dir": run_dir, "stderr_bytes": state.stderr_bytes}  # fmt: skip
            self._observer(Event("tick", "", data))

        try:
            ended = self._launcher.wait(handle, tick)
            if ended.state == "lost":
                ended = self._launcher.stop(handle, GRACE_S)
        except KeyboardInterrupt:
            ended = self._launcher.stop(handle, GRACE_S)
            self._store_end(step, step_run_id, run_dir, command, ended)
            raise InterruptedByUserError(
                f"interrupted during {step.definition.name}", "benchrunner resume"
            ) from None
        state, reason = self._store_end(step, step_run_id, run_dir, command, ended)
        if state is StepState.INTERRUPTED:
            raise InterruptedByUserError(
                f"{step.definition.name} was stopped from outside", "benchrunner resume"
            )
        if state is StepState.OK:
            return self._after_step(step_run_id)
        self._after_step(step_run_id)
        return state, reason

    def _store_end(
        self, step: _Step, step_run_id: int, run_dir: str, command: Command, ended: RunState
    ) -> tuple[StepState, str]:
        faults.point("step-ended")
        status = ended.status or {"state": "lost"}
        state, reason = classify(status)
        is_engine_tool = step.subject.tools[step.definition.tool].engine == step.subject.engine.name
        glob = step.subject.engine.data.effective_options if is_engine_tool else ""
        collected = self._disk.collect(run_dir, step.trial.id, glob)
        faults.point("step-collected")
        options = None
        if collected.options_text is not None:
            options = self._compare_options(command, collected.options_text)
        end = StepEnd(reason, status, collected.raw_path, collected.sha256, options)
        self._journal.end_step(step_run_id, state, end)
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


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""
