"""Tables of named figures: one row for each line of a published page, columns for each host. Pure.

A value is the median over trials; its spread is half the distance from lowest to highest.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from benchrunner.definitions import LineColumn
from benchrunner.report.families import find_family
from benchrunner.report.format import fill, median, metric_text
from benchrunner.report.labels import axis_label
from benchrunner.report.lookup import (
    Outcome,
    find_value,
    has_servers,
    place_text,
    step_outcome,
)
from benchrunner.report.marks import marks_of
from benchrunner.report.order import ordered_cells
from benchrunner.report.view import DASH, CellView, ColumnView, RowView, TableView
from benchrunner.steadiness import steady_at
from benchrunner.units import parse_size_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchrunner.definitions import LineDefinition, LinesDefinition, Workload
    from benchrunner.report.footnotes import Footnotes
    from benchrunner.report.input import Cell, ReportData, StepView

CACHES = {"L1": "L1d", "L2": "L2", "L3": "L3"}
"""Level as a line names it -> as the host's facts do."""
_HALF = 0.5
"""Of a cache: what is larger has to share it with everything else that runs."""
_NO_RAM = (
    "RAM: no block of at least twice the largest cache was measured. Remedy: --set MAX_BLOCK=4GiB."
)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line's value of one column on one host."""

    metric: str
    values: tuple[float, ...]
    """One for each trial that has it."""

    @property
    def spread_pct(self) -> float | None:
        """Half the distance from the lowest to the highest, in percent of the median."""
        middle = median(self.values)
        if len(self.values) < 2 or not middle:
            return None
        return 50.0 * (max(self.values) - min(self.values)) / middle


def line_columns(table: LinesDefinition) -> tuple[LineColumn, ...]:
    """The columns of a table as definitions."""
    return tuple(
        entry if isinstance(entry, LineColumn) else LineColumn(any=[entry])
        for entry in table.columns
    )


def line_metrics(workload: Workload) -> tuple[str, ...]:
    """Every metric that tables of lines show."""
    found = (m for table in workload.page.lines for c in line_columns(table) for m in c.any)
    return tuple(dict.fromkeys(found))


def line_tables(
    data: ReportData, group: str, notes: Footnotes, anchors: Mapping[str, str]
) -> Iterator[TableView]:
    """The tables of one section."""
    cells = _cells(data)
    for number, table in enumerate(data.workload.page.lines):
        if table.group != group:
            continue
        shown = [(line, _figures(data, table, line, cells)) for line in table.lines]
        spread = any(f.spread_pct is not None for _, row in shown for one in row for f in one)
        rows = [
            _row(data, table, line, row, cells, notes, spread=spread)
            for line, row in shown
            if not (line.optional and _was_skipped(data, cells, line))
        ]
        columns = _heads(data, table, cells, anchors, spread=spread)
        yield TableView(f"{group}-lines-{number}", table.title, columns, tuple(rows))


def line_rows(data: ReportData) -> Iterator[tuple[object, ...]]:
    """Every figure with full precision, for the CSV file."""
    cells = _cells(data)
    for table in data.workload.page.lines:
        for line in table.lines:
            title = fill(line.title, data.params, {})
            for cell, figures in zip(cells, _figures(data, table, line, cells), strict=True):
                state = _outcome(data, cell, line)
                place = (cell.host, cell.server) if has_servers(cells) else (cell.host,)
                for figure in figures:
                    metric = data.metrics[figure.metric]
                    low, high = min(figure.values, default=None), max(figure.values, default=None)
                    yield (
                        table.group, table.title, title, *place, figure.metric, metric.title,
                        metric.unit, len(figure.values), median(figure.values), low, high,
                        figure.spread_pct, line.published,
                        "ok" if state and state.steps else state.label if state else "",
                    )  # fmt: skip


def _cells(data: ReportData) -> tuple[Cell, ...]:
    """What ran, beside each other: a host each, unless servers, versions or variants differ too."""
    return ordered_cells(data.cells, ("host", "server", "version", "variant"), data.workload)


def _outcome(data: ReportData, cell: Cell, line: LineDefinition) -> Outcome | None:
    if not line.step:
        return None
    find_family(data.workload, line.step, f"The line {line.title!r}")
    return step_outcome(cell, line.step)


def _figures(
    data: ReportData, table: LinesDefinition, line: LineDefinition, cells: Sequence[Cell]
) -> list[list[Figure]]:
    """Cell by cell, column by column."""
    found: list[list[Figure]] = []
    for cell in cells:
        outcome = _outcome(data, cell, line)
        steps = outcome.steps if outcome else ()
        caches = (data.host_facts.get(cell.host, {}).get("cpu") or {}).get("caches") or {}
        found.append([_figure(data, line, c, steps, caches) for c in line_columns(table)])
    return found


def _figure(
    data: ReportData,
    line: LineDefinition,
    column: LineColumn,
    steps: Sequence[StepView],
    caches: Mapping[str, str],
) -> Figure:
    own = next((s.phase for s in data.workload.steps if s.name == line.step), None)
    for metric in column.any:
        values: list[float] = []
        for step in steps:
            phase = line.phase or column.phase or own
            if line.cache:
                phase = phase_for_cache(step, column.phase, line.cache, caches)
            value = _value(step, metric, phase) if phase or not line.cache else None
            values += [value] if value is not None else []
        if values:
            return Figure(metric, tuple(values))
    return Figure(column.any[0], ())


def _value(step: StepView, metric: str, phase: str | None) -> float | None:
    """A step's number whoever did the work: a line is of one role only (fio's reads or writes)."""
    found = find_value(step, metric, phase, None)
    if found is not None:
        return found
    places = {(p, r) for p, _, r, name in step.measurements if name == metric and p == phase}
    return find_value(step, metric, *places.pop()) if len(places) == 1 else None


def blocks(step: StepView, pattern: str) -> dict[str, float]:
    """Phases that fit a pattern, with the size of their block."""
    return {
        phase: value
        for (phase, _, _, metric), value in step.measurements.items()
        if metric == "block_bytes" and phase is not None and _fits(phase, pattern)
    }


def _fits(phase: str, pattern: str) -> bool:
    """Part by part: ``read/normal/*`` is not ``read/normal/1GiB/2-threads``."""
    return phase.count("/") == pattern.count("/") and fnmatchcase(phase, pattern)


def phase_for_cache(
    step: StepView, pattern: str, cache: str, caches: Mapping[str, str]
) -> str | None:
    """The phase whose block is the largest that fits well into a cache.

    That of RAM is the largest, which no cache may hold half of.
    """
    sizes = blocks(step, pattern)
    if cache == "RAM":
        largest = max((cache_bytes(size) for size in caches.values()), default=0)
        sizes = {phase: block for phase, block in sizes.items() if _HALF * block >= largest}
    else:
        most = cache_bytes(caches.get(CACHES[cache]) or caches.get(cache) or "0")
        sizes = {phase: block for phase, block in sizes.items() if block <= _HALF * most}
    return max(sizes, key=lambda phase: sizes[phase], default=None)


def cache_bytes(size: str) -> int:
    """A cache's size as the kernel writes it.

    >>> cache_bytes("48K"), cache_bytes("16M")
    (49152, 16777216)
    """
    return parse_size_bytes(f"{size}iB" if size[-1:] in ("K", "M", "G") else size)


# ---------------------------------------------------------------- layout


def _heads(
    data: ReportData,
    table: LinesDefinition,
    cells: Sequence[Cell],
    anchors: Mapping[str, str],
    *,
    spread: bool,
) -> tuple[ColumnView, ...]:
    heads = [ColumnView("")]
    for cell in cells:
        suffix = f" ({_named(cell, cells)})" if len(cells) > 1 else ""
        for column in line_columns(table):
            metric = data.metrics[column.any[0]]
            title = (column.title or axis_label(metric)) + suffix
            heads.append(
                ColumnView(title, column.any[0], anchors[column.any[0]], metric.unit, numeric=True)
            )
        heads += [ColumnView(f"± %{suffix}", numeric=True)] if spread else []
        heads += [ColumnView(f"Run{suffix}")] if _measured(table) else []
    return (*heads, *([ColumnView("Published")] if _published(table) else []))


def _measured(table: LinesDefinition) -> bool:
    return any(line.step for line in table.lines)


def _published(table: LinesDefinition) -> bool:
    return any(line.published for line in table.lines)


def _named(cell: Cell, cells: Sequence[Cell]) -> str:
    """What tells a cell from those beside it."""
    words = [
        str(getattr(cell, name))
        for name in ("version", "variant")
        if len({getattr(one, name) for one in cells}) > 1
    ]
    several = len({place_text(one) for one in cells}) > 1
    return " ".join([*([place_text(cell)] if several else []), *words]) or cell.host


def _was_skipped(data: ReportData, cells: Sequence[Cell], line: LineDefinition) -> bool:
    """Whether no host has the program."""
    outcomes = [_outcome(data, cell, line) for cell in cells]
    return all(outcome is None or outcome.label == "skipped" for outcome in outcomes)


def _row(
    data: ReportData,
    table: LinesDefinition,
    line: LineDefinition,
    figures: Sequence[Sequence[Figure]],
    cells: Sequence[Cell],
    notes: Footnotes,
    *,
    spread: bool,
) -> RowView:
    row = [CellView(fill(line.title, data.params, {}), wide=True)]
    tainted = failed = False
    for cell, own in zip(cells, figures, strict=True):
        outcome = _outcome(data, cell, line)
        marks = marks_of(outcome, notes) if outcome else ()
        if wide := _unsteady(data, own):
            marks += (notes.number(wide),)
            tainted = True
        if line.cache == "RAM" and outcome and outcome.steps and not own[0].values:
            marks += (notes.number(_NO_RAM),)
        row += _values(data, own, outcome, marks)
        if spread:
            row.append(_spread(own))
        trials = tuple((_word(t.repetition, cell), t.id) for t in cell.trials)
        if line.step:
            row.append(CellView("", trials=trials, step=line.step))
        elif _measured(table):
            row.append(CellView(""))
        tainted = tainted or bool(outcome and outcome.taints)
        failed = failed or bool(outcome and not outcome.steps)
    if _published(table):
        row.append(CellView(line.published or DASH, wide=True))
    return RowView(tuple(row), first=True, tainted=tainted, failed=failed)


def _unsteady(data: ReportData, figures: Sequence[Figure]) -> str:
    """Why the figures of a row are doubtful: those of its trials are too far from each other."""
    wanted = steady_at(data.workload, data.scale)
    pct = _spread_pct(figures)
    if wanted is None or pct is None or pct <= wanted.within_pct:
        return ""
    remedy = f" Remedy: {wanted.remedy}." if wanted.remedy else ""
    return f"unsteady: its trials spread by more than ± {wanted.within_pct:g} %.{remedy}"


def _word(repetition: int, cell: Cell) -> str:
    return "raw" if len(cell.trials) == 1 else str(repetition)


def _values(
    data: ReportData, figures: Sequence[Figure], outcome: Outcome | None, marks: tuple[int, ...]
) -> list[CellView]:
    """The cells of one host; the first carries the footnotes, or says why there are no numbers."""
    if outcome is not None and not outcome.steps:
        return [CellView(outcome.label, marks), *(CellView(DASH) for _ in figures[1:])]
    cells = []
    for figure in figures:
        metric = data.metrics[figure.metric]
        hover = ""
        if len(figure.values) > 1:
            low, high = (metric_text(f(figure.values), metric) for f in (min, max))
            hover = f"median of {len(figure.values)}, {low} to {high}"
        cells.append(CellView(metric_text(median(figure.values), metric), marks, hover))
        marks = ()
    return cells


def _spread_pct(figures: Sequence[Figure]) -> float | None:
    """That of the first figure that is measured: a row's figures come from the same runs."""
    return next((f.spread_pct for f in figures if f.values and f.metric != "block_bytes"), None)


def _spread(figures: Sequence[Figure]) -> CellView:
    pct = _spread_pct(figures)
    return CellView(DASH if pct is None else f"{pct:.1f}")
