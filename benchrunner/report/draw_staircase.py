"""Draw the staircase of memory: figures against block sizes, cache sizes as dotted lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchrunner.report.looks import DASHES, MARKERS, color_of, tick
from benchrunner.units import about_size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from benchrunner.report.view import ChartView


def staircase(figure: Figure, chart: ChartView) -> None:
    """Lines with marks, both axes logarithmic; block sizes count in powers of four."""
    axes: Any = figure.add_subplot()
    for line in chart.series:
        color = color_of(line.color)
        axes.plot(
            [point.x for point in line.points],
            [point.y for point in line.points],
            label=line.label,
            color=color,
            linestyle=DASHES[line.dash % len(DASHES)],
            marker=MARKERS[(line.color + 2 * line.dash) % len(MARKERS)],
            markersize=4,
            markerfacecolor="white" if any(p.tainted for p in line.points) else color,
            gid=f"line-{line.label}",
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    sizes = sorted({point.x for line in chart.series for point in line.points})
    shown = [size for size in sizes if (int(size).bit_length() - 1) % 2 == 0 and _is_power(size)]
    axes.set_xticks(shown or sizes, [about_size(int(size)) for size in shown or sizes])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _place: tick(value))
    for name, size in chart.edges:
        if sizes and sizes[0] <= size <= 2 * sizes[-1]:
            axes.axvline(size, color="#777777", linestyle=(0, (1, 2)), linewidth=1.2)
            axes.annotate(
                name, (size, 1.0), xycoords=("data", "axes fraction"), xytext=(3, -2),
                textcoords="offset points", va="top", fontsize=9, color="#555555",
            )  # fmt: skip
    axes.set_title(chart.title)
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    if len(chart.series) > 1:
        figure.legend(loc="outside lower left", ncols=min(4, len(chart.series)))


def _is_power(size: float) -> bool:
    return int(size) & (int(size) - 1) == 0
