"""Which arguments a step asks for: argument sets, the step's own, pinned defaults, the variant's.

Pure. Values are still templates; ``command`` gives them their values, ``plan`` hashes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchrunner.errors import ConfigurationError
from benchrunner.suggest import did_you_mean, listed

if TYPE_CHECKING:
    from benchrunner.definitions import Scalar, Step, Tool, Variant, Workload

    Argument = Scalar | list[str]


@dataclass(frozen=True, slots=True)
class Asked:
    """Flags that a step asks for, in order, and which of them are pinned defaults."""

    values: dict[str, Argument]
    pinned: frozenset[str]


def asked_arguments(
    step: Step, tool: Tool, workload: Workload, variant: Variant, *, as_shipped: bool
) -> Asked:
    """The flags of a step; later ones win: ``use`` in order, ``args``, the variant's options.

    Pinned defaults fill in what nobody set. They and the variant's options speak of the engine
    under test, so tools that do not belong to it (fio) get neither.
    """
    values: dict[str, Argument] = {}
    for name in step.use:
        values |= workload.args[name]
    values |= step.args
    if tool.engine != workload.engine:
        return Asked(values, frozenset())
    free = {} if as_shipped else workload.pinned
    pinned = {flag for flag in free if flag not in values and flag not in variant.options}
    values |= {flag: value for flag, value in free.items() if flag in pinned}
    values |= variant.options
    return Asked(values, frozenset(pinned))


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
