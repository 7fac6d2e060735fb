"""Which numbers of a cell count, found by name: phase, run, role, metric. Pure.

Only steps that ended ok give numbers; the others give a state and a reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchrunner.model import StepState, TrialState
from benchrunner.report.format import median

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchrunner.model import Taint
    from benchrunner.report.input import Cell, StepView, TrialView


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the trials of one cell say about one step."""

    steps: tuple[StepView, ...]
    """The processes whose numbers count, in order of repetition."""
    label: str
    """What stands in the place of numbers when there are none: ``failed``."""
    failures: tuple[str, ...]
    """Why repetitions are missing, one text for each different reason."""
    taints: tuple[Taint, ...]


def step_outcome(cell: Cell, step_name: str) -> Outcome:
    """Sort the repetitions of a step into those that count and reasons for the others."""
    counted: list[StepView] = []
    labels: list[str] = []
    failures: list[str] = []
    for trial in sorted(cell.trials, key=lambda trial: trial.repetition):
        step = trial.steps.get(step_name)
        if step is not None and step.state is StepState.OK:
            counted.append(step)
            continue
        label, reason = _why_missing(trial, step)
        labels.append(label)
        failures.append(f"{label}: {reason}" if reason else label)
    if counted:
        failures = [f"one repetition of {len(cell.trials)} {text}" for text in failures]
    elif len(set(labels)) == 1 and failures == labels and labels[0] in ("planned", "not run"):
        failures = []
    return Outcome(
        steps=tuple(counted),
        label=labels[0] if labels else "not run",
        failures=tuple(dict.fromkeys(failures)),
        taints=tuple(dict.fromkeys(taint for step in counted for taint in step.taints)),
    )


def _why_missing(trial: TrialView, step: StepView | None) -> tuple[str, str]:
    if step is not None:
        return step.state.value, "; ".join(part for part in (step.reason, *step.problems) if part)
    if trial.state is TrialState.OK:
        return "not run", trial.reason
    return trial.state.value, trial.reason


def find_value(step: StepView, metric: str, phase: str | None, role: str | None) -> float | None:
    """Return a step's number: of its phase, else of the whole process; median of repeated runs.

    Where neither phase nor role is asked for, a metric that is there once only is meant (fio's
    reads, which its output has under the name of the job).
    """
    places = [(wanted, role) for wanted in dict.fromkeys((phase, None))]
    if phase is None and role is None:
        found = {(p, r) for p, _, r, name in step.measurements if name == metric}
        places += found if len(found) == 1 else ()
    for wanted, doer in places:
        runs: list[float] = []
        while (key := (wanted, len(runs) + 1, doer, metric)) in step.measurements:
            runs.append(step.measurements[key])
        if runs:
            return median(runs)
    return None


def values_of(
    steps: Iterable[StepView], metric: str, phase: str | None, role: str | None
) -> tuple[float, ...]:
    """Return the number of each repetition that has one."""
    found = (find_value(step, metric, phase, role) for step in steps)
    return tuple(value for value in found if value is not None)


def varying(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Return what tells cells apart besides version and variant: engine, hosts, names of axes."""
    seen: dict[str, set[str]] = {"engine": set(), "host": set(), "server": set()}
    for cell in cells:
        for name in cell.axes:
            seen.setdefault(name, set())
    for cell in cells:
        for name, values in seen.items():
            values.add(part_text(cell, name))
    return tuple(name for name, values in seen.items() if len(values) > 1)


def has_servers(cells: Iterable[Cell]) -> bool:
    """Return whether services of any cell ran on another host than its steps."""
    return any(cell.server for cell in cells)


def place_text(cell: Cell) -> str:
    """Return where a cell ran: ``alpha``, or ``alpha, servers on beta``."""
    return ", ".join(filter(None, (cell.host, part_text(cell, "server"))))


def part_text(cell: Cell, name: str) -> str:
    """Return one coordinate of a cell as text: ``engine``, ``version``, ``host`` or an axis."""
    if name == "server":
        return f"servers on {cell.server}" if cell.server else ""
    if name in ("engine", "version", "variant", "host"):
        return str(getattr(cell, name))
    value = cell.axes.get(name)
    return "" if value is None else str(value)
