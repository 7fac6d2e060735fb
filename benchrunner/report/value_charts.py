"""Charts that compare engines: over the values of a parameter, and the times of one step. Pure.

Variants stand beside each other: as panels with shared axes, or as neighbouring columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchrunner.errors import ConfigurationError
from benchrunner.report.families import Family, Line, lines_of
from benchrunner.report.format import median
from benchrunner.report.labels import axis_label, chart_title, taint_note
from benchrunner.report.lookup import part_text, step_outcome, values_of, varying
from benchrunner.report.numbers import clock_text
from benchrunner.report.order import ordered_cells, several_versions
from benchrunner.report.tables import find_metric
from benchrunner.report.view import ChartView, PanelView, PointView, SeriesView
from benchrunner.units import format_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchrunner.definitions import ChartDefinition, Metric
    from benchrunner.report.input import Cell, ReportData

COLORS = 7
"""Colours of the palette; lines beyond them have another dash as well."""
TIMES: Mapping[str, str] = {"wall_s": "Wall", "cpu_user_s": "User", "cpu_sys_s": "Sys"}
"""The parts of a stacked-times chart: wall time, and beside it the CPU times on each other."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A number of one line, or why there is none."""

    line: Line
    label: str
    variant: str
    value: float | None
    tainted: bool
    why: str


def by_value(data: ReportData, chart: ChartDefinition, family: Family) -> ChartView:
    """Return lines over the family's values: one for each engine, a panel for each variant."""
    _check_family(chart, family)
    metric = find_metric(data.metrics, chart.metric, f"A chart of step {chart.step!r}")
    found = _all(data, family, chart.metric)
    order = list(dict.fromkeys(one.label for one in found))
    if "y" in chart.log:
        found = [_above_zero(one) for one in found]
    panels: list[PanelView] = []
    for variant in _variants(data):
        own = [one for one in found if one.variant == variant]
        lines = [_line(order, label, own, family) for label in order]
        panels.append(PanelView(variant, tuple(line for line in lines if line.points)))
    series = tuple(line for panel in panels for line in panel.series)
    title = chart_title(data, chart, family.name, f"{metric.title} by {_words(family)}")
    told = "; ".join(f"{panel.title}: {_ends(panel.series, metric, family)}" for panel in panels)
    return ChartView(
        name="",
        title=title,
        kind="by-value",
        metrics=(chart.metric,),
        x_label=_words(family),
        y_label=axis_label(metric),
        categories=tuple(family.members),
        series=series,
        alt=f"{title}. {told}.",
        notes=(*_absent(found, family), *taint_note(series)),
        panels=tuple(panels),
        log=tuple(chart.log),
    )


def columns(data: ReportData, chart: ChartDefinition, family: Family) -> ChartView:
    """Return columns at each value: variants beside each other, a second metric on the right."""
    _check_family(chart, family)
    where = f"A chart of step {chart.step!r}"
    ids = [chart.metric, *([chart.right] if chart.right else [])]
    metrics = [find_metric(data.metrics, name, where) for name in ids]
    series: list[SeriesView] = []
    absent: list[_Found] = []
    for color, (name, metric) in enumerate(zip(ids, metrics, strict=True)):
        found = _all(data, family, name)
        absent += found if color == 0 else []
        several = len({one.label for one in found}) > 1
        sides = dict.fromkeys((one.variant, one.label) for one in found)
        for dash, (variant, label) in enumerate(sides):
            own = [one for one in found if (one.variant, one.label) == (variant, label)]
            points = _points(own, list(family.members))
            said = " ".join(filter(None, (label if several else "", variant)))
            series.append(SeriesView(f"{metric.title}, {said}", points, color, dash, color == 1))
    engines = dict.fromkeys(_engine(data, cell) for cell in data.cells)
    shown = " and ".join(metric.title for metric in metrics)
    what = f"{shown} by {_words(family)}"
    title = chart_title(data, chart, ", ".join(engines) or family.name, what)
    told = "; ".join(
        _told(line, metrics[int(line.right)], tuple(family.members))
        for line in series
        if line.points
    )
    return ChartView(
        name="",
        title=title,
        kind="columns",
        metrics=tuple(ids),
        x_label=_words(family),
        y_label=axis_label(metrics[0]),
        categories=tuple(family.members),
        series=tuple(line for line in series if line.points),
        alt=f"{title}. {told}.",
        notes=(*_absent(absent, family), *taint_note(series)),
        right_label=axis_label(metrics[1]) if chart.right else "",
    )


def stacked_times(data: ReportData, chart: ChartDefinition, family: Family) -> ChartView:
    """Return for each engine and variant wall time, and beside it user on system CPU time."""
    where = f"A chart of step {chart.step!r}"
    if family.parameter:
        raise ConfigurationError(
            f"{where} is a stacked-times chart, which cannot show several values of "
            f"{family.parameter}.",
            f"name one step: {', '.join(family.steps)}",
        )
    order: list[str] = []
    series: list[SeriesView] = []
    absent: list[_Found] = []
    for color, (name, word) in enumerate(TIMES.items()):
        find_metric(data.metrics, name, where)
        found = _all(data, family, name)
        order = list(dict.fromkeys(one.label for one in found))
        absent += found if color == 0 else []
        for dash, variant in enumerate(_variants(data)):
            own = [one for one in found if one.variant == variant]
            points = tuple(
                PointView(order.index(one.label), one.value, one.tainted)
                for one in own
                if one.value is not None
            )
            series.append(SeriesView(f"{word}, {variant}", points, color, dash))
    places = {int(point.x) for line in series for point in line.points}
    shown = [label for place, label in enumerate(order) if place in places]
    title = chart_title(data, chart, family.name, "wall time, user and system CPU time")
    return ChartView(
        name="",
        title=title,
        kind="stacked-times",
        metrics=tuple(TIMES),
        x_label="time",
        y_label="",
        categories=tuple(shown),
        series=tuple(_moved(line, order, shown) for line in series if line.points),
        alt=f"{title}. {_walls(series, order)}.",
        notes=(*_absent(absent, family), *taint_note(series)),
    )


def _all(data: ReportData, family: Family, metric: str) -> list[_Found]:
    """The metric's number in each cell at each value, engines in the page's order.

    A label is what tells lines apart besides the variant: engine, version and host where needed.
    """
    names = [name for name in varying(data.cells) if name != "engine"]
    names += ["version"] if several_versions(data.cells) else []
    keys = ("engine", "version", *varying(data.cells), "variant")
    found: list[_Found] = []
    for line in lines_of(ordered_cells(data.cells, keys, data.workload), family):
        parts = [_engine(data, line.cell), *(part_text(line.cell, name) for name in names)]
        found.append(_find(line, " ".join(filter(None, parts)), family, metric))
    return found


def _check_family(chart: ChartDefinition, family: Family) -> None:
    if not family.parameter:
        raise ConfigurationError(
            f"A {chart.kind} chart is over the values of a step with each, which "
            f"{chart.step!r} is not.",
            "name a step with each, or use by-version",
        )


def _engine(data: ReportData, cell: Cell) -> str:
    return data.engine_titles.get(cell.engine, cell.engine)


def _variants(data: ReportData) -> tuple[str, ...]:
    cells = ordered_cells(data.cells, ("variant",), data.workload)
    return tuple(dict.fromkeys(cell.variant for cell in cells))


def _words(family: Family) -> str:
    return family.parameter.replace("_", " ").lower()


def _find(line: Line, label: str, family: Family, metric: str) -> _Found:
    outcome = step_outcome(line.cell, family.step_of(line.value))
    value = median(values_of(outcome.steps, metric, family.first.phase, None))
    why = "" if value is not None else "not measured" if outcome.steps else outcome.label
    return _Found(line, label, line.cell.variant, value, bool(outcome.taints), why)


def _above_zero(one: _Found) -> _Found:
    """A logarithmic axis has no place for zero: it is told in words."""
    if one.value is None or one.value > 0:
        return one
    return _Found(one.line, one.label, one.variant, None, one.tainted, "0")


def _line(order: Sequence[str], label: str, found: Iterable[_Found], family: Family) -> SeriesView:
    own = [one for one in found if one.label == label]
    place = order.index(label)
    return SeriesView(label, _points(own, list(family.members)), place, place // COLORS)


def _points(found: Iterable[_Found], values: Sequence[str]) -> tuple[PointView, ...]:
    return tuple(
        PointView(values.index(one.line.value), one.value, one.tainted)
        for one in found
        if one.value is not None
    )


def _moved(line: SeriesView, order: Sequence[str], shown: Sequence[str]) -> SeriesView:
    """The same line with places among the engines that have numbers."""
    points = tuple(
        PointView(shown.index(order[int(point.x)]), point.y, point.tainted)
        for point in line.points
        if order[int(point.x)] in shown
    )
    return SeriesView(line.label, points, line.color, line.dash)


def _absent(found: Sequence[_Found], family: Family) -> tuple[str, ...]:
    """Name what has no number, all values of a line at once where they have one reason."""
    groups: dict[tuple[str, str], list[_Found]] = {}
    for one in found:
        groups.setdefault((one.label, one.variant), []).append(one)
    variants = {one.variant for one in found}
    said: dict[tuple[str, str], set[str]] = {}
    for (label, variant), members in groups.items():
        reasons: dict[str, list[str]] = {}
        for one in members:
            if one.value is None:
                reasons.setdefault(one.why, []).append(one.line.value)
        for why, values in reasons.items():
            at = f" at {', '.join(values)} {_words(family)}" if len(values) < len(members) else ""
            said.setdefault((label, f"{at} ({why})"), set()).add(variant)
    texts = []
    for (label, text), having in said.items():
        where = "" if having == variants else f" {' and '.join(sorted(having))}"
        texts.append(f"{label}{where}{text}")
    return (f"No number: {'; '.join(texts)}.",) if texts else ()


def _ends(lines: Iterable[SeriesView], metric: Metric, family: Family) -> str:
    return ", ".join(_told(line, metric, tuple(family.members)) for line in lines) or "no number"


def _told(line: SeriesView, metric: Metric, values: Sequence[str]) -> str:
    """A line in words: its first and its last number."""
    ends = dict.fromkeys((*line.points[:1], *line.points[-1:]))
    told = (
        f"{values[int(point.x)]}: {format_value(point.y, metric.unit, metric.digits)}"
        for point in ends
    )
    return f"{line.label} {', '.join(told)}"


def _walls(series: Iterable[SeriesView], order: Sequence[str]) -> str:
    walls = (line for line in series if line.color == 0)
    return "; ".join(
        f"{line.label}: "
        + ", ".join(f"{order[int(point.x)]} {clock_text(point.y)}" for point in line.points)
        for line in walls
    )
