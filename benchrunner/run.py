"""One trial at a time: brings its steps to their ends, then itself; journals every change.

In: a planned trial, its artifact, and a place to run. Out: run folders in the results folder and
state changes in the journal. It never reads what a tool printed; ``after_step`` does that. The same
code path starts a trial and goes on with one that a killed controller left.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from benchrunner import faults
from benchrunner.events import Event
from benchrunner.outcomes import (
    Outcome,
    blocked_by,
    loaded_after,
    trial_outcome,
)
from benchrunner.recovery import end_within_reach, must_restart
from benchrunner.run_parts import Begun, StepToRun
from benchrunner.run_steps import StepRunner, StoppedEarlierError, because
from benchrunner.run_tools import Aside, Tools
from benchrunner.services import Services, abandoned
from benchrunner.transports import ConnectionLostError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchrunner.model import Artifact, PlannedTrial, TrialState
    from benchrunner.run_parts import Side, Subject
    from benchrunner.store.rows import StepRow

_NO_SIDES: Mapping[str, Side] = MappingProxyType({})


class TrialRunner:
    """Runs trials at one place, one after another."""

    def __init__(self, tools: Tools) -> None:
        """Takes what trials need."""
        self._tools = tools
        self._aside = Aside(tools.disk)
        self._steps = StepRunner(self._tools, self._aside)

    def run(
        self,
        trial: PlannedTrial,
        subject: Subject,
        artifact: Artifact,
        *,
        new_attempt: int | None = None,
        sides: Mapping[str, Side] = _NO_SIDES,
    ) -> TrialState:
        """Starts a begun trial, or goes on where the journal says it stood; returns its end.

        Args:
            trial: Begun before.
            subject: What it runs.
            artifact: With which binaries.
            new_attempt: Number of an attempt of which nothing has begun, when that is known.
            sides: Other engines whose programs its steps run.

        Raises:
            InterruptedByUserError: Ctrl-C; the step is ended and journalled as interrupted.
        """
        begun = Begun(trial, subject, artifact, new_attempt or 0, sides)
        rows: dict[str, StepRow] = {}
        while True:
            if new_attempt is None:
                rows = {row.step: row for row in self._tools.journal.step_runs(trial.id)}
                why = must_restart(self._tools, begun, rows)
                if why:
                    self._tools.journal.restart_trial(trial.id, f"{why}; the trial starts again")
                    rows = {}
                begun = replace(begun, attempt=self._tools.journal.attempt(trial.id))
            new_attempt = None
            services = Services(self._tools, begun, rows)
            try:
                return self._finish(trial, self._all_steps(begun, services, rows))
            except StoppedEarlierError:
                continue
            except (ConnectionLostError, UnreachableError):
                raise  # what runs there is found again
            except BaseException:
                abandoned(services, self._tools.observer)
                raise

    def leave(self, trial_id: str, why: str) -> None:
        """Ends what of a trial runs on hosts that can be reached; it is to start again."""
        end_within_reach(self._tools, self._tools.journal.step_runs(trial_id), why)

    def _all_steps(
        self, begun: Begun, services: Services, rows: Mapping[str, StepRow]
    ) -> list[Outcome]:
        """Brings every step of an attempt to its end; ``rows`` are those that have begun."""
        trial, subject = begun.trial, begun.subject
        loaded = ""
        if trial.job.policy == "pristine":
            loaded = loaded_after(subject.workload, trial.job.steps)
        outcomes: list[Outcome] = []
        since = 0
        for position, name in enumerate(trial.job.steps, start=1):
            opens = not any(outcome.ran for outcome in outcomes)
            step = StepToRun(begun, subject.step(name), position, opens, services)
            since = len(outcomes) if step.begins_anew else since
            outcomes.append(self._steps.run(step, rows.get(name), outcomes[since:]))
            services.release(position)
            if name == loaded and not blocked_by(subject.workload, outcomes):
                self._tools.disk.keep_loaded(trial.id, subject.engine.data.immutable)
                faults.point("loaded-kept")
        return outcomes

    def _finish(self, trial: PlannedTrial, outcomes: Sequence[Outcome]) -> TrialState:
        state, reason = trial_outcome(outcomes)
        faults.point("steps-done")
        self._tools.hooks.before_end(trial.id)
        self._aside.synced()
        self._aside.removed(trial.id)
        if trial.job.server:
            self._tools.serving(trial.job).disk.remove(trial.id)
        self._tools.hooks.after_removal(trial.id)
        faults.point("database-removed")
        self._tools.journal.end_trial(trial.id, state, reason)
        faults.point("trial-ended")
        data = {"trial": trial.id, "state": state.value, "reason": reason}
        self._tools.observer(Event("trial-end", f"trial {state.value}{because(reason)}", data))
        return state
