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
from benchrunner.expressions import to_text
from benchrunner.identity import job_id, trial_id
from benchrunner.model import MISSING, Job, Plan, PlannedTrial, SourceRef
from benchrunner.params import check_parameter, checked_scale, effective, typed
from benchrunner.plan_checks import check_groups, check_parameters, check_places
from benchrunner.plan_cost import job_disk_bytes, job_memory_bytes, job_seconds, step_threads
from benchrunner.suggest import did_you_mean, listed
from benchrunner.unfolding import engines_of, expanded_steps, unfolded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from benchrunner.definitions import Engine, Host, Scalar, Step, Sweep, Tool, Workload
    from benchrunner.plan_cost import History

CELL_KEYS = ("workload", "engine", "version", "variant", "host", "scale")


class Definitions(Protocol):
    """What a plan looks up; a Catalog is one."""

    def workload(self, name: str) -> Workload:
        """A workload."""
        ...

    def tool(self, name: str) -> Tool:
        """A tool."""
        ...

    def engine(self, name: str) -> Engine:
        """An engine."""
        ...

    def host(self, name: str) -> Host:
        """A host."""
        ...


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
    _check_sweep(sweep, workloads, ceilings)
    skipped: list[tuple[str, str]] = []
    cells = _once(
        _Planned(job, unfolded(workload, job))
        for workload in workloads
        for job in _jobs(sweep, workload, definitions, refs, skipped)
    )
    if not cells:
        raise NothingSelectedError(
            f"sweep {sweep.name} selects nothing: {_why(skipped)}",
            "benchrunner plan, with more versions",
        )
    for one in cells:
        _check_threads(one, definitions)
        check_parameters(one.workload, one.job)
    check_places(workloads)
    first = _once(
        _Planned(job, unfolded(ceiling, job))
        for ceiling, scale in ceilings
        for job in _ceiling_jobs(sweep, ceiling, scale, definitions)
    )
    return _costed(sweep, _ordered(sweep, first, cells), definitions, history or {}, skipped)


def _once(planned: Iterable[_Planned]) -> list[_Planned]:
    """Every job once: version ranges may overlap."""
    return list({one.job.id: one for one in planned}.values())


def _check_threads(planned: _Planned, definitions: Definitions) -> None:
    """A program may not be asked for more threads than it can make."""
    for step in planned.workload.steps:
        most = definitions.tool(step.tool).max_threads
        threads = step_threads(step, planned.workload, planned.job.params)
        if most is not None and threads > most:
            raise ConfigurationError(
                f"step {step.name} of {planned.workload.name} asks for {threads:g} threads, and "
                f"{step.tool} can make {most}",
                f"at most {most}",
            )


# ---------------------------------------------------------------- what a sweep may name


def _check_sweep(
    sweep: Sweep, workloads: Sequence[Workload], ceilings: Sequence[tuple[Workload, str]]
) -> None:
    params = {name: None for workload in workloads for name in workload.params}
    settable = params | {name: None for workload, _ in ceilings for name in workload.params}
    for name in sweep.set:
        check_parameter(name, settable, where=f"--set {name}")
    _check_engines(sweep, workloads)
    check_groups(sweep.only, workloads)
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


def _check_engines(sweep: Sweep, workloads: Sequence[Workload]) -> None:
    """Engines of a sweep are engines of a workload of it, where one has several."""
    if not any(workload.engines for workload in workloads):
        return
    known = {name for one in workloads for name in (one.engine, *one.engines) if name}
    for name in sweep.engines:
        if name not in known:
            where = ", ".join(workload.name for workload in workloads)
            raise ConfigurationError(
                f"{where} has no engine {name!r}{did_you_mean(name, known)}", listed(known)
            )


def _versions(
    sweep: Sweep,
    workload: Workload,
    definitions: Definitions,
    refs: Mapping[str, Sequence[SourceRef]],
) -> Sequence[SourceRef]:
    """Versions of a workload's engines; a tool that is no engine's is as the system has it."""
    found = [ref for name in engines_of(workload, sweep) for ref in refs.get(name, ())]
    if found:
        return found
    tools = {step.tool for step in workload.steps}
    if workload.engine in tools and definitions.tool(workload.engine).is_free:
        return [_system(workload, definitions)]
    raise NothingSelectedError(
        f"no version of {workload.engine or 'its engines'} is selected for {workload.name}",
        f"benchrunner versions {workload.engine or workload.engines[0]}",
    )


def _system(workload: Workload, definitions: Definitions) -> SourceRef:
    """The installed program that a workload without engine versions runs."""
    tool = definitions.tool(workload.steps[0].tool)
    return SourceRef(workload.engine, "system", "system", tool.binary or tool.name)


# ---------------------------------------------------------------- cells


def _jobs(
    sweep: Sweep,
    workload: Workload,
    definitions: Definitions,
    refs: Mapping[str, Sequence[SourceRef]],
    skipped: list[tuple[str, str]],
) -> Iterator[Job]:
    """Jobs of one workload; versions change fastest, so that they take turns."""
    versions = _versions(sweep, workload, definitions, refs)
    most_threads = {name: definitions.engine(name).max_threads for name in workload.engines}
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
        cell = _Cell(sweep, workload, scale, host, params, point, most_threads)
        job = cell.job(ref, variant)
        if not _excluded(sweep.exclude, job):
            skipped += [one for one in cell.left_out(ref) if one not in skipped]
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
    most_threads: Mapping[str, int | None]
    """Engine -> threads that it can serve, where that is known."""

    def job(self, ref: SourceRef, variant: str) -> Job:
        """The job of one version and variant."""
        content: dict[str, Any] = {
            "workload": self.workload.name,
            "engine": ref.engine,
            "version": ref.version,
            "source": ref,
            "variant": variant,
            "host": self.host,
            "scale": self.scale,
            "params": self.params,
            "axes": self.axes,
            "steps": tuple(s.name for s in self.steps() if not self._unfit(s, ref)),
            "policy": self.sweep.policy or self.workload.policy,
            "as_shipped": self.sweep.as_shipped,
        }
        return Job(id=job_id(content), **content)

    def steps(self) -> list[Step]:
        """The steps of the groups wanted, those over a list once for each value."""
        steps = expanded_steps(self.workload, self.params)
        return [step for step in steps if not self.sweep.only or step.group in self.sweep.only]

    def left_out(self, ref: SourceRef) -> Iterator[tuple[str, str]]:
        """Steps that a version cannot run, and why; what cannot be had at all."""
        if ref.kind == MISSING:
            yield f"{ref.engine} {ref.version}", ref.note
            return
        for step in self.steps():
            why = self._unfit(step, ref)
            if why:
                yield f"{ref.engine} {ref.version}: {step.name}", why

    def _unfit(self, step: Step, ref: SourceRef) -> str:
        if not satisfies(ref.version, step.requires):
            return f"the step requires {step.requires}"
        most = self.most_threads.get(ref.engine)
        if most is not None and step_threads(step, self.workload, self.params) > most:
            return f"the engine serves at most {most} threads"
        return ""


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
        cell = _Cell(sweep, ceiling, scale, host, params, {}, {})
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
