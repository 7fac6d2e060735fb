"""Draw a chart view as SVG or PNG bytes with matplotlib. The one place that knows how charts look.

The same view gives the same bytes: no dates, fixed identifiers, no global state.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from benchrunner.report.view import ChartView, PointView, SeriesView

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, told apart by colour-blind readers; their yellow is lost on white."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[Any, ...] = ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
SIZE_INCHES = (8.0, 3.8)
PNG_DOTS_PER_INCH = 160
MANY_CATEGORIES = 8
HEADROOM = 1.12
_WHOLE_FROM = 100
_POINTS_PER_INCH = 72
_CHARACTER_EM = 0.62
"""A generous average of the fonts below."""
_LEGEND_GAPS_EM = 3.2
"""Between a handle and its label, and between two columns."""
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
        figure = Figure(figsize=SIZE_INCHES, layout="constrained")
        axes = figure.add_subplot()
        if chart.kind == "over-time":
            _curves(axes, chart)
        elif chart.kind == "by-version" and len(chart.categories) == 1:
            _bars(axes, chart)
        else:
            _lines(axes, chart)
        _labels(axes, chart)
        if len(chart.series) > 1:
            columns = _legend_columns([series.label for series in chart.series])
            figure.legend(loc="outside lower left", ncols=columns)
        target = io.BytesIO()
        metadata = {"Date": None, "Creator": None} if file_format == "svg" else {"Software": None}
        figure.savefig(target, format=file_format, dpi=PNG_DOTS_PER_INCH, metadata=metadata)
    return target.getvalue()


def _legend_columns(labels: Sequence[str]) -> int:
    """As many columns as fit beside each other; what does not fit would be cut off.

    Widths are in ems: a column is its handle, the gaps around it, and its longest label.
    """
    width = SIZE_INCHES[0] * _POINTS_PER_INCH / STYLE["font.size"]
    column = STYLE["legend.handlelength"] + _LEGEND_GAPS_EM
    column += _CHARACTER_EM * max(map(len, labels))
    return max(1, min(4, len(labels), int(width / column)))


def _color(series: SeriesView) -> str:
    return PALETTE[series.color % len(PALETTE)]


def _lines(axes: Axes, chart: ChartView) -> None:
    """One line with markers for each series; a line is broken where a number is missing."""
    for series in chart.series:
        color = _color(series)
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
            edgecolor=_color(series),
            facecolor="white" if point.tainted else _color(series),
            linewidth=1.6,
            gid=f"bar-{series.label}",
        )
        axes.annotate(
            _tick(point.y) if point.y < _WHOLE_FROM else f"{point.y:,.0f}",
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
            color=_color(series),
            linestyle=DASHES[series.dash % len(DASHES)],
            linewidth=1.3,
            label=series.label,
            gid=f"line-{series.label}",
        )
    axes.set_xlim(left=0)


def _tick(value: float) -> str:
    return f"{value:,.0f}" if value >= _WHOLE_FROM else f"{value:.3g}"


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
        axes.yaxis.set_major_formatter(lambda value, _place: _tick(value))
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
