"""A sweep becomes a plan: every cell a job, every repetition a trial, in an order, with its cost.

Pure. In: the sweep, definitions, and the versions that its engines' sources have. Out: a Plan; the
same input gives the same ids.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from benchrunner.compatibility import satisfies
from benchrunner.errors import ConfigurationError, NothingSelectedError
from benchrunner.expressions import evaluate, expand, to_text
from benchrunner.identity import job_id, trial_id
from benchrunner.model import Job, Plan, PlannedTrial, SourceRef
from benchrunner.params import check_parameter, checked_scale, effective, typed
from benchrunner.suggest import did_you_mean, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from benchrunner.definitions import Host, Scalar, Sweep, Tool, Workload

    History = Mapping[tuple[str, str, str], float]

CELL_KEYS = ("workload", "engine", "version", "variant", "host", "scale")


class Definitions(Protocol):
    """What a plan looks up; a Catalog is one."""

    def workload(self, name: str) -> Workload:
        """A workload."""
        ...

    def tool(self, name: str) -> Tool:
        """A tool."""
        ...

    def host(self, name: str) -> Host:
        """A host."""
        ...


@dataclass(frozen=True, slots=True)
class _Planned:
    """A job with the workload it came from."""

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
    _check_sweep(sweep, workloads, ceilings)
    skipped: list[tuple[str, str]] = []
    cells = _once(
        _Planned(job, workload)
        for workload in workloads
        for job in _jobs(sweep, workload, _versions(workload, definitions, refs), skipped)
    )
    if not cells:
        raise NothingSelectedError(
            f"sweep {sweep.name} selects nothing: {_why(skipped)}",
            "benchrunner plan, with more versions",
        )
    first = _once(
        _Planned(job, ceiling)
        for ceiling, scale in ceilings
        for job in _ceiling_jobs(sweep, ceiling, scale, definitions)
    )
    return _costed(sweep, _ordered(sweep, first, cells), definitions, history or {}, skipped)


def _once(planned: Iterable[_Planned]) -> list[_Planned]:
    """Every job once: version ranges may overlap."""
    return list({one.job.id: one for one in planned}.values())


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
            known.append(_number(expand(step.seconds, job.params, where=where), where))
    return math.fsum(known) if known else None


def job_disk_bytes(workload: Workload, job: Job) -> int | None:
    """Space that a trial takes at most; under ``pristine`` the loaded state is kept beside."""
    if not workload.estimate.disk:
        return None
    where = f"estimate.disk of {workload.name}"
    needed = _number(evaluate(workload.estimate.disk, job.params, where=where), where)
    return math.ceil(needed * (2 if job.policy == "pristine" else 1))


def _number(value: Scalar, where: str) -> float:
    if isinstance(value, str | bool):
        raise ConfigurationError(
            f"{where}: {value!r} is not a number", "write arithmetic over params"
        )
    return value


# ---------------------------------------------------------------- what a sweep may name


def _check_sweep(
    sweep: Sweep, workloads: Sequence[Workload], ceilings: Sequence[tuple[Workload, str]]
) -> None:
    params = {name: None for workload in workloads for name in workload.params}
    settable = params | {name: None for workload, _ in ceilings for name in workload.params}
    for name in sweep.set:
        check_parameter(name, settable, where=f"--set {name}")
    for name, values in sweep.axes.items():
        check_parameter(name, params, where=f"axis {name}")
        if not values:
            raise ConfigurationError(f"axis {name} has no values", f"{name} = [1, 2]")
    for cell in sweep.exclude:
        for key in cell:
            check_parameter(key, {**dict.fromkeys(CELL_KEYS), **params}, where="exclude")
    variants = {variant.name for workload in workloads for variant in workload.variants}
    for name in sweep.variants:
        if name not in variants:
            names = ", ".join(workload.name for workload in workloads)
            raise ConfigurationError(
                f"there is no variant {name!r} in {names}{did_you_mean(name, variants)}",
                f"--variants {listed(variants)}",
            )


def _versions(
    workload: Workload, definitions: Definitions, refs: Mapping[str, Sequence[SourceRef]]
) -> Sequence[SourceRef]:
    """Versions of a workload's engine; a tool that belongs to no engine is as the system has it."""
    found = refs.get(workload.engine, ())
    if found:
        return found
    tools = {step.tool for step in workload.steps}
    if workload.engine in tools and definitions.tool(workload.engine).engine is None:
        return [_system(workload, definitions)]
    raise NothingSelectedError(
        f"no version of {workload.engine} is selected for {workload.name}",
        f"benchrunner versions {workload.engine}",
    )


def _system(workload: Workload, definitions: Definitions) -> SourceRef:
    """The installed program that a workload without engine versions runs."""
    tool = definitions.tool(workload.steps[0].tool)
    return SourceRef(workload.engine, "system", "system", tool.binary or tool.name)


# ---------------------------------------------------------------- cells


def _jobs(
    sweep: Sweep,
    workload: Workload,
    versions: Iterable[SourceRef],
    skipped: list[tuple[str, str]],
) -> Iterator[Job]:
    """Jobs of one workload; versions change fastest, so that they take turns."""
    scale = checked_scale(workload, sweep.scale)
    names = [v.name for v in workload.variants if not sweep.variants or v.name in sweep.variants]
    if not names:
        raise ConfigurationError(
            f"workload {workload.name} has none of the variants {', '.join(sweep.variants)}",
            f"--variants {listed(variant.name for variant in workload.variants)}",
        )
    fixed = {name: value for name, value in sweep.set.items() if name in workload.params}
    axes = {name: values for name, values in sweep.axes.items() if name in workload.params}
    places = [
        (number, host, *cell)
        for host in sweep.hosts
        for number, cell in enumerate(itertools.product(_points(axes, workload), names, versions))
    ]
    for number, host, point, variant, ref in places:
        if sweep.spread and sweep.hosts[number % len(sweep.hosts)] != host:
            continue
        params = effective(workload, scale, {**fixed, **point})
        cell = _Cell(sweep, workload, scale, host, params, point)
        job = cell.job(ref, variant)
        if not _excluded(sweep.exclude, job):
            skipped += [one for one in _left_out(workload, job) if one not in skipped]
            if job.steps:
                yield job


@dataclass(frozen=True, slots=True)
class _Cell:
    """What the jobs of one workload at one place have in common."""

    sweep: Sweep
    workload: Workload
    scale: str
    host: str
    params: Mapping[str, Scalar]
    axes: Mapping[str, Scalar]

    def job(self, ref: SourceRef, variant: str) -> Job:
        """The job of one version and variant."""
        content: dict[str, Any] = {
            "workload": self.workload.name,
            "engine": self.workload.engine,
            "version": ref.version,
            "source": ref,
            "variant": variant,
            "host": self.host,
            "scale": self.scale,
            "params": self.params,
            "axes": self.axes,
            "steps": tuple(
                s.name for s in self.workload.steps if satisfies(ref.version, s.requires)
            ),
            "policy": self.workload.policy,
            "as_shipped": self.sweep.as_shipped,
        }
        return Job(id=job_id(content), **content)


def _points(
    axes: Mapping[str, Sequence[Scalar]], workload: Workload
) -> Iterator[dict[str, Scalar]]:
    """Every combination of axis values."""
    values = [
        [typed(value, workload.params[name], where=f"axis {name}") for value in axes[name]]
        for name in axes
    ]
    for combination in itertools.product(*values):
        yield dict(zip(axes, combination, strict=True))


def _left_out(workload: Workload, job: Job) -> Iterator[tuple[str, str]]:
    """Steps that a version cannot run, and why."""
    for step in workload.steps:
        if step.name not in job.steps:
            yield f"{job.engine} {job.version}: {step.name}", f"the step requires {step.requires}"


def _excluded(excludes: Iterable[Mapping[str, Scalar]], job: Job) -> bool:
    def matches(key: str, wanted: Scalar) -> bool:
        if key in CELL_KEYS:
            return to_text(wanted) == str(getattr(job, key))
        if key not in job.params:
            return False
        return bool(typed(wanted, job.params[key], where=f"exclude {key}") == job.params[key])

    return any(cell and all(itertools.starmap(matches, cell.items())) for cell in excludes)


# ---------------------------------------------------------------- ceilings


def _ceilings(
    sweep: Sweep, workloads: Sequence[Workload], definitions: Definitions
) -> list[tuple[Workload, str]]:
    """Ceiling workloads of a sweep and their scales, each once."""
    found: dict[tuple[str, str], tuple[Workload, str]] = {}
    for workload in workloads if sweep.ceilings else []:
        if workload.ceiling is None or workload.ceiling.workload in sweep.workloads:
            continue
        ceiling = definitions.workload(workload.ceiling.workload)
        scale = checked_scale(workload, sweep.scale)
        own = scale if scale in ceiling.scale else ceiling.default_scale
        found[ceiling.name, own] = (ceiling, own)
    return list(found.values())


def _ceiling_jobs(
    sweep: Sweep, ceiling: Workload, scale: str, definitions: Definitions
) -> Iterator[Job]:
    fixed = {name: value for name, value in sweep.set.items() if name in ceiling.params}
    params = effective(ceiling, scale, fixed)
    for host in sweep.hosts:
        cell = _Cell(sweep, ceiling, scale, host, params, {})
        yield cell.job(_system(ceiling, definitions), ceiling.variants[0].name)


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
    return Plan(
        sweep=sweep.name,
        trials=trials,
        loads=sum(_loads(one, definitions) for one, _ in ordered),
        disk_bytes=max((value for value in disk if value is not None), default=None),
        seconds=max(map(math.fsum, seconds.values()), default=None),  # hosts work side by side
        skipped=tuple(skipped),
    )


def _loads(planned: _Planned, definitions: Definitions) -> int:
    """Databases that one trial loads from empty; under ``pristine`` its steps share that load."""
    engine = planned.workload.engine
    return sum(
        definitions.tool(step.tool).engine == engine
        for step in planned.workload.steps
        if step.state == "creates" and step.name in planned.job.steps
    )


def _why(skipped: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{what}: {why}" for what, why in skipped[:3]) or "every cell is excluded"
