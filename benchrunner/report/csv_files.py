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
from benchrunner.report.format import median
from benchrunner.report.lookup import step_outcome, values_of
from benchrunner.report.tables import Column, ordered_cells, resolve_columns, row_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from benchrunner.definitions import TableDefinition
    from benchrunner.report.input import Cell, ReportData

Row = tuple[object, ...]


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
        head = (
            "engine",
            "version",
            "variant",
            "host",
            *_axes(data),
            "n",
            "state",
            "taints",
            *names,
        )
        texts[f"{name}.csv"] = _text(head, _table_rows(data, table, columns))
    head = ("file", "column", "metric", "title", "unit", "better", "step", "phase", "role", "text")
    texts["columns.csv"] = _text(head, meanings)
    head = (
        *("workload", "engine", "version", "variant", "host", *_axes(data), "trial", "repetition"),
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
    data: ReportData, table: TableDefinition, columns: Sequence[Column]
) -> Iterator[Row]:
    variants = [variant.name for variant in data.workload.variants]
    for cell in ordered_cells(data.cells, row_keys(table, data.cells), variants):
        outcomes = {name: step_outcome(cell, name) for name in _steps(table, columns)}
        states = dict.fromkeys("ok" if o.steps else o.label for o in outcomes.values())
        taints = dict.fromkeys(taint.name for o in outcomes.values() for taint in o.taints)
        values = (median(values_of(outcomes[c.step].steps, c.id, c.phase, c.role)) for c in columns)
        yield (
            *_coordinates(data, cell),
            min(len(outcome.steps) for outcome in outcomes.values()),
            " ".join(states),
            " ".join(taints),
            *values,
        )


def _steps(table: TableDefinition, columns: Sequence[Column]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((table.step, *(column.step for column in columns))))


def _coordinates(data: ReportData, cell: Cell) -> Row:
    axes = (cell.axes.get(name) for name in _axes(data))
    return (cell.engine, cell.version, cell.variant, cell.host, *axes)


def _measurement_rows(data: ReportData) -> Iterator[Row]:
    variants = [variant.name for variant in data.workload.variants]
    for cell in ordered_cells(data.cells, ("engine", "version", "variant", "host"), variants):
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
