"""Draw the charts that compare engines: panels of lines, columns with two axes, stacked times.

Ten engines stay apart in print and for colour-blind readers: each has a mark of its own, and
variants a hatch of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchrunner.report.looks import (
    DASHES,
    HATCHES,
    HEADROOM,
    MARKERS,
    color_of,
    face_of,
    tick,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from benchrunner.report.view import ChartView, SeriesView

PANEL_INCHES = (4.9, 4.2)
COLUMNS_INCHES = (8.0, 3.8)
_BAR_INCHES, _MARGIN_INCHES = 0.15, 1.3
_GROUP = 0.84
"""Part of the room of one value or engine that its columns take."""
_ROOM_FOR_TEXT = 1.1
_ONE_DECADE = 30.0
_MINUTES_FROM_S, _HOURS_FROM_S = 300.0, 36000.0
_UNITS_S = {"s": 1.0, "min": 60.0, "h": 3600.0}


def size_inches(chart: ChartView) -> tuple[float, float]:
    """Return how large the picture must be for all that it shows."""
    if chart.kind == "by-value":
        rows = -(-len({line.label for line in chart.series}) // 5)
        return PANEL_INCHES[0] * max(len(chart.panels), 1.6), PANEL_INCHES[1] + 0.25 * rows
    if chart.kind == "stacked-times":
        variants = len({line.dash for line in chart.series})
        bars = len(chart.categories) * (2 * variants + 1)
        return COLUMNS_INCHES[0], max(_BAR_INCHES * bars + _MARGIN_INCHES, 2.4)
    return COLUMNS_INCHES


def panels(figure: Figure, chart: ChartView) -> None:
    """Lines over the values of a parameter, a panel for each variant, on the same axes."""
    drawn: Any = figure.subplots(1, len(chart.panels), sharex=True, sharey=True, squeeze=False)
    figure.suptitle(chart.title, x=0.012, ha="left", fontsize=12, fontweight="bold")
    places = _places(chart)
    for axes, panel in zip(drawn[0], chart.panels, strict=True):
        axes.set_title(panel.title, fontsize=10.5, fontweight="normal")
        axes.set_xlabel(chart.x_label)
        for line in panel.series:
            _line(axes, line, places, f"{panel.title}-{line.label}")
    first: Axes = drawn[0][0]
    first.set_ylabel(chart.y_label)
    _value_axis(first, chart, places)
    _rate_axis(first, chart)


def _places(chart: ChartView) -> list[float]:
    """Where each value stands on the axis: at the number that it is, else at its place."""
    try:
        return [float(value) for value in chart.categories]
    except ValueError:
        return [float(place) for place in range(len(chart.categories))]


def _line(axes: Axes, line: SeriesView, places: list[float], gid: str) -> None:
    """A line with marks, broken where a number is missing; hollow marks are in doubt."""
    color, marker = color_of(line.color), MARKERS[line.color % len(MARKERS)]
    dash = DASHES[line.dash % len(DASHES)]
    by_place = {int(point.x): point for point in line.points}
    ends = [
        by_place[place].y if place in by_place else float("nan") for place in range(len(places))
    ]
    axes.plot(places, ends, color=color, linestyle=dash, linewidth=1.4, gid=f"line-{gid}")
    for tainted in (False, True):
        points = [point for point in line.points if point.tainted is tainted]
        axes.plot(
            [places[int(point.x)] for point in points],
            [point.y for point in points],
            linestyle="none",
            marker=marker,
            markersize=6.5,
            markeredgecolor=color,
            markerfacecolor="white" if tainted else color,
            gid=f"markers-{gid}-{tainted}",
        )


def handles(chart: ChartView) -> list[Any]:
    """Return one entry of the legend for each line, whatever panel it is in."""
    from matplotlib.lines import Line2D

    lines = {line.label: line for line in sorted(chart.series, key=lambda line: line.color)}
    return [
        Line2D(
            [], [], color=color_of(line.color), marker=MARKERS[line.color % len(MARKERS)],
            linestyle=DASHES[line.dash % len(DASHES)], linewidth=1.4, label=label,
        )
        for label, line in lines.items()
    ]  # fmt: skip


def _value_axis(axes: Axes, chart: ChartView, places: list[float]) -> None:
    if "x" in chart.log and min(places) > 0:
        axes.set_xscale("log", base=2)
        axes.set_xlim(min(places) / 1.25, max(places) * 1.25)
    else:
        room = (max(places) - min(places) or 1) * 0.06
        axes.set_xlim(min(places) - room, max(places) + room)
    axes.set_xticks(places, chart.categories)
    axes.minorticks_off()


def _rate_axis(axes: Axes, chart: ChartView) -> None:
    from matplotlib.ticker import LogLocator

    numbers = [point.y for line in chart.series for point in line.points]
    if "y" in chart.log:
        axes.set_yscale("log")
        if max(numbers) / min(numbers) < _ONE_DECADE:
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_formatter(lambda _value, _place: "")
    else:
        axes.set_ylim(0, max(numbers) * HEADROOM or 1)
    axes.yaxis.set_major_formatter(lambda value, _place: tick(value))


def columns(figure: Figure, chart: ChartView) -> None:
    """Columns at each value, the variants beside each other; the second metric on the right."""
    left = figure.add_subplot()
    left.set_title(chart.title)
    sides: dict[bool, Axes] = {False: left}
    if any(line.right for line in chart.series):
        right = left.twinx()
        right.spines["right"].set_visible(True)
        right.grid(visible=False)
        sides[True] = right
    width = _GROUP / max(len(chart.series), 1)
    for place, line in enumerate(chart.series):
        shift = (place - (len(chart.series) - 1) / 2) * width
        _columns_of(sides[line.right], line, shift, width)
    for is_right, axes in sides.items():
        numbers = [p.y for line in chart.series if line.right is is_right for p in line.points]
        axes.set_ylim(0, max(numbers, default=0) * HEADROOM or 1)
        axes.yaxis.set_major_formatter(lambda value, _place: tick(value))
        axes.set_ylabel(chart.right_label if is_right else chart.y_label)
        if len(sides) > 1:
            color = color_of(int(is_right))
            axes.yaxis.label.set_color(color)
            axes.tick_params(axis="y", labelcolor=color)
    left.set_xlabel(chart.x_label)
    left.set_xticks(range(len(chart.categories)), chart.categories)
    left.set_xlim(-0.6, len(chart.categories) - 0.4)


def _columns_of(axes: Axes, line: SeriesView, shift: float, width: float) -> None:
    for point in line.points:
        axes.bar(
            point.x + shift,
            point.y,
            width=width * 0.94,
            edgecolor=color_of(line.color),
            facecolor=face_of(line, tainted=point.tainted),
            hatch=HATCHES[line.dash % len(HATCHES)],
            linewidth=1.0,
            gid=f"column-{line.label}",
        )


def boxes(chart: ChartView) -> list[Any]:
    """Return one entry of the legend for each kind of column or bar."""
    from matplotlib.patches import Patch

    return [
        Patch(
            edgecolor=color_of(line.color), facecolor=face_of(line, tainted=False),
            hatch=HATCHES[line.dash % len(HATCHES)], label=line.label,
        )
        for line in chart.series
    ]  # fmt: skip


def stacked_times(figure: Figure, chart: ChartView) -> None:
    """Bars from left to right: wall time, and below it user and system CPU time end to end."""
    axes = figure.add_subplot()
    axes.set_title(chart.title)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    longest = max(point.y for line in chart.series for point in line.points)
    unit = "s" if longest < _MINUTES_FROM_S else "min" if longest < _HOURS_FROM_S else "h"
    variants = sorted({line.dash for line in chart.series})
    height = _GROUP / (2 * len(variants))
    starts: dict[tuple[float, int], float] = {}
    for line in chart.series:
        cpu = line.color > 0
        row = 2 * variants.index(line.dash) + int(cpu)
        shift = (row - (2 * len(variants) - 1) / 2) * height
        for point in line.points:
            start = starts.get((point.x, line.dash), 0.0) if cpu else 0.0
            length = point.y / _UNITS_S[unit]
            axes.barh(
                point.x + shift,
                length,
                left=start,
                height=height * 0.92,
                edgecolor=color_of(line.color),
                facecolor=face_of(line, tainted=point.tainted),
                hatch=HATCHES[line.dash % len(HATCHES)],
                linewidth=0.8,
                gid=f"bar-{line.label}",
            )
            if cpu:
                starts[point.x, line.dash] = start + length
    axes.set_yticks(range(len(chart.categories)), chart.categories)
    axes.set_ylim(len(chart.categories) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(lambda value, _place: tick(value))
    axes.set_xlabel(f"{chart.x_label} ({unit})")
