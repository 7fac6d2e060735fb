"""Tables of a page: a table definition and the cells of a sweep become views. Pure.

A column has exactly one metric id, so that figures with different definitions never share one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import groupby
from typing import TYPE_CHECKING

from benchrunner.definitions import ColumnDefinition
from benchrunner.errors import ConfigurationError
from benchrunner.report.families import Family, Line, find_family, lines_of
from benchrunner.report.format import median, metric_text
from benchrunner.report.lookup import Outcome, step_outcome, values_of
from benchrunner.report.marks import marks_of
from benchrunner.report.numbers import NumberForm, number_form
from benchrunner.report.order import ordered, ranks_of, row_keys
from benchrunner.report.view import DASH, CellView, ColumnView, RowView, TableView

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchrunner.definitions import Metric, TableDefinition
    from benchrunner.report.footnotes import Footnotes
    from benchrunner.report.input import Cell, ReportData

_KEY_TITLES = {"version": "Version", "variant": "Opts", "host": "Host", "engine": "Engine",
               "server": "Servers on"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers: one metric of one step, phase and role."""

    id: str
    metric: Metric
    title: str
    family: Family
    phase: str | None
    role: str | None
    form: str = ""
    """How its numbers are written, as asked for."""
    whole: Column | None = None
    """The column whose number stands behind each of its own: ``10 of 12``."""

    @property
    def step(self) -> str:
        """The step as the page names it."""
        return self.family.name

    def values(self, line: Line) -> tuple[float, ...]:
        """The numbers of a line, one for each repetition that has one."""
        outcome = step_outcome(line.cell, self.family.step_of(line.value))
        return values_of(outcome.steps, self.id, self.phase, self.role)


@dataclass(frozen=True, slots=True)
class PlacedTable:
    """A table and the engine whose section it stands in; empty: in the step's own."""

    engine: str
    view: TableView


@dataclass(frozen=True, slots=True)
class _Layout:
    """What all tables of one definition have in common."""

    keys: tuple[str, ...]
    columns: tuple[Column, ...]
    forms: tuple[NumberForm, ...]
    with_count: bool


def find_metric(metrics: Mapping[str, Metric], name: str, where: str) -> Metric:
    """Return the definition of a metric id, or say which page part names an unknown one."""
    if name not in metrics:
        close = get_close_matches(name, metrics, n=1)
        raise ConfigurationError(
            f"{where} shows the metric {name!r}, which is not defined.",
            f"did you mean {close[0]!r}?" if close else "define it in metrics.toml",
        )
    return metrics[name]


def resolve_columns(data: ReportData, table: TableDefinition) -> tuple[Column, ...]:
    """Return the columns of a table with their definitions; titles must be unambiguous."""
    where = f"A table of step {table.step!r}"
    columns: list[Column] = []
    for entry in table.columns:
        column = entry if isinstance(entry, ColumnDefinition) else ColumnDefinition(metric=entry)
        family = find_family(data.workload, column.step or table.step, where)
        metric = find_metric(data.metrics, column.metric, where)
        phase = column.phase or family.first.phase
        title = column.title or metric.title
        whole = None
        if column.of is not None:
            all_of = find_metric(data.metrics, column.of, where)
            whole = Column(column.of, all_of, title, family, phase, column.role)
        columns.append(
            Column(column.metric, metric, title, family, phase, column.role, column.format, whole)
        )
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


def table_lines(data: ReportData, table: TableDefinition, *, whole: bool) -> tuple[Line, ...]:
    """Return the lines of a table, of all engines, in the order of its rows."""
    family = find_family(data.workload, table.step, f"A table of step {table.step!r}")
    lines = lines_of(data.cells, family, whole=whole)
    keys = (*table.split, *row_keys(table, data.cells, family))
    return ordered(lines, keys, Line.text, ranks_of(data.workload))


def build_tables(
    data: ReportData,
    table: TableDefinition,
    name: str,
    notes: Footnotes,
    anchors: Mapping[str, str],
) -> tuple[PlacedTable, ...]:
    """Lay out the tables of one definition: one, or one for each value of what it is split by."""
    lines = table_lines(data, table, whole=True)
    layout = _layout(data, table, lines)
    heads = _heads(layout, anchors)
    placed: list[PlacedTable] = []
    for values, members in _split(lines, table.split):
        rows = _rows(data, members, layout, notes)
        suffix = "-".join((name, *(_slug(value) for value in values.values())))
        title = _title(data, table, values)
        view = TableView(suffix, title, heads, rows)
        placed.append(PlacedTable(values.get("engine", ""), view))
    return tuple(placed)


def _layout(data: ReportData, table: TableDefinition, lines: Sequence[Line]) -> _Layout:
    columns = resolve_columns(data, table)
    where = f"A table of step {table.step!r}"
    forms = [
        number_form(
            column.metric,
            column.form,
            [value for line in lines for value in column.values(line)],
            where,
        )
        for column in columns
    ]
    family = find_family(data.workload, table.step, where)
    keys = row_keys(table, data.cells, family)
    with_count = any(len(cell.trials) > 1 for cell in data.cells)
    return _Layout(keys, columns, tuple(forms), with_count)


def _split(
    lines: Sequence[Line], names: Sequence[str]
) -> Iterator[tuple[dict[str, str], Sequence[Line]]]:
    """Yield the lines of each table with the values that they share; lines come sorted by them."""
    for values, members in groupby(lines, lambda line: tuple(line.text(n) for n in names)):
        yield dict(zip(names, values, strict=True)), tuple(members)
    if not lines:
        yield {}, ()


def _slug(text: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "._" else "-" for sign in text.lower())


def _title(data: ReportData, table: TableDefinition, values: Mapping[str, str]) -> str:
    """The table's own title, and what it is split by where no heading says it."""
    titles = {variant.name: variant.title for variant in data.workload.variants}
    said: list[str] = []
    for name, value in values.items():
        if name == "variant":
            said.append(f"{value} ({titles[value]})" if titles.get(value) else value)
        elif name != "engine":
            said.append(f"{key_title(name)} {value}")
    return ": ".join(filter(None, (table.title, ", ".join(said))))


def _heads(layout: _Layout, anchors: Mapping[str, str]) -> tuple[ColumnView, ...]:
    heads = [ColumnView(key_title(key)) for key in layout.keys]
    heads += [ColumnView("n", numeric=True)] if layout.with_count else []
    for column, form in zip(layout.columns, layout.forms, strict=True):
        unit = "clock" if form.clock else form.unit or column.metric.unit
        title = form.title(column.title)
        heads.append(ColumnView(title, column.id, anchors[column.id], unit, numeric=True))
    return (*heads, ColumnView("Run"))


def _rows(
    data: ReportData, lines: Sequence[Line], layout: _Layout, notes: Footnotes
) -> tuple[RowView, ...]:
    rows: list[RowView] = []
    for line in lines:
        row = _row(data, line, layout, notes)
        first = not rows or rows[-1].cells[0].text != row.cells[0].text
        rows.append(RowView(row.cells, first, row.tainted, row.failed))
    return tuple(rows)


def key_title(key: str) -> str:
    """Return the heading of a row key: ``THREADS`` is a parameter, its column ``Threads``."""
    name = key.partition(":")[0]
    plain = name.replace("_", " ").capitalize() if name.isupper() else name
    return _KEY_TITLES.get(name, plain)


def _row(data: ReportData, line: Line, layout: _Layout, notes: Footnotes) -> RowView:
    columns = layout.columns
    outcomes = {
        column.step: step_outcome(line.cell, column.family.step_of(line.value))
        for column in columns
    }
    cells = [CellView(_key_text(data, line, key.partition(":")[0])) for key in layout.keys]
    if layout.with_count:
        counts = [len(outcome.steps) for outcome in outcomes.values()]
        cells.append(CellView(str(min(counts))))
    marked: set[str] = set()
    for column, form in zip(columns, layout.forms, strict=True):
        outcome = outcomes[column.step]
        first = column.step not in marked
        marks = marks_of(outcome, notes) if first else ()
        cell = _value_cell(column.values(line), form, outcome, marks, first=first)
        cells.append(_of_whole(cell, column, line))
        marked.add(column.step)
    cells.append(CellView("", trials=_trial_links(line.cell)))
    return RowView(
        tuple(cells),
        tainted=any(outcome.taints for outcome in outcomes.values()),
        failed=any(not outcome.steps for outcome in outcomes.values()),
    )


def _key_text(data: ReportData, line: Line, name: str) -> str:
    text = line.cell.server if name == "server" else line.text(name)
    return (data.engine_titles.get(text, text) if name == "engine" else text) or DASH


def _value_cell(
    values: Sequence[float],
    form: NumberForm,
    outcome: Outcome,
    marks: tuple[int, ...],
    *,
    first: bool,
) -> CellView:
    if not outcome.steps:
        return CellView(outcome.label if first else DASH, marks)
    hover = ""
    if len(values) > 1:
        low, high = form.text(min(values)), form.text(max(values))
        hover = f"median of {len(values)}, {low} to {high}"
    return CellView(form.text(median(values)), marks, hover)


def _of_whole(cell: CellView, column: Column, line: Line) -> CellView:
    """The cell with the number behind it that it is a part of, where both were measured."""
    if column.whole is None or cell.text == DASH or not column.whole.values(line):
        return cell
    whole = metric_text(median(column.whole.values(line)), column.whole.metric)
    return replace(cell, text=f"{cell.text} of {whole}")


def _trial_links(cell: Cell) -> tuple[tuple[str, str], ...]:
    trials = sorted(cell.trials, key=lambda trial: trial.repetition)
    if len(trials) == 1:
        return (("raw", trials[0].id),)
    return tuple((str(trial.repetition), trial.id) for trial in trials)
