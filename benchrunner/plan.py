"""A sweep becomes a plan: every cell a job, every repetition a trial, in an order, with its cost.

Pure. In: the sweep, definitions, and the versions that its engines' sources have. Out: a Plan; the
same input gives the same ids.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchrunner.errors import NothingSelectedError
from benchrunner.identity import trial_id
from benchrunner.model import Job, Plan, PlannedTrial, SourceRef
from benchrunner.params import checked_scale
from benchrunner.plan_cells import ceiling_jobs, jobs
from benchrunner.plan_checks import (
    check_parameters,
    check_places,
    check_server,
    check_sweep,
    check_threads,
)
from benchrunner.plan_cost import job_disk_bytes, job_memory_bytes, job_seconds
from benchrunner.unfolding import unfolded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchrunner.definitions import Sweep, Workload
    from benchrunner.plan_cells import Definitions
    from benchrunner.plan_cost import History


@dataclass(frozen=True, slots=True)
class _Planned:
    """A job with its workload, unfolded."""

    job: Job
    workload: Workload


def make_plan(
    sweep: Sweep,
    definitions: Definitions,
    refs: Mapping[str, Sequence[SourceRef]],
    history: History | None = None,
) -> Plan:
    """The ordered trials of a sweep.

    Args:
        sweep: what is asked for.
        definitions: where workloads, tools and hosts are looked up.
        refs: engine -> its versions to run, resolved by ``sources``, in order.
        history: (workload, scale, step) -> seconds that the step took before.

    Raises:
        ConfigurationError: The sweep names what does not exist.
        NothingSelectedError: No cell is left.
    """
    workloads = [definitions.workload(name) for name in sweep.workloads]
    for host in sweep.hosts:
        definitions.host(host)
    ceilings = _ceilings(sweep, workloads, definitions)
    check_sweep(sweep, workloads, ceilings)
    skipped: list[tuple[str, str]] = []
    cells = _once(
        _Planned(job, unfolded(workload, job))
        for workload in workloads
        for job in jobs(sweep, workload, definitions, refs, skipped)
    )
    if not cells:
        raise NothingSelectedError(
            f"sweep {sweep.name} selects nothing: {_why(skipped)}",
            "benchrunner plan, with more versions",
        )
    for one in cells:
        check_threads(one.workload, one.job, definitions)
        check_parameters(one.workload, one.job)
    check_places(workloads)
    check_server(sweep, [one.job for one in cells], definitions)
    first = _once(
        _Planned(job, unfolded(ceiling, job))
        for ceiling, scale in ceilings
        for job in ceiling_jobs(sweep, ceiling, scale, definitions)
    )
    return _costed(sweep, _ordered(sweep, first, cells), definitions, history or {}, skipped)


def _once(planned: Iterable[_Planned]) -> list[_Planned]:
    """Every job once: version ranges may overlap."""
    return list({one.job.id: one for one in planned}.values())


# ---------------------------------------------------------------- ceilings


def _ceilings(
    sweep: Sweep, workloads: Sequence[Workload], definitions: Definitions
) -> list[tuple[Workload, str]]:
    """Ceiling workloads of a sweep and their scales, each once."""
    found: dict[tuple[str, str], tuple[Workload, str]] = {}
    for workload in workloads if sweep.ceilings else []:
        named = workload.ceiling.workload if workload.ceiling is not None else ""
        if not named or named in sweep.workloads:
            continue
        ceiling = definitions.workload(named)
        scale = checked_scale(workload, sweep.scale)
        own = scale if scale in ceiling.scale else ceiling.default_scale
        found[ceiling.name, own] = (ceiling, own)
    return list(found.values())


# ---------------------------------------------------------------- order and cost


def _ordered(
    sweep: Sweep, first: Sequence[_Planned], cells: Sequence[_Planned]
) -> list[tuple[_Planned, int]]:
    """Ceilings, then jobs with their repetition; turns go forth and back to spread drift evenly."""
    result = [(one, 1) for one in first]
    repetitions = range(1, sweep.repeat + 1)
    if sweep.order == "grouped":
        return result + [(one, repetition) for one in cells for repetition in repetitions]
    for repetition in repetitions:
        turn = cells if repetition % 2 else cells[::-1]
        result += [(one, repetition) for one in turn]
    return result


def _costed(
    sweep: Sweep,
    ordered: Sequence[tuple[_Planned, int]],
    definitions: Definitions,
    history: History,
    skipped: Sequence[tuple[str, str]],
) -> Plan:
    trials = tuple(
        PlannedTrial(trial_id(sweep.name, one.job.id, repetition), one.job, repetition, position)
        for position, (one, repetition) in enumerate(ordered, start=1)
    )
    seconds: dict[str, list[float]] = {}
    for one, _ in ordered:
        expected = job_seconds(one.workload, one.job, history)
        if expected is not None:
            seconds.setdefault(one.job.host, []).append(expected)
    disk = [job_disk_bytes(one.workload, one.job) for one, _ in ordered]
    memory = [job_memory_bytes(one.workload, one.job) for one, _ in ordered]
    return Plan(
        sweep=sweep.name,
        trials=trials,
        loads=sum(_loads(one, definitions) for one, _ in ordered),
        disk_bytes=max((value for value in disk if value is not None), default=None),
        seconds=max(map(math.fsum, seconds.values()), default=None),  # hosts work side by side
        skipped=tuple(skipped),
        memory_bytes=max((value for value in memory if value is not None), default=None),
    )


def _loads(planned: _Planned, definitions: Definitions) -> int:
    """Databases that one trial loads from empty; under ``pristine`` its steps share that load."""
    return sum(
        definitions.tool(step.tool).drives(planned.job.engine)
        for step in planned.workload.steps
        if step.state == "creates" and step.name in planned.job.steps
    )


def _why(skipped: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{what}: {why}" for what, why in skipped[:3]) or "every cell is excluded"
