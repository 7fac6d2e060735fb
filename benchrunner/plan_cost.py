"""What a job is expected to cost: time, disk, memory, threads. Pure: expressions over its params.

Workloads are unfolded for the job.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from benchrunner.errors import ConfigurationError
from benchrunner.expressions import evaluate, expand
from benchrunner.unfolding import with_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchrunner.definitions import Scalar, Step, Workload
    from benchrunner.model import Job

    History = Mapping[tuple[str, str, str], float]
    """(workload, scale, step) -> seconds that the step took before."""


def job_seconds(workload: Workload, job: Job, history: History) -> float | None:
    """Expected time of a job's steps: as measured before, else as the workload says."""
    known: list[float] = []
    for step in workload.steps:
        if step.name not in job.steps:
            continue
        measured = history.get((job.workload, job.scale, step.name))
        if measured is not None:
            known.append(measured)
        elif step.seconds is not None:
            where = f"step {step.name} of {workload.name}, seconds"
            params = with_value(step, job.params)
            known.append(_number(expand(step.seconds, params, where=where), where))
    return math.fsum(known) if known else None


def job_disk_bytes(workload: Workload, job: Job) -> int | None:
    """Space that a trial takes at most; under ``pristine`` the loaded state is kept beside."""
    if not workload.estimate.disk:
        return None
    where = f"estimate.disk of {workload.name}"
    needed = _number(evaluate(workload.estimate.disk, job.params, where=where), where)
    return math.ceil(needed * (2 if job.policy == "pristine" else 1))


def job_memory_bytes(workload: Workload, job: Job) -> int | None:
    """Memory that a trial takes at most, as far as its workload says."""
    if not workload.estimate.memory:
        return None
    where = f"estimate.memory of {workload.name}"
    return math.ceil(_number(evaluate(workload.estimate.memory, job.params, where=where), where))


def step_threads(step: Step, workload: Workload, params: Mapping[str, Scalar]) -> float:
    """Threads that a step measures; 0 where it does not say."""
    where = f"step {step.name} of {workload.name}, threads"
    return _number(expand(step.threads or 0, with_value(step, params), where=where), where)


def _number(value: Scalar, where: str) -> float:
    if isinstance(value, str | bool):
        raise ConfigurationError(
            f"{where}: {value!r} is not a number", "write arithmetic over params"
        )
    return value
