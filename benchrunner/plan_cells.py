"""The cells of a sweep: every combination of host, axis values, variant and version is a job.

Pure. In: a sweep, one of its workloads, and the versions that the engines' sources have. Out: jobs,
and what is left out of them, and why.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from benchrunner.compatibility import satisfies
from benchrunner.errors import ConfigurationError, NothingSelectedError
from benchrunner.expressions import to_text
from benchrunner.identity import job_id
from benchrunner.model import MISSING, Job, SourceRef
from benchrunner.params import checked_scale, effective, typed
from benchrunner.plan_cost import step_threads
from benchrunner.suggest import listed
from benchrunner.unfolding import engines_of, expanded_steps, used_services

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from benchrunner.definitions import Engine, Host, Scalar, Step, Sweep, Tool, Workload

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


def jobs(
    sweep: Sweep,
    workload: Workload,
    definitions: Definitions,
    refs: Mapping[str, Sequence[SourceRef]],
    skipped: list[tuple[str, str]],
) -> Iterator[Job]:
    """Jobs of one workload; versions change fastest, so that they take turns.

    Args:
        sweep: what is asked for.
        workload: one of its workloads.
        definitions: where tools and engines are looked up.
        refs: engine -> its versions to run.
        skipped: gets what a version cannot run, and why, each once.

    Raises:
        ConfigurationError: The workload has none of the variants, or no such scale.
        NothingSelectedError: No version of its engines is selected.
    """
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
        steps = tuple(s.name for s in self.steps() if not self._unfit(s, ref))
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
            "steps": steps,
            "policy": self.sweep.policy or self.workload.policy,
            "as_shipped": self.sweep.as_shipped,
        }
        if self.sweep.server and used_services(self.workload, steps):
            content["server"] = self.sweep.server  # else not said: a job keeps its id
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


def ceiling_jobs(
    sweep: Sweep, ceiling: Workload, scale: str, definitions: Definitions
) -> Iterator[Job]:
    """Jobs of a ceiling workload: one on each host, with the installed program."""
    fixed = {name: value for name, value in sweep.set.items() if name in ceiling.params}
    params = effective(ceiling, scale, fixed)
    for host in sweep.hosts:
        cell = _Cell(sweep, ceiling, scale, host, params, {}, {})
        yield cell.job(_system(ceiling, definitions), ceiling.variants[0].name)


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
