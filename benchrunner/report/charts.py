"""Charts of a page as data: a chart definition and the cells of a sweep become a view. Pure.

A chart shows one metric id; only the percentiles of one latency stand side by side.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from benchrunner.errors import ConfigurationError
from benchrunner.report.families import find_family
from benchrunner.report.format import median, metric_text, version_key
from benchrunner.report.labels import axis_label, chart_title, taint_note
from benchrunner.report.lookup import part_text, place_text, step_outcome, values_of, varying
from benchrunner.report.order import ordered_cells
from benchrunner.report.staircase import staircase
from benchrunner.report.tables import find_metric
from benchrunner.report.value_charts import by_value, columns, stacked_times
from benchrunner.report.view import ChartView, PointView, SeriesView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchrunner.definitions import ChartDefinition, Metric, Step
    from benchrunner.report.input import Cell, ReportData, StepView

PERCENTILES = {
    "p50_us": "p50",
    "p75_us": "p75",
    "p99_us": "p99",
    "p99_9_us": "p99.9",
    "p99_99_us": "p99.99",
}
NEWEST_OVER_TIME = 4
"""Versions drawn over time: more curves than these hide each other."""
POINTS_OVER_TIME = 240
"""Points of one curve; longer ones are averaged over equal spans."""


def build_chart(
    data: ReportData, chart: ChartDefinition, name: str, engine: str = ""
) -> ChartView | None:
    """Return the chart, of one engine if asked, ``None`` when no cell has a number for it."""
    if engine:
        data = replace(data, cells=tuple(cell for cell in data.cells if cell.engine == engine))
    view = _built(data, chart)
    return replace(view, name=name) if any(line.points for line in view.series) else None


def _built(data: ReportData, chart: ChartDefinition) -> ChartView:
    where = f"A chart of step {chart.step!r}"
    family = find_family(data.workload, chart.step, where)
    if chart.kind == "by-value":
        return by_value(data, chart, family)
    if chart.kind == "columns":
        return columns(data, chart, family)
    if chart.kind == "stacked-times":
        return stacked_times(data, chart, family)
    if chart.kind == "staircase":
        return staircase(data, chart, family)
    if family.parameter:
        raise ConfigurationError(
            f"{where} is a {chart.kind} chart, which cannot show several values of "
            f"{family.parameter}.",
            f"use by-value or columns, or name one step: {', '.join(family.steps)}",
        )
    step, metric = family.first, find_metric(data.metrics, chart.metric, where)
    if data.cells and chart.series not in _series_names(data):
        raise ConfigurationError(
            f"{where} draws one line for each {chart.series!r}, which tells no cells apart.",
            "use one of " + ", ".join(_series_names(data)),
        )
    if chart.kind == "by-version":
        return _by_version(data, chart, step, metric)
    if chart.kind == "percentiles":
        return _percentiles(data, chart, step)
    return _over_time(data, chart, step, metric)


def _series_names(data: ReportData) -> tuple[str, ...]:
    axes = (name for cell in data.cells for name in cell.axes)
    return tuple(dict.fromkeys(("variant", "host", "engine", *axes)))


def _oldest_first(data: ReportData) -> tuple[Cell, ...]:
    keys = ("version", "variant", *varying(data.cells))
    return ordered_cells(data.cells, keys, data.workload)


def _groups(data: ReportData, key: str, *, with_version: bool) -> dict[str, list[Cell]]:
    """Return cells by line of the chart: what differs besides the version never shares a line."""
    cells = _oldest_first(data)
    variants = len({cell.variant for cell in cells}) > 1
    names = [key, *(["variant"] if variants else []), *varying(cells)]
    names = list(dict.fromkeys([*(["version"] if with_version else []), *names]))
    groups: dict[str, list[Cell]] = {}
    order = ("version", key) if with_version else (key,)
    for cell in ordered_cells(cells, order, data.workload):
        label = " ".join(part_text(cell, name) for name in names if part_text(cell, name))
        groups.setdefault(label, []).append(cell)
    return groups


def _versions(cells: Sequence[Cell]) -> tuple[str, ...]:
    return tuple(sorted({cell.version for cell in cells}, key=version_key))


def _point(cell: Cell, step: Step, metric_id: str, x: float) -> tuple[PointView | None, str]:
    """Return a cell's point, or why it has none."""
    outcome = step_outcome(cell, step.name)
    value = median(values_of(outcome.steps, metric_id, step.phase, None))
    if value is not None:
        return PointView(x, value, tainted=bool(outcome.taints)), ""
    return None, "not measured" if outcome.steps else outcome.label


def _by_version(data: ReportData, chart: ChartDefinition, step: Step, metric: Metric) -> ChartView:
    versions = _versions(data.cells)
    absent: list[str] = []
    lines: list[SeriesView] = []
    for place, (label, cells) in enumerate(_groups(data, chart.series, with_version=False).items()):
        points: list[PointView] = []
        for cell in cells:
            point, why = _point(cell, step, chart.metric, versions.index(cell.version))
            points += [point] if point else []
            absent += [] if point else [f"{cell.version} {label} ({why})"]
        if points:
            lines.append(SeriesView(label, tuple(points), color=place))
    notes = [f"No number: {', '.join(absent)}."] if absent else []
    title = chart_title(data, chart, step.name, f"{metric.title} by version")
    return ChartView(
        name="",
        title=title,
        kind="by-version",
        metrics=(chart.metric,),
        x_label="version, oldest to newest" if len(versions) > 1 else "version",
        y_label=axis_label(metric),
        categories=versions,
        series=tuple(lines),
        alt=_alt(title, lines, metric, versions),
        notes=(*notes, *taint_note(lines)),
    )


def _alt(title: str, lines: Sequence[SeriesView], metric: Metric, versions: Sequence[str]) -> str:
    """Return the chart in words: first and last number of each line."""
    parts = []
    for line in lines:
        ends = dict.fromkeys((line.points[0], line.points[-1]))
        told = [f"{versions[int(p.x)]}: {metric_text(p.y, metric)}" for p in ends]
        parts.append(f"{line.label} {', '.join(told)}")
    return f"{title}. {'; '.join(parts)}."


def _percentiles(data: ReportData, chart: ChartDefinition, step: Step) -> ChartView:
    known = {
        name: find_metric(data.metrics, name, f"A chart of step {step.name!r}")
        for name in PERCENTILES
    }
    units = {metric.unit for metric in known.values()}
    if len(units) != 1:
        raise ConfigurationError(
            f"The percentiles are defined in different units: {', '.join(sorted(units))}.",
            "give p50_us, p75_us, p99_us, p99_9_us and p99_99_us one unit in metrics.toml",
        )
    versions = _versions(data.cells)
    shown = tuple(dict.fromkeys((versions[-1], versions[0]))) if versions else ()
    lines: list[SeriesView] = []
    places = _places(data, chart.series)
    for label, cells in _groups(data, chart.series, with_version=True).items():
        cell = cells[0]
        if cell.version in shown:
            found = (_point(cell, step, name, x)[0] for x, name in enumerate(PERCENTILES))
            color = places.index(_place(cell, chart.series))
            dash = shown.index(cell.version)
            lines.append(SeriesView(label, tuple(p for p in found if p), color, dash))
    title = chart_title(data, chart, step.name, "latency percentiles")
    ends = "newest and oldest version" if len(shown) > 1 else "version"
    return ChartView(
        name="",
        title=title,
        kind="percentiles",
        metrics=tuple(PERCENTILES),
        x_label="percentile",
        y_label=f"latency ({units.pop()}, log scale)",
        categories=tuple(PERCENTILES.values()),
        series=tuple(line for line in lines if line.points),
        alt=f"{title} of the {ends}: {', '.join(shown)}.",
        notes=taint_note(lines),
    )


def _place(cell: Cell, key: str) -> tuple[str, str]:
    """What a line is told apart by beside its version: numbers of two hosts never look alike."""
    return part_text(cell, key), place_text(cell)


def _places(data: ReportData, key: str) -> list[tuple[str, str]]:
    return list(dict.fromkeys(_place(cell, key) for cell in _ranked(data, key)))


def _ranked(data: ReportData, key: str) -> tuple[Cell, ...]:
    return ordered_cells(data.cells, (key,), data.workload)


def _over_time(data: ReportData, chart: ChartDefinition, step: Step, metric: Metric) -> ChartView:
    versions = _versions(data.cells)
    shown = versions[-NEWEST_OVER_TIME:][::-1]
    places = _places(data, chart.series)
    lines: list[SeriesView] = []
    for label, cells in _groups(data, chart.series, with_version=True).items():
        cell = cells[0]
        steps = step_outcome(cell, step.name).steps
        points = thinned(_curve(steps, chart.metric)) if cell.version in shown else ()
        if points:
            color = shown.index(cell.version)
            dash = places.index(_place(cell, chart.series))
            lines.append(SeriesView(label, points, color, dash))
    title = chart_title(data, chart, step.name, f"{metric.title} over time")
    notes = []
    if len(versions) > len(shown):
        notes.append(f"The newest {len(shown)} of {len(versions)} versions are drawn.")
    if any(len(line.points) == 1 for line in lines):
        notes.append("A mark without a curve: the step ended within one interval of its prints.")
    return ChartView(
        name="",
        title=title,
        kind="over-time",
        metrics=(chart.metric,),
        x_label="time since the step began (s)",
        y_label=axis_label(metric),
        categories=(),
        series=tuple(lines),
        alt=f"{title}: {', '.join(line.label for line in lines)}.",
        notes=tuple(notes),
    )


def _curve(steps: Sequence[StepView], metric_id: str) -> tuple[tuple[float, float], ...]:
    """Return the curve of the first repetition that has one."""
    curves = (step.series.get(metric_id, ()) for step in steps)
    return next((curve for curve in curves if curve), ())


def thinned(curve: Sequence[tuple[float, float]]) -> tuple[PointView, ...]:
    """Return at most ``POINTS_OVER_TIME`` points: means over equally many neighbours."""
    span = -(-len(curve) // POINTS_OVER_TIME) or 1
    parts = [curve[start : start + span] for start in range(0, len(curve), span)]
    return tuple(
        PointView(sum(t for t, _ in part) / len(part), sum(v for _, v in part) / len(part))
        for part in parts
    )
