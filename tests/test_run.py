"""How steps and trials end, and what follows for the steps after them."""

from __future__ import annotations

from typing import Any

import pytest

from benchrunner.definitions import Step, Workload
from benchrunner.model import StepState, TrialState
from benchrunner.outcomes import (
    Outcome,
    blocked_by,
    classify,
    loaded_after,
    starts_pristine,
    trial_outcome,
)

OK, FAILED, TIMEOUT = StepState.OK, StepState.FAILED, StepState.TIMEOUT


@pytest.mark.parametrize(
    ("status", "state", "reason"),
    [
        ({"state": "exited", "exit_code": 0}, OK, ""),
        ({"state": "exited", "exit_code": 3}, FAILED, "it exited with status 3"),
        ({"state": "exited", "exit_code": None, "signal": 11, "signal_name": "SIGSEGV"}, FAILED,
         "it was killed by signal SIGSEGV"),
        ({"state": "exited", "exit_code": None, "signal": 40}, FAILED,
         "it was killed by signal 40"),
        ({"state": "exited", "signal": 9, "signal_name": "SIGKILL", "oom_killed": True}, FAILED,
         "the kernel killed it because memory ran out"),
        ({"state": "timeout", "wall_s": 61.24}, TIMEOUT,
         "it was ended at its time limit, after 61.2 s"),
        ({"state": "killed"}, StepState.INTERRUPTED, "it was stopped on request"),
        ({"state": "failed", "error": "db_bench: not found"}, FAILED, "db_bench: not found"),
        ({"state": "failed"}, FAILED, "it could not be started"),
        ({"state": "lost", "error": "the host was rebooted"}, FAILED,
         "it was lost: the host was rebooted"),
        ({"state": "lost"}, FAILED,
         "it was lost: its supervisor was killed or the host restarted"),
    ],
)  # fmt: skip
def test_classify(status: dict[str, Any], state: StepState, reason: str) -> None:
    assert classify(status) == (state, reason)


def test_a_wrong_result_is_judged_where_the_output_is_read() -> None:
    status = {"state": "exited", "exit_code": 3}
    assert classify(status, [3]) == (OK, "")
    assert classify({**status, "exit_code": 1}, [3])[0] is FAILED
    assert classify({**status, "exit_code": 0}, [3])[0] is OK


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([OK, OK], TrialState.OK),
        ([OK, StepState.INVALID, TIMEOUT], TrialState.TIMEOUT),
        ([TIMEOUT, FAILED], TrialState.FAILED),
        ([OK, StepState.INVALID], TrialState.INVALID),
        ([OK, StepState.SKIPPED], TrialState.OK),
    ],
)
def test_the_worst_step_names_the_trial(states: list[StepState], expected: TrialState) -> None:
    outcomes = [Outcome(str(number), state, "why") for number, state in enumerate(states)]
    state, reason = trial_outcome(outcomes)
    assert state is expected
    assert bool(reason) == (state is not TrialState.OK)


def workload(policy: str = "carry") -> Workload:
    steps = [
        Step(name="load", tool="t", state="creates"),
        Step(name="compact", tool="t", state="changes", part_of="load"),
        Step(name="read", tool="t"),
        Step(name="warm", tool="t", measure=False),
        Step(name="overwrite", tool="t", state="changes"),
        Step(name="drain", tool="t", state="changes", part_of="overwrite"),
    ]
    return Workload.model_validate(
        {"name": "w", "title": "W", "engine": "e", "steps": steps, "policy": policy}
    )


ALL = ("load", "compact", "read", "warm", "overwrite", "drain")


def test_a_failed_change_blocks_and_a_failed_read_does_not() -> None:
    assert blocked_by(workload(), [Outcome("load", OK), Outcome("read", FAILED, "x")]) == ""
    assert blocked_by(workload(), [Outcome("load", StepState.INVALID, "x")]) == ""
    reason = "overwrite did not finish, so the database is in an unknown state"
    assert blocked_by(workload(), [Outcome("overwrite", TIMEOUT, "x")]) == reason


def test_what_pristine_means_for_each_step() -> None:
    assert loaded_after(workload(), ALL) == "compact"
    assert loaded_after(workload(), ("load", "read")) == "load"
    assert loaded_after(workload(), ("read",)) == ""
    pristine = [name for name in ALL if starts_pristine(workload("pristine"), ALL, name)]
    assert pristine == ["read", "overwrite"]
    assert not any(starts_pristine(workload(), ALL, name) for name in ALL)
    assert not starts_pristine(workload("pristine"), ("read",), "read")
