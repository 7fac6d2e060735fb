"""How steps and trials ended, and what follows for the steps after them. Pure.

In: a supervisor's status, a workload's steps. Out: states with a reason in one sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchrunner.model import StepState, TrialState

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from benchrunner.definitions import Tool, Workload


NOT_FOUND = 127
"""Exit status of a shell that finds no program of that name."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one step ended."""

    step: str
    state: StepState
    reason: str = ""
    ran: bool = True
    """Whether a process was started for it."""


def classify(
    status: Mapping[str, Any], invalid_exits: Collection[int] = ()
) -> tuple[StepState, str]:
    """Outcome of a process from the supervisor's status.

    Args:
        status: as the supervisor wrote it.
        invalid_exits: exit statuses by which the program says that a result is wrong. It has run to
            its end then; that the step is invalid is judged where its output is read.

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
    if not status.get("signal") and status.get("exit_code") in invalid_exits:
        return StepState.OK, ""
    return _exit(status)


def absent_program(status: Mapping[str, Any], tool: Tool) -> str:
    """What to install where a program of the system could not be started because it is not there.

    An engine's own program that is gone is a failure: its build had it.
    """
    program = tool.binary or tool.name
    error = str(status.get("error") or "")
    by_shell = tool.argv[:1] == ["sh"] and status.get("exit_code") == NOT_FOUND
    known = f"cannot execute {program}: No such file or directory"
    if not tool.is_free or not (by_shell or error == known):
        return ""
    how = f": apt-get install -y {tool.debian}" if tool.debian else ""
    return f"{program} is not installed{how}"


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
    if outcomes and all(outcome.state is StepState.SKIPPED for outcome in outcomes):
        return TrialState.SKIPPED, f"{outcomes[0].step}: {outcomes[0].reason}"
    return TrialState.OK, ""


def blocked_by(workload: Workload, outcomes: Sequence[Outcome], group: str = "") -> str:
    """Why no further step of a group may run: its database is in an unknown state, or not there."""
    states = {step.name: step.state for step in workload.steps if step.group == group}
    for outcome in outcomes:
        state = states.get(outcome.step, "keeps")
        if outcome.state in (StepState.FAILED, StepState.TIMEOUT) and state != "keeps":
            return f"{outcome.step} did not finish, so the database is in an unknown state"
        if outcome.state is StepState.SKIPPED and state == "creates":
            return f"{outcome.step} was skipped: {outcome.reason}"
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
