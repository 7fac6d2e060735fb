"""A workload as one job runs it: its own engine and policy, a step over a list as several steps.

Pure. ``plan``, ``run`` and ``report`` see unfolded workloads only; a step that was made from one
with ``each`` knows its family and value, and its templates the single value under the list's name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeGuard

from benchrunner.errors import ConfigurationError
from benchrunner.params import normalised

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchrunner.definitions import ExpandedStep, Scalar, Service, Step, Sweep, Workload
    from benchrunner.model import Job

_POSITIVE = re.compile(r"[1-9][0-9]{0,8}")
_WORD = re.compile(r"[A-Za-z0-9._-]{1,32}")


def engines_of(workload: Workload, sweep: Sweep) -> list[str]:
    """The engines of a workload that a sweep runs: of several those that it names, else all."""
    if workload.engine:
        return [workload.engine]
    return [name for name in workload.engines if name in sweep.engines] or list(workload.engines)


def unfolded(workload: Workload, job: Job) -> Workload:
    """The workload that a job runs: one engine, the job's policy, one step for each value."""
    changes: dict[str, Any] = {
        "engine": job.engine,
        "engines": [],
        "policy": job.policy,
        "steps": expanded_steps(workload, job.params),
    }
    return workload.model_copy(update=changes)


def expanded_steps(workload: Workload, params: Mapping[str, Scalar]) -> list[Step]:
    """The steps of a workload with these parameters, in order.

    Raises:
        ConfigurationError: A list is empty, or holds what cannot be a value of it.
    """
    steps: list[Step] = []
    for step in workload.steps:
        if not step.each:
            steps.append(step)
            continue
        numbers = _holds_numbers(workload.params[step.each])
        values = list_values(step.each, params[step.each], numbers=numbers)
        steps += [_one(step, value) for value in values]
    return steps


def _one(step: Step, value: Scalar) -> ExpandedStep:
    from benchrunner.definitions import ExpandedStep  # pydantic: only where a definition is there

    same = {name: getattr(step, name) for name in type(step).model_fields}
    own = {"name": f"{step.name}-{value}", "family": step.name, "value": value}
    return ExpandedStep.model_construct(**{**same, **own})


def service_step(service: Service) -> Step:
    """A service as what it is run as: a step that measures nothing."""
    from benchrunner.definitions import Step

    own = {name: getattr(service, name) for name in ("name", "tool", "args", "words")}
    return Step(**own, measure=False)


def used_services(workload: Workload, steps: Sequence[str]) -> list[str]:
    """The services that some of these steps need, in the workload's order.

    Args:
        workload: unfolded or not: a step's family names it as well.
        steps: names of those that a job runs.
    """
    running = [step for step in workload.steps if _is_among(step, steps)]
    wanted = {name for step in running for name in step.services}
    return [service.name for service in workload.services if service.name in wanted]


def _is_among(step: Step, names: Sequence[str]) -> bool:
    if step.each and not is_expanded(step):
        return any(name.startswith(f"{step.name}-") for name in names)
    return step.name in names


def tool_names(workload: Workload) -> list[str]:
    """The tools that a workload uses, each once."""
    names = [step.tool for step in workload.steps]
    return list(dict.fromkeys([*names, *(service.tool for service in workload.services)]))


def is_expanded(step: Step) -> TypeGuard[ExpandedStep]:
    """Whether a step is one of those that a step over a list became."""
    return hasattr(step, "family")


def all_steps(workload: Workload, jobs: Iterable[Mapping[str, Scalar]]) -> list[Step]:
    """The steps of several jobs with these parameters: those of a family in the order of values."""
    steps: dict[str, Step] = {}
    for params in jobs:
        steps.update((step.name, step) for step in expanded_steps(workload, params))
    order = {step.name: number for number, step in enumerate(workload.steps)}

    def place(step: Step) -> tuple[int, float]:
        if not is_expanded(step):
            return order[step.name], 0.0
        return order[step.family], float(step.value) if isinstance(step.value, int) else 0.0

    return sorted(steps.values(), key=place)


def with_value(step: Step, params: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The parameters inside a step: the list that it is one value of is that value."""
    own = {step.each: step.value} if is_expanded(step) else {}
    return {**params, **own}


def list_values(name: str, value: Scalar, *, numbers: bool) -> list[Scalar]:
    """The values of a list that is written as text.

    >>> list_values("THREADS", "1,2, 4", numbers=True)
    [1, 2, 4]

    Raises:
        ConfigurationError: It is empty, one of them is twice there or is not of its kind.
    """
    words = [word.strip() for word in str(value).split(",")]
    example = f"{name}=1,2,4" if numbers else f"{name}=a,b"
    if not any(words):
        raise ConfigurationError(f"{name} is empty: it must hold at least one value", example)
    for word in words:
        if not (_POSITIVE if numbers else _WORD).fullmatch(word):
            kind = "a whole number from 1 on" if numbers else "a word"
            raise ConfigurationError(f"{name}={value}: {word!r} is not {kind}", example)
        if words.count(word) > 1:
            raise ConfigurationError(f"{name}={value}: {word} is there twice", "give it once")
    return [int(word) if numbers else word for word in words]


def _holds_numbers(default: Scalar) -> bool:
    """Whether a list's default is numbers, so that all its values must be."""
    words = str(normalised(default)).split(",")
    return all(_POSITIVE.fullmatch(word.strip()) for word in words)
