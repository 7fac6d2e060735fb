"""View models of a page: plain values whose text is already formatted, but not yet escaped.

Every markup is laid out from the same ``PageView``, so that they cannot disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DASH = "-"


@dataclass(frozen=True, slots=True)
class CellView:
    """One cell of a table: text, footnote numbers, and where it leads."""

    text: str
    notes: tuple[int, ...] = ()
    hover: str = ""
    """Spread or full text, where the markup can show it on demand."""
    trials: tuple[tuple[str, str], ...] = ()
    """(text, trial id) links to raw pages; the text is used instead of ``text``."""
    wide: bool = False
    """Long free text that may wrap."""
    step: str = ""
    """The step that the links lead to; empty: to the whole trial."""


@dataclass(frozen=True, slots=True)
class ColumnView:
    """A column heading; ``anchor`` leads to the metric's definition."""

    title: str
    metric: str | None = None
    anchor: str = ""
    unit: str = ""
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class RowView:
    """A row; ``first`` when its first cell differs from the row above."""

    cells: tuple[CellView, ...]
    first: bool = False
    tainted: bool = False
    failed: bool = False


@dataclass(frozen=True, slots=True)
class TableView:
    """A table with a title, ready to be laid out."""

    name: str
    title: str
    columns: tuple[ColumnView, ...]
    rows: tuple[RowView, ...]


@dataclass(frozen=True, slots=True)
class PointView:
    """One point of a chart; ``x`` is a place in the categories, or seconds."""

    x: float
    y: float
    tainted: bool = False


@dataclass(frozen=True, slots=True)
class SeriesView:
    """One line of a chart. Equal colours belong together, dashes (or hatches) tell them apart."""

    label: str
    points: tuple[PointView, ...]
    color: int = 0
    dash: int = 0
    right: bool = False
    """Whether its numbers are on the right axis."""


@dataclass(frozen=True, slots=True)
class PanelView:
    """One of several pictures beside each other that share their axes."""

    title: str
    series: tuple[SeriesView, ...]


@dataclass(frozen=True, slots=True)
class ChartView:
    """A chart as data. ``metrics`` has one id, or the percentiles of one latency."""

    name: str
    title: str
    kind: Literal[
        "by-version", "percentiles", "over-time", "by-value", "columns", "stacked-times",
        "staircase",
    ]  # fmt: skip
    metrics: tuple[str, ...]
    x_label: str
    y_label: str
    categories: tuple[str, ...]
    series: tuple[SeriesView, ...]
    alt: str
    notes: tuple[str, ...] = ()
    panels: tuple[PanelView, ...] = ()
    """by-value: what is drawn; ``series`` then has all lines of all panels."""
    right_label: str = ""
    edges: tuple[tuple[str, float], ...] = ()
    """staircase: named places on the x axis."""
    log: tuple[str, ...] = ()
    """The axes, ``x`` and ``y``, that are logarithmic."""

    @property
    def wide(self) -> bool:
        """Whether it wants the whole width of a page."""
        return len(self.panels) > 1


@dataclass(frozen=True, slots=True)
class CommandView:
    """A command line as text, and what it belongs to."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class PartView:
    """What a test shows of one engine."""

    title: str
    anchor: str
    commands: tuple[CommandView, ...]
    tables: tuple[TableView, ...]
    charts: tuple[ChartView, ...]


@dataclass(frozen=True, slots=True)
class TestView:
    """One section of the page: a step and the steps that are part of its test."""

    title: str
    anchor: str
    command: str
    commands: tuple[CommandView, ...]
    paragraphs: tuple[str, ...]
    tables: tuple[TableView, ...]
    charts: tuple[ChartView, ...]
    parts: tuple[PartView, ...] = ()

    __test__ = False


@dataclass(frozen=True, slots=True)
class ContentView:
    """A line of the table of contents; ``level`` 1 belongs below the last one of level 0."""

    title: str
    anchor: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class HostView:
    """A host's facts, one line each: (label, text)."""

    name: str
    facts: tuple[tuple[str, str], ...]
    more: tuple[tuple[str, str], ...] = ()
    """The complete lines of groups that are shortened above."""


@dataclass(frozen=True, slots=True)
class MetricView:
    """The definition that a column title leads to."""

    id: str
    anchor: str
    title: str
    unit: str
    better: str
    text: str
    comparable: str


@dataclass(frozen=True, slots=True)
class AppendixView:
    """A raw output printed whole."""

    title: str
    anchor: str
    command: str
    text: str


@dataclass(frozen=True, slots=True)
class PageView:
    """A whole page."""

    name: str
    title: str
    subtitle: str
    intro: tuple[str, ...]
    contents: tuple[ContentView, ...]
    """In page order."""
    hosts: tuple[HostView, ...]
    builds: tuple[tuple[str, str], ...]
    """What the binaries have in common, and where each version came from."""
    setup: tuple[str, ...]
    params: tuple[tuple[str, str], ...]
    tests: tuple[TestView, ...]
    appendix: tuple[AppendixView, ...]
    provenance: TableView
    flags: tuple[TableView, ...]
    metrics: tuple[MetricView, ...]
    footnotes: tuple[str, ...]
    """Footnote 1 first."""
