"""Draw a chart view as SVG or PNG bytes with matplotlib. The one place that knows how charts look.

The same view gives the same bytes: no dates, fixed identifiers, no global state.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Literal

from benchrunner.report import draw_engines, draw_staircase
from benchrunner.report.looks import DASHES, HEADROOM, MARKERS, WHOLE_FROM, color_of, tick

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from benchrunner.report.view import ChartView, PointView

SIZE_INCHES = (8.0, 3.8)
PNG_DOTS_PER_INCH = 160
MANY_CATEGORIES = 8
_POINTS_PER_INCH = 72
_CHARACTER_EM = 0.62
"""A generous average of the fonts below."""
_LEGEND_GAPS_EM = 3.2
"""Between a handle and its label, and between two columns."""
_ENGINES = ("by-value", "columns", "stacked-times")
STYLE: Any = {
    "svg.hashsalt": "benchrunner",
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 10.5,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "lines.linewidth": 1.8,
    "lines.markersize": 6,
    "figure.facecolor": "white",
}


def draw(chart: ChartView, file_format: Literal["svg", "png"]) -> bytes:
    """Return the chart as the bytes of an image file."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        if chart.kind in _ENGINES:
            figure = Figure(figsize=draw_engines.size_inches(chart), layout="constrained")
            _engines(figure, chart)
        elif chart.kind == "staircase":
            figure = Figure(figsize=SIZE_INCHES, layout="constrained")
            draw_staircase.staircase(figure, chart)
        else:
            figure = Figure(figsize=SIZE_INCHES, layout="constrained")
            _versions(figure, chart)
        target = io.BytesIO()
        metadata = {"Date": None, "Creator": None} if file_format == "svg" else {"Software": None}
        figure.savefig(target, format=file_format, dpi=PNG_DOTS_PER_INCH, metadata=metadata)
    return target.getvalue()


def _versions(figure: Figure, chart: ChartView) -> None:
    axes = figure.add_subplot()
    if chart.kind == "over-time":
        _curves(axes, chart)
    elif chart.kind == "by-version" and len(chart.categories) == 1:
        _bars(axes, chart)
    else:
        _lines(axes, chart)
    _labels(axes, chart)
    if len(chart.series) > 1:
        columns = _legend_columns([series.label for series in chart.series], SIZE_INCHES[0])
        figure.legend(loc="outside lower left", ncols=columns)


def _engines(figure: Figure, chart: ChartView) -> None:
    if chart.kind == "by-value":
        draw_engines.panels(figure, chart)
        entries = draw_engines.handles(chart)
    else:
        if chart.kind == "columns":
            draw_engines.columns(figure, chart)
        else:
            draw_engines.stacked_times(figure, chart)
        entries = draw_engines.boxes(chart)
    if len(entries) > 1:
        labels = [str(entry.get_label()) for entry in entries]
        columns = _legend_columns(labels, float(figure.get_figwidth()), most=6)
        if chart.kind != "by-value":
            columns = _even(columns, len({series.dash for series in chart.series}), len(labels))
        figure.legend(handles=entries, loc="outside lower left", ncols=columns)


def _even(columns: int, variants: int, labels: int) -> int:
    """As many columns as there are metrics: a legend fills them one after the other."""
    metrics = -(-labels // variants)
    return metrics if metrics <= columns else columns


def _legend_columns(labels: Sequence[str], width_inches: float, most: int = 4) -> int:
    """As many columns as fit beside each other; what does not fit would be cut off.

    Widths are in ems: a column is its handle, the gaps around it, and its longest label.
    """
    width = width_inches * _POINTS_PER_INCH / STYLE["font.size"]
    column = STYLE["legend.handlelength"] + _LEGEND_GAPS_EM
    column += _CHARACTER_EM * max(map(len, labels))
    return max(1, min(most, len(labels), int(width / column)))


def _lines(axes: Axes, chart: ChartView) -> None:
    """One line with markers for each series; a line is broken where a number is missing."""
    for series in chart.series:
        color = color_of(series.color)
        marker = MARKERS[series.color % len(MARKERS)]
        by_place = {point.x: point.y for point in series.points}
        places = range(len(chart.categories))
        axes.plot(
            list(places),
            [by_place.get(place, float("nan")) for place in places],
            color=color,
            linestyle=DASHES[series.dash % len(DASHES)],
            gid=f"line-{series.label}",
        )
        for tainted in (False, True):
            points = [point for point in series.points if point.tainted is tainted]
            if points:
                _markers(axes, points, color, marker, f"markers-{series.label}-{tainted}")
        axes.plot(
            [],
            [],
            color=color,
            marker=marker,
            linestyle=DASHES[series.dash % len(DASHES)],
            label=series.label,
        )


def _markers(axes: Axes, points: list[PointView], color: str, marker: str, gid: str) -> None:
    hollow = points[0].tainted
    axes.plot(
        [point.x for point in points],
        [point.y for point in points],
        linestyle="none",
        marker=marker,
        markeredgecolor=color,
        markerfacecolor="white" if hollow else color,
        markeredgewidth=1.6,
        gid=gid,
    )


def _bars(axes: Axes, chart: ChartView) -> None:
    """A single version: one bar for each series, hollow when tainted."""
    drawn = [series for series in chart.series if series.points]
    for place, series in enumerate(drawn):
        point = series.points[0]
        axes.bar(
            place,
            point.y,
            width=0.6,
            label=series.label,
            edgecolor=color_of(series.color),
            facecolor="white" if point.tainted else color_of(series.color),
            linewidth=1.6,
            gid=f"bar-{series.label}",
        )
        axes.annotate(
            tick(point.y) if point.y < WHOLE_FROM else f"{point.y:,.0f}",
            (place, point.y),
            ha="center",
            va="bottom",
        )
    axes.set_xlim(-0.8, len(drawn) - 0.2)


def _curves(axes: Axes, chart: ChartView) -> None:
    for series in chart.series:
        axes.plot(
            [point.x for point in series.points],
            [point.y for point in series.points],
            color=color_of(series.color),
            linestyle=DASHES[series.dash % len(DASHES)],
            linewidth=1.3,
            marker="o" if len(series.points) == 1 else None,
            label=series.label,
            gid=f"line-{series.label}",
        )
    axes.set_xlim(left=0)


def _labels(axes: Axes, chart: ChartView) -> None:
    axes.set_title(chart.title)
    axes.set_ylabel(chart.y_label)
    axes.set_xlabel(chart.x_label)
    if chart.kind == "percentiles":
        axes.set_yscale("log")
        axes.grid(visible=True, which="minor", linewidth=0.4)
        axes.yaxis.set_major_formatter(lambda value, _place: f"{value:g}")
    else:
        highest = max(point.y for series in chart.series for point in series.points)
        axes.set_ylim(0, highest * HEADROOM or 1)
        axes.yaxis.set_major_formatter(lambda value, _place: tick(value))
    if chart.kind == "over-time":
        return
    if chart.kind == "by-version" and len(chart.categories) == 1:
        axes.set_xticks([len([s for s in chart.series if s.points]) / 2 - 0.5], chart.categories)
        return
    crowded = len(chart.categories) > MANY_CATEGORIES
    axes.set_xticks(
        range(len(chart.categories)),
        chart.categories,
        rotation=45 if crowded else 0,
        ha="right" if crowded else "center",
    )
    axes.set_xlim(-0.4, len(chart.categories) - 0.6)
