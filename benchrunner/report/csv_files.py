"""Report data -> CSV texts with raw, full-precision values. Pure.

``<table>.csv`` is tidy, one row for each cell; ``columns.csv`` says what each column means;
``measurements.csv`` has every number of every repetition in long form.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from benchrunner.model import StepState
from benchrunner.report.build import named_tables
from benchrunner.report.families import find_family
from benchrunner.report.format import median
from benchrunner.report.lines import line_rows
from benchrunner.report.lookup import has_servers, step_outcome
from benchrunner.report.order import ordered_cells
from benchrunner.report.tables import Column, resolve_columns, table_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from benchrunner.definitions import TableDefinition
    from benchrunner.report.families import Family
    from benchrunner.report.input import Cell, ReportData

Row = tuple[object, ...]
_ORDER = ("engine", "version", "variant", "host", "server")


def csv_texts(data: ReportData) -> dict[str, str]:
    """Return file name -> text of all CSV files of a page."""
    texts: dict[str, str] = {}
    meanings: list[Row] = []
    for name, table in named_tables(data):
        columns = resolve_columns(data, table)
        names = _column_names(columns)
        meanings += [
            (f"{name}.csv", column_name, *_meaning(column))
            for column_name, column in zip(names, columns, strict=True)
        ]
        family = find_family(data.workload, table.step, f"A table of step {table.step!r}")
        head = (
            "engine",
            "version",
            "variant",
            "host",
            *_servers(data),
            *_axes(data),
            *([family.parameter] if family.parameter else []),
            "n",
            "state",
            "taints",
            *names,
        )
        texts[f"{name}.csv"] = _text(head, _table_rows(data, table, columns, family))
    if data.workload.page.lines:
        head = ("group", "table", "line", "host", *_servers(data), "metric", "title", "unit", "n",
                "median", "low", "high", "spread_pct", "published", "state")  # fmt: skip
        texts["lines.csv"] = _text(head, line_rows(data))
    head = ("file", "column", "metric", "title", "unit", "better", "step", "phase", "role", "text")
    texts["columns.csv"] = _text(head, meanings)
    head = (
        *("workload", "engine", "version", "variant", "host", *_servers(data), *_axes(data)),
        *("trial", "repetition"),
        *("step", "phase", "run", "role", "metric", "unit", "value", "taints", "state"),
    )
    texts["measurements.csv"] = _text(head, _measurement_rows(data))
    return texts


def _text(head: Sequence[str], rows: Iterable[Row]) -> str:
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(tuple("" if value is None else value for value in row) for row in rows)
    return target.getvalue()


def _servers(data: ReportData) -> tuple[str, ...]:
    """The column of the services' host, where that is another one anywhere on the page."""
    return ("server",) if has_servers(data.cells) else ()


def _axes(data: ReportData) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for cell in data.cells for name in cell.axes))


def _column_names(columns: Sequence[Column]) -> tuple[str, ...]:
    """Return metric ids, with step, phase or role added where an id occurs twice."""
    ids = [column.id for column in columns]
    return tuple(
        column.id
        if ids.count(column.id) == 1
        else ".".join(filter(None, (column.id, column.step, column.phase, column.role)))
        for column in columns
    )


def _meaning(column: Column) -> Row:
    metric = column.metric
    coordinates = (column.step, column.phase, column.role)
    return (column.id, column.title, metric.unit, metric.better, *coordinates, metric.text)


def _table_rows(
    data: ReportData, table: TableDefinition, columns: Sequence[Column], family: Family
) -> Iterator[Row]:
    for line in table_lines(data, table, whole=False):
        of_columns = (column.family.step_of(line.value) for column in columns)
        steps = dict.fromkeys((family.step_of(line.value), *of_columns))
        outcomes = [step_outcome(line.cell, name) for name in steps]
        states = dict.fromkeys("ok" if o.steps else o.label for o in outcomes)
        taints = dict.fromkeys(taint.name for o in outcomes for taint in o.taints)
        yield (
            *_coordinates(data, line.cell),
            *([line.value] if line.parameter else []),
            min(len(outcome.steps) for outcome in outcomes),
            " ".join(states),
            " ".join(taints),
            *(median(column.values(line)) for column in columns),
        )


def _coordinates(data: ReportData, cell: Cell) -> Row:
    axes = (cell.axes.get(name) for name in _axes(data))
    server = (cell.server,) * len(_servers(data))
    return (cell.engine, cell.version, cell.variant, cell.host, *server, *axes)


def _measurement_rows(data: ReportData) -> Iterator[Row]:
    for cell in ordered_cells(data.cells, _ORDER, data.workload):
        for trial in sorted(cell.trials, key=lambda trial: trial.repetition):
            where = (data.workload.name, *_coordinates(data, cell), trial.id, trial.repetition)
            if not trial.steps:
                yield (*where, *(None,) * 7, None, trial.state.value)
            for name, step in trial.steps.items():
                taints = " ".join(taint.name for taint in step.taints)
                if not step.measurements:
                    yield (*where, name, *(None,) * 6, taints, step.state.value)
                for (phase, run, role, metric), value in step.measurements.items():
                    unit = data.metrics[metric].unit if metric in data.metrics else None
                    shown = None if step.state is StepState.INVALID else value
                    numbers = (name, phase, run, role, metric, unit, shown)
                    yield (*where, *numbers, taints, step.state.value)
