"""Tables of a page: a table definition and the cells of a sweep become a view. Pure.

A column has exactly one metric id, so that figures with different definitions never share one.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from benchrunner.definitions import ColumnDefinition
from benchrunner.errors import ConfigurationError
from benchrunner.report.format import median, metric_text, version_key
from benchrunner.report.lookup import Outcome, part_text, step_outcome, values_of, varying
from benchrunner.report.view import DASH, CellView, ColumnView, RowView, TableView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchrunner.definitions import Metric, Step, TableDefinition, Workload
    from benchrunner.report.footnotes import Footnotes
    from benchrunner.report.input import Cell, ReportData

_KEY_TITLES = {"version": "Version", "variant": "Opts", "host": "Host", "engine": "Engine"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers: one metric of one step, phase and role."""

    id: str
    metric: Metric
    title: str
    step: str
    phase: str | None
    role: str | None


def find_metric(metrics: Mapping[str, Metric], name: str, where: str) -> Metric:
    """Return the definition of a metric id, or say which page part names an unknown one."""
    if name not in metrics:
        close = get_close_matches(name, metrics, n=1)
        raise ConfigurationError(
            f"{where} shows the metric {name!r}, which is not defined.",
            f"did you mean {close[0]!r}?" if close else "define it in metrics.toml",
        )
    return metrics[name]


def find_step(workload: Workload, name: str, where: str) -> Step:
    """Return a step of the workload, or say which page part names an unknown one."""
    for step in workload.steps:
        if step.name == name:
            return step
    raise ConfigurationError(
        f"{where} names the step {name!r}, which workload {workload.name!r} does not have.",
        "its steps are " + ", ".join(step.name for step in workload.steps),
    )


def resolve_columns(data: ReportData, table: TableDefinition) -> tuple[Column, ...]:
    """Return the columns of a table with their definitions; titles must be unambiguous."""
    where = f"A table of step {table.step!r}"
    columns: list[Column] = []
    for entry in table.columns:
        column = entry if isinstance(entry, ColumnDefinition) else ColumnDefinition(metric=entry)
        step = find_step(data.workload, column.step or table.step, where)
        metric = find_metric(data.metrics, column.metric, where)
        phase = column.phase or step.phase
        title = column.title or metric.title
        columns.append(Column(column.metric, metric, title, step.name, phase, column.role))
    by_title: dict[str, str] = {}
    for resolved in columns:
        other = by_title.setdefault(resolved.title, resolved.id)
        if other != resolved.id:
            raise ConfigurationError(
                f"{where} gives the metrics {other!r} and {resolved.id!r} the same title "
                f"{resolved.title!r}.",
                "give one of them its own title; different definitions never look alike",
            )
    return tuple(columns)


def row_keys(table: TableDefinition, cells: Sequence[Cell]) -> tuple[str, ...]:
    """Return the row keys with their order; what else tells cells apart is added at the end."""
    named = {key.partition(":")[0] for key in table.rows}
    return (*table.rows, *(name for name in varying(cells) if name not in named))


def ordered_cells(
    cells: Sequence[Cell], keys: Sequence[str], variants: Sequence[str]
) -> tuple[Cell, ...]:
    """Sort cells by row keys (``version:desc``), the last key first, as stable sorts do."""
    ordered = list(cells)
    for key in reversed(keys):
        name, _, direction = key.partition(":")
        ordered.sort(
            key=lambda cell, name=name: _sort_key(cell, name, variants),  # type: ignore[misc]
            reverse=direction == "desc",
        )
    return tuple(ordered)


def _sort_key(cell: Cell, name: str, variants: Sequence[str]) -> Any:
    if name == "variant":
        known = cell.variant in variants
        return (variants.index(cell.variant) if known else len(variants), cell.variant)
    return version_key(part_text(cell, name))


def build_table(
    data: ReportData,
    table: TableDefinition,
    name: str,
    notes: Footnotes,
    anchors: Mapping[str, str],
) -> TableView:
    """Lay out one table: newest version first, variants in the workload's order."""
    columns = resolve_columns(data, table)
    keys = row_keys(table, data.cells)
    variants = [variant.name for variant in data.workload.variants]
    with_count = any(len(cell.trials) > 1 for cell in data.cells)
    rows: list[RowView] = []
    for cell in ordered_cells(data.cells, keys, variants):
        row = _row(cell, columns, keys, notes, with_count=with_count)
        first = not rows or rows[-1].cells[0].text != row.cells[0].text
        rows.append(RowView(row.cells, first, row.tainted, row.failed))
    heads = [ColumnView(_key_title(key)) for key in keys]
    heads += [ColumnView("n", numeric=True)] if with_count else []
    heads += [
        ColumnView(column.title, column.id, anchors[column.id], column.metric.unit, numeric=True)
        for column in columns
    ]
    return TableView(name, table.title, (*heads, ColumnView("Run")), tuple(rows))


def _key_title(key: str) -> str:
    name = key.partition(":")[0]
    return _KEY_TITLES.get(name, name)


def _row(
    cell: Cell,
    columns: Sequence[Column],
    keys: Sequence[str],
    notes: Footnotes,
    *,
    with_count: bool,
) -> RowView:
    outcomes = {column.step: step_outcome(cell, column.step) for column in columns}
    cells = [CellView(part_text(cell, key.partition(":")[0]) or DASH) for key in keys]
    if with_count:
        counts = [len(outcome.steps) for outcome in outcomes.values()]
        cells.append(CellView(str(min(counts))))
    marked: set[str] = set()
    for column in columns:
        outcome = outcomes[column.step]
        numbers: tuple[int, ...] = ()
        if column.step not in marked:
            numbers = _footnotes(outcome, notes)
        cells.append(_value_cell(column, outcome, numbers, first=column.step not in marked))
        marked.add(column.step)
    cells.append(CellView("", trials=_trial_links(cell)))
    return RowView(
        tuple(cells),
        tainted=any(outcome.taints for outcome in outcomes.values()),
        failed=any(not outcome.steps for outcome in outcomes.values()),
    )


def _footnotes(outcome: Outcome, notes: Footnotes) -> tuple[int, ...]:
    texts = [_sentence(text) for text in outcome.failures]
    for taint in outcome.taints:
        remedy = f" Remedy: {_sentence(taint.remedy)}" if taint.remedy else ""
        texts.append(f"{taint.name}: {_sentence(taint.evidence)}{remedy}")
    return tuple(notes.number(text) for text in texts)


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _value_cell(
    column: Column, outcome: Outcome, numbers: tuple[int, ...], *, first: bool
) -> CellView:
    if not outcome.steps:
        return CellView(outcome.label if first else DASH, numbers)
    values = values_of(outcome.steps, column.id, column.phase, column.role)
    hover = ""
    if len(values) > 1:
        low, high = (metric_text(value, column.metric) for value in (min(values), max(values)))
        hover = f"median of {len(values)}, {low} to {high}"
    return CellView(metric_text(median(values), column.metric), numbers, hover)


def _trial_links(cell: Cell) -> tuple[tuple[str, str], ...]:
    trials = sorted(cell.trials, key=lambda trial: trial.repetition)
    if len(trials) == 1:
        return (("raw", trials[0].id),)
    return tuple((str(trial.repetition), trial.id) for trial in trials)
