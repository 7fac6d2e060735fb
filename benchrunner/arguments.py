"""Which arguments a step asks for: sets, its own, the engine's, pinned defaults, the variant's.

Pure. Values are still templates; ``command`` gives them their values, ``plan`` hashes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchrunner.errors import ConfigurationError
from benchrunner.expressions import to_text
from benchrunner.suggest import did_you_mean, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from benchrunner.definitions import Scalar, Step, Tool, Variant, Workload

    Argument = Scalar | list[str]
    Arguments = Mapping[str, Argument]


@dataclass(frozen=True, slots=True)
class Asked:
    """Flags that a step asks for, in order, and which of them are pinned defaults."""

    values: dict[str, Argument]
    pinned: frozenset[str]


def asked_arguments(
    step: Step,
    tool: Tool,
    workload: Workload,
    variant: Variant,
    engine_args: Arguments,
    *,
    as_shipped: bool,
) -> Asked:
    """The flags of a step: ``use`` in order, ``args``, the engine's, the variant's options.

    Later ones win; those that the tool takes several times are all given. Pinned defaults fill in
    what nobody set. They and the variant's options speak of the engine under test, so tools that do
    not belong to it (fio) get neither; the engine's own are for the generic driver only.
    """
    sets: list[Arguments] = [*(workload.args[name] for name in step.use), step.args]
    if not tool.drives(workload.engine):
        return Asked(_merged(sets, tool), frozenset())
    if tool.of_job:
        sets.append(engine_args)
    values = _merged(sets, tool)
    free = {} if as_shipped else workload.pinned
    pinned = {flag: v for flag, v in free.items() if flag not in {*values, *variant.options}}
    return Asked(_merged([values, pinned, variant.options], tool), frozenset(pinned))


def _merged(sets: Iterable[Arguments], tool: Tool) -> dict[str, Argument]:
    values: dict[str, Argument] = {}
    for arguments in sets:
        for flag, value in arguments.items():
            if flag in tool.repeat:
                value = [*_words(values.get(flag, [])), *_words(value)]
            values[flag] = value
    return values


def _words(value: Argument) -> list[str]:
    """The values of a flag that can be given several times."""
    return value if isinstance(value, list) else [to_text(value)]


def find_variant(workload: Workload, name: str) -> Variant:
    """A variant of a workload.

    Raises:
        ConfigurationError: The workload has no such variant.
    """
    names = [variant.name for variant in workload.variants]
    if name not in names:
        raise ConfigurationError(
            f"workload {workload.name} has no variant {name!r}{did_you_mean(name, names)}",
            f"--variants {listed(names)}",
        )
    return workload.variants[names.index(name)]


def loading_steps(workload: Workload) -> list[Step]:
    """The steps that leave a loaded database: those that create one, and what completes them."""
    creating = {step.name for step in workload.steps if step.state == "creates"}
    return [step for step in workload.steps if {step.name, step.part_of} & creating]
