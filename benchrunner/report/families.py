"""Families: a step and all that ``each`` made of it, so that one table or chart can show them.

Pure. A step without ``each`` is a family of its own. A line of a table is one cell at one value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchrunner.definitions import ExpandedStep
from benchrunner.errors import ConfigurationError
from benchrunner.report.lookup import Outcome, part_text, step_outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchrunner.definitions import Step, Workload
    from benchrunner.report.input import Cell

ALL = "all"
"""Stands for every value of a family where none of them has a number, all for one reason."""


@dataclass(frozen=True, slots=True)
class Family:
    """A step as a page names it, and the steps that run."""

    name: str
    parameter: str
    """Whose values tell the members apart; empty for a plain step."""
    members: Mapping[str, Step]
    """Value as text -> the step that ran with it, in the workload's order."""

    @property
    def first(self) -> Step:
        """The step that titles, phases and texts are taken from."""
        return next(iter(self.members.values()))

    @property
    def steps(self) -> tuple[str, ...]:
        """Names of the steps that run."""
        return tuple(step.name for step in self.members.values())

    def step_of(self, value: str) -> str:
        """The step of one value; that of a plain step has every value."""
        return self.members[value].name if value in self.members else self.first.name


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a table: a cell, and the value of the family's parameter."""

    cell: Cell
    parameter: str = ""
    value: str = ""

    def text(self, name: str) -> str:
        """One coordinate: that of the cell, or the value."""
        return self.value if name == self.parameter else part_text(self.cell, name)


def families(workload: Workload) -> tuple[Family, ...]:
    """Return the workload's steps, those of one family as one, in order."""
    found: dict[str, dict[str, Step]] = {}
    parameters: dict[str, str] = {}
    for step in workload.steps:
        expanded = isinstance(step, ExpandedStep)
        name = step.family if isinstance(step, ExpandedStep) else step.name
        value = str(step.value) if isinstance(step, ExpandedStep) else ""
        found.setdefault(name, {})[value] = step
        parameters[name] = step.each if expanded else ""
    return tuple(Family(name, parameters[name], members) for name, members in found.items())


def find_family(workload: Workload, name: str, where: str) -> Family:
    """Return the family or the single step of a name, or say which page part names none."""
    known = families(workload)
    for family in known:
        if family.name == name:
            return family
        for step in family.members.values():
            if step.name == name:
                return Family(name, "", {"": step})
    raise ConfigurationError(
        f"{where} names the step {name!r}, which workload {workload.name!r} does not have.",
        "its steps are " + ", ".join(family.name for family in known),
    )


def lines_of(cells: Iterable[Cell], family: Family, *, whole: bool = False) -> tuple[Line, ...]:
    """Return one line for each cell and value.

    Args:
        cells: What ran.
        family: The step that is shown.
        whole: Whether a cell without any number, all for one reason, is a single line.
    """
    lines: list[Line] = []
    for cell in cells:
        if whole and family.parameter and _alike([step_outcome(cell, s) for s in family.steps]):
            lines.append(Line(cell, family.parameter, ALL))
        else:
            lines += (Line(cell, family.parameter, value) for value in family.members)
    return tuple(lines)


def _alike(outcomes: Sequence[Outcome]) -> bool:
    reasons = {(outcome.label, outcome.failures) for outcome in outcomes}
    return len(reasons) == 1 and not any(outcome.steps for outcome in outcomes)
