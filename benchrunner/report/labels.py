"""Words on charts that all kinds of them share. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchrunner.report.format import fill

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchrunner.definitions import ChartDefinition, Metric
    from benchrunner.report.input import ReportData
    from benchrunner.report.view import SeriesView


def axis_label(metric: Metric) -> str:
    """Return a metric's title with its unit, unless the title already says it."""
    plain = metric.title.replace("sec", "s").replace("ops", "op").replace("mb", "MB").lower()
    unit = metric.unit.replace("ops", "op")
    return metric.title if unit.lower() in plain else f"{metric.title} ({metric.unit})"


def chart_title(data: ReportData, chart: ChartDefinition, name: str, what: str) -> str:
    """Return the title that the workload gives a chart, else what it shows of what."""
    return fill(chart.title, data.params, {}) if chart.title else f"{name}: {what}"


def taint_note(lines: Iterable[SeriesView]) -> tuple[str, ...]:
    """Return the note below a chart that has hollow marks."""
    tainted = any(point.tainted for line in lines for point in line.points)
    return ("Hollow: a number with a footnote in the table.",) if tainted else ()
