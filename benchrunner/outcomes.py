"""How steps and trials ended, and what follows for the steps after them. Pure.

In: a supervisor's status, a workload's steps. Out: states with a reason in one sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchrunner.model import StepState, TrialState

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from benchrunner.definitions import Workload


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one step ended."""

    step: str
    state: StepState
    reason: str = ""
    ran: bool = True
    """Whether a process was started for it."""


def classify(status: Mapping[str, Any]) -> tuple[StepState, str]:
    """Outcome of a process from the supervisor's status.

    >>> classify({"state": "exited", "exit_code": 0})
    (<StepState.OK: 'ok'>, '')
    >>> classify({"state": "exited", "exit_code": 1})
    (<StepState.FAILED: 'failed'>, 'it exited with status 1')
    """
    match status.get("state"):
        case "timeout":
            wall_s = status.get("wall_s") or 0.0
            return StepState.TIMEOUT, f"it was ended at its time limit, after {wall_s:.1f} s"
        case "killed":
            return StepState.INTERRUPTED, "it was stopped on request"
        case "lost":
            why = status.get("error") or "its supervisor was killed or the host restarted"
            return StepState.FAILED, f"it was lost: {why}"
        case "failed":
            return StepState.FAILED, str(status.get("error") or "it could not be started")
    return _exit(status)


def _exit(status: Mapping[str, Any]) -> tuple[StepState, str]:
    if status.get("oom_killed"):
        return StepState.FAILED, "the kernel killed it because memory ran out"
    if status.get("signal"):
        name = status.get("signal_name") or status["signal"]
        return StepState.FAILED, f"it was killed by signal {name}"
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
    return TrialState.OK, ""


def blocked_by(workload: Workload, outcomes: Sequence[Outcome]) -> str:
    """Why no further step may run: an earlier one left the database in an unknown state."""
    changing = {step.name for step in workload.steps if step.state != "keeps"}
    for outcome in outcomes:
        bad = outcome.state in (StepState.FAILED, StepState.TIMEOUT)
        if bad and outcome.step in changing:
            return f"{outcome.step} did not finish, so the database is in an unknown state"
    return ""


def loaded_after(workload: Workload, running: Collection[str]) -> str:
    """Name of the step after which the database counts as loaded; empty when nothing loads it.

    Args:
        workload: whose steps.
        running: names of those that the job runs.
    """
    creating = {step.name for step in workload.steps if step.state == "creates"}
    loading = [s.name for s in workload.steps if s.name in creating or s.part_of in creating]
    return next((name for name in reversed(loading) if name in running), "")


def starts_pristine(workload: Workload, running: Collection[str], step: str) -> bool:
    """Whether a step starts from the loaded database (policy ``pristine``), not from what is there.

    A step that completes another's test goes on with what that one left.
    """
    order = [one.name for one in workload.steps]
    definition = workload.steps[order.index(step)]
    loaded = loaded_after(workload, running)
    if workload.policy != "pristine" or not loaded:
        return False
    if definition.part_of is not None or not definition.measure:
        return False
    return order.index(step) > order.index(loaded)
