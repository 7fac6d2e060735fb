"""One step at a time: started under the supervisor, journalled, watched, its output brought home.

In: a step of an attempt, and what the journal says of it. Out: its outcome. The same code path
starts a step and goes on with one that a killed controller left: it asks the journal and the run
folder what has already happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchrunner import faults
from benchrunner.command import Placement, build_command, step_limits
from benchrunner.errors import (
    EXIT_INTERRUPTED,
    BenchrunnerError,
    ConfigurationError,
    LaunchError,
)
from benchrunner.events import Event
from benchrunner.launchers import LaunchRequest, RunState
from benchrunner.model import Command, Handle, StepState
from benchrunner.outcomes import Outcome, absent_program, blocked_by, classify, starts_pristine
from benchrunner.processes import uninterrupted
from benchrunner.run_parts import Running, StepEnd, StepToRun, Stored
from benchrunner.run_tools import GRACE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchrunner.run_tools import Aside, Tools
    from benchrunner.services import Unready
    from benchrunner.store.rows import StepRow
    from benchrunner.workdir import FreshFolders

NOTED_AFTER_S = 0.05
"""A process that ends sooner is not journalled as running: its run folder is known anyway."""


class InterruptedByUserError(BenchrunnerError):
    """Ctrl-C ended the running step; what finished before it is stored."""

    exit_code = EXIT_INTERRUPTED


class StoppedEarlierError(Exception):
    """A step that a former controller started was being stopped when this one came."""


class StepRunner:
    """Runs steps at one place, one after another."""

    def __init__(self, tools: Tools, aside: Aside) -> None:
        """Takes what steps need, and who does what need not be waited for."""
        self._tools = tools
        self._aside = aside

    def run(self, step: StepToRun, row: StepRow | None, before: Sequence[Outcome]) -> Outcome:
        """Brings one step to its end; ``before`` is what happened to the database it gets."""
        name = step.definition.name
        if row is not None and row.state.final:
            return self._ended(row)
        group = step.definition.group
        if row is None and (blocked := blocked_by(step.subject.workload, before, group)):
            return self._without_process(step, StepState.SKIPPED, blocked)
        if row is None and (lacking := step.begun.lacks(step.definition)):
            return self._without_process(step, StepState.SKIPPED, lacking)
        if row is None and (unready := self._unready(step)):
            return self._without_process(step, unready.state, unready.reason)
        run_dir = row.run_dir if row is not None else self._tools.disk.run_dir(
            step.trial.id, step.attempt, step.position, name
        )  # fmt: skip
        try:
            command = self._command(step, run_dir)
        except ConfigurationError as error:
            # The plan could not know: this very binary does not take what the workload asks.
            return self._without_process(step, StepState.FAILED, error.message)
        # A process that was started while somebody pressed Ctrl-C is ended like any other.
        with uninterrupted() as signals:
            step_run_id, handle = self._begin(step, row, command, run_dir)
        known = row.state if row is not None else StepState.STARTING
        running = Running(
            step, step_run_id, command, handle, row is not None, known, stopped=bool(signals)
        )
        state, reason = self._watch(running)
        data = {"trial": step.trial.id, "step": name, "state": state.value, "reason": reason,
                "step_run": step_run_id}  # fmt: skip
        self._tools.observer(Event("step-end", f"{name}: {state.value}{because(reason)}", data))
        return Outcome(name, state, reason)

    def _unready(self, step: StepToRun) -> Unready | None:
        """Why the servers that a step needs are not there; they are started here."""
        try:
            return step.services.prepare(step.definition, opens=step.opens)
        except KeyboardInterrupt:
            self._tools.stop.set()
            name = step.definition.name
            raise InterruptedByUserError(f"interrupted before {name}") from None

    def _ended(self, row: StepRow) -> Outcome:
        """A step that ended under a former controller, which may have died before parsing it."""
        state, reason = row.state, row.reason
        if row.parsed_at is None and row.raw_path is not None:
            state, reason = self._tools.hooks.after_step(row)
        return Outcome(row.step, state, reason, ran=bool(row.run_dir))

    def _without_process(self, step: StepToRun, state: StepState, reason: str) -> Outcome:
        """Journals a step that is not run at all."""
        trial, name = step.trial, step.definition.name
        step_run_id = self._tools.journal.begin_step(trial.id, name, step.position, Command(()), "")
        self._tools.journal.end_step(step_run_id, state, StepEnd(reason))
        data = {"trial": trial.id, "step": name, "state": state.value, "reason": reason,
                "step_run": step_run_id}  # fmt: skip
        self._tools.observer(Event("step-end", f"{name}: {state.value}: {reason}", data))
        return Outcome(name, state, reason, ran=False)

    def _begin(
        self, step: StepToRun, row: StepRow | None, command: Command, run_dir: str
    ) -> tuple[int, Handle]:
        """Journals the step before it starts, so that it is found and never started twice."""
        trial, name = step.trial, step.definition.name
        if row is None:
            if starts_pristine(step.subject.workload, trial.job.steps, name):
                self._tools.disk.restore_loaded(trial.id, step.subject.engine.data.immutable)
                faults.point("loaded-restored")
            elif step.begins_anew and not step.opens:
                self._tools.disk.empty_database(trial.id)
                faults.point("database-emptied")
            step_run_id = self._tools.journal.begin_step(
                trial.id, name, step.position, command, run_dir
            )
        else:
            step_run_id = row.id
        faults.point("step-begun")
        handle = None if row is None else self._tools.launcher.find(run_dir)
        if handle is None:
            handle = self._start(step, command, run_dir, begun_before=row is not None)
        faults.point("step-started")
        return step_run_id, handle

    def _command(self, step: StepToRun, run_dir: str) -> Command:
        db_dir, wal_dir = self._tools.disk.database(step.trial.id)
        placement = Placement(
            db_dir=db_dir, wal_dir=wal_dir, run_dir=run_dir, repetition=step.trial.repetition,
            server_address=self._tools.serving(step.trial.job).address,
        )  # fmt: skip
        side = step.begun.side(step.definition)
        return build_command(step.definition, side.subject, side.job, side.artifact, placement)

    def _start(
        self, step: StepToRun, command: Command, run_dir: str, *, begun_before: bool
    ) -> Handle:
        name, trial = step.definition.name, step.trial
        db_dir, wal_dir = self._tools.disk.database(trial.id)
        limits = step_limits(step.definition, step.subject, trial.job)
        data = {"trial": trial.id, "step": name, "expected_s": limits.expected_s}
        self._tools.observer(Event("step", f"{name} started", data))
        self._aside.synced()
        if not begun_before:
            self._tools.hooks.before_start(
                step.subject, step.definition, limits.expected_s, step.services.beside
            )
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
            pack=self._tools.disk.pack_arguments(trial.id, step.options_glob),
            fresh=self._fresh(step),
        )
        try:
            return self._tools.launcher.start(request)
        except LaunchError:
            # The start that a killed controller asked for can come through a moment later.
            found = self._tools.launcher.find(run_dir) if begun_before else None
            if found is None:
                raise
            return found

    def _fresh(self, step: StepToRun) -> FreshFolders | None:
        """The trial's folders to be made by a step whose process is the first of its attempt."""
        if not step.opens or step.services.have_opened:
            return None
        return self._tools.disk.fresh(step.trial.id, step.attempt)

    def _watch(self, running: Running) -> tuple[StepState, str]:
        """Waits for the end, brings the run folder home, stores the outcome, has it parsed."""
        name, handle = running.step.definition.name, running.handle
        try:
            ended = self._waited(running)
            if ended.state == "lost":
                ended = self._tools.launcher.stop(handle, GRACE_S)
        except KeyboardInterrupt:
            self._tools.stop.set()  # nobody wants to wait for a host now, should it be away
            ended = self._tools.launcher.stop(handle, GRACE_S)
            self._store_end(running, ended)
            raise InterruptedByUserError(f"interrupted during {name}") from None
        stored = self._store_end(running, ended)
        if stored.state is StepState.INTERRUPTED:
            if running.adopted:
                raise StoppedEarlierError
            raise InterruptedByUserError(f"{name} was stopped from outside")
        if running.step.is_last:
            running.step.services.release(running.step.position)
            # Nothing reads the database any more: it goes while the output is read.
            self._aside.remove(running.step.trial.id)
        return self._tools.hooks.after_step(stored)

    def _waited(self, running: Running) -> RunState:
        if running.stopped:
            raise KeyboardInterrupt
        return self._tools.launcher.wait(running.handle, self._ticker(running))

    def _ticker(self, running: Running) -> Callable[[RunState, float], None]:
        trial_id, name = running.step.trial.id, running.step.definition.name
        noted = running.known is StepState.RUNNING

        def tick(state: RunState, elapsed_s: float) -> None:
            nonlocal noted
            if self._tools.stop.is_set():
                raise KeyboardInterrupt
            if running.step.services.fault_by_now(running.step.definition):
                self._tools.launcher.stop(running.handle, GRACE_S)
            if not noted and elapsed_s >= NOTED_AFTER_S:
                self._tools.journal.step_running(running.step_run_id, running.handle)
                noted = True
                faults.point("step-running")
            where = {"trial": trial_id, "step": name, "run_dir": running.handle.run_dir}
            now = {"elapsed_s": elapsed_s, "stderr_bytes": state.stderr_bytes}
            self._tools.observer(Event("tick", "", {**where, **now}))

        return tick

    def _store_end(self, running: Running, ended: RunState) -> Stored:
        faults.point("step-ended")
        step = running.step
        seen = self._tools.hooks.after_end()
        status = ended.status or {"state": "lost"}
        tool = step.subject.tools[step.definition.tool]
        state, reason = classify(status, tool.invalid_exits)
        if missing := absent_program(status, tool):
            state, reason = StepState.SKIPPED, missing
        elif not self._tools.stop.is_set() and (fault := step.services.fault(step.definition)):
            state, reason = StepState.FAILED, fault
        collected = self._tools.disk.collect(
            running.handle.run_dir, step.trial.id, step.options_glob, seen, ended.packed
        )
        faults.point("step-collected")
        options = None
        if collected.options_text is not None:
            options = self._tools.hooks.compare_options(running.command, collected.options_text)
        end = StepEnd(reason, status, collected.raw_path, collected.sha256, options)
        self._tools.journal.end_step(running.step_run_id, state, end)
        # Not before: the journal would wait behind it for the disk.
        self._aside.sync(collected.raw_path)
        faults.point("step-stored")
        return Stored(
            running.step_run_id, step.trial.id, step.definition.name, state, reason, status,
            collected.raw_path, running.command.flags,
        )  # fmt: skip


def because(reason: str) -> str:
    """A reason behind what it explains; empty without one."""
    return f": {reason}" if reason else ""
