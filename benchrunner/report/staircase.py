"""The staircase: a figure against the size of a block of memory, with the caches' sizes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchrunner.report.format import median
from benchrunner.report.labels import axis_label, chart_title, taint_note
from benchrunner.report.lines import blocks, cache_bytes
from benchrunner.report.lookup import find_value, place_text, step_outcome
from benchrunner.report.order import ordered_cells
from benchrunner.report.tables import find_metric
from benchrunner.report.view import ChartView, PointView, SeriesView
from benchrunner.units import about_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchrunner.definitions import ChartDefinition
    from benchrunner.report.families import Family
    from benchrunner.report.input import Cell, ReportData

_KINDS = ("L1d", "L2", "L3")


def staircase(data: ReportData, chart: ChartDefinition, family: Family) -> ChartView:
    """Return the chart: a line for each host and pattern of phases."""
    metric = find_metric(data.metrics, chart.metric, f"A chart of step {chart.step!r}")
    cells = ordered_cells(data.cells, ("host", "server", "version", "variant"), data.workload)
    lines: list[SeriesView] = []
    for color, cell in enumerate(cells):
        for dash, pattern in enumerate(chart.phases):
            points = _points(cell, family, chart.metric, pattern)
            place = place_text(cell) if len(cells) > 1 else ""
            label = " ".join(filter(None, (place, _word(pattern))))
            if points:
                lines.append(SeriesView(label, points, color=color, dash=dash))
    title = chart_title(data, chart, family.name, f"{metric.title} by block size")
    edges = _edges(data, cells)
    drawn = ", ".join(f"{name} {about_size(int(size))}" for name, size in edges)
    return ChartView(
        name="",
        title=title,
        kind="staircase",
        metrics=(chart.metric,),
        x_label="block of memory",
        y_label=axis_label(metric),
        categories=(),
        series=tuple(lines),
        alt=f"{title}: {', '.join(line.label for line in lines)}",
        notes=((f"Dotted: sizes of the caches ({drawn}).",) if drawn else ()) + taint_note(lines),
        edges=edges,
    )


def _points(cell: Cell, family: Family, metric: str, pattern: str) -> tuple[PointView, ...]:
    outcome = step_outcome(cell, family.first.name)
    found: dict[float, list[float]] = {}
    for step in outcome.steps:
        for phase, size in blocks(step, pattern).items():
            value = find_value(step, metric, phase, None)
            found.setdefault(size, []).extend([value] if value is not None else [])
    medians = {size: median(values) for size, values in found.items()}
    return tuple(
        PointView(size, value, tainted=bool(outcome.taints))
        for size, value in sorted(medians.items())
        if value is not None
    )


def _word(pattern: str) -> str:
    """``latency/huge/*`` -> ``huge pages``."""
    parts = pattern.split("/")
    return f"{parts[1]} pages" if len(parts) > 2 else pattern


def _edges(data: ReportData, cells: Sequence[Cell]) -> tuple[tuple[str, float], ...]:
    """The sizes of the hosts' caches, named by host where there are several."""
    hosts = dict.fromkeys(cell.host for cell in cells)
    found: list[tuple[str, float]] = []
    for host in hosts:
        caches = (data.host_facts.get(host, {}).get("cpu") or {}).get("caches") or {}
        for kind in _KINDS:
            size = caches.get(kind)
            if size:
                name = f"{kind} {host}" if len(hosts) > 1 else kind
                found.append((name, float(cache_bytes(size))))
    return tuple(found)
