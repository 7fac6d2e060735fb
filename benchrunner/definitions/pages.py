"""Pages: the tables and charts that a workload shows."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from benchrunner.definitions.base import Definition, MetricId, Name, NameOrNone

Format = Literal["", "exact", "size", "clock"]


class ColumnDefinition(Definition):
    """A column whose title, step or form differs from the metric's own."""

    metric: MetricId = Field(description="what the column shows")
    title: str = Field("", description="heading; default: the metric's")
    step: Name | None = Field(None, description="step measured; default: the table's")
    phase: str | None = Field(None, description="benchmark inside the output; default: the step's")
    role: str | None = Field(None, description="reader, writer or an operation type")
    of: MetricId | None = Field(
        None, description="metric whose number stands behind it: `1000 of 1024`, found of asked for"
    )
    format: Format = Field(
        "",
        description="size: bytes and KiB in the unit that suits the column, which its title names; "
        "clock: seconds as `09:24.39` or `1:24:09.39`; exact: as stored; default: size for bytes "
        "and KiB whose metric does not fix its decimals, else exact",
    )


class TableDefinition(Definition):
    """One table of a page."""

    step: Name = Field(
        description="the step whose numbers it shows; a step with `each`: all steps made from it, "
        "one row for each value"
    )
    title: str = Field("", description="heading above the table")
    rows: list[str] = Field(
        ["version:desc", "variant"],
        description="what makes a row, and its order: version, variant, engine, host, an axis, the "
        "parameter of `each`; what else tells rows apart is added",
    )
    split: list[str] = Field(
        [],
        description="makes a table for each value: `engine` (under a heading of its own), variant, "
        "version, host or an axis (with the value in the table's title)",
    )
    columns: list[MetricId | ColumnDefinition] = Field(
        description="metric ids, or tables with a title, step, phase, role or format"
    )


class LineColumn(Definition):
    """A column of a table of lines."""

    any: list[MetricId] = Field(
        min_length=1, description="the first of these that a line measured is shown"
    )
    title: str = Field("", description="heading; default: the first metric's")
    phase: str = Field(
        "",
        description="benchmark inside the output; default: the line's. For lines with `cache` a "
        "pattern: `latency/normal/*`",
    )


class LineDefinition(Definition):
    """A named figure of a host."""

    title: str = Field(description="what it is called")
    step: NameOrNone = Field("", description="the step that measures it; empty: only published")
    phase: str = Field("", description="benchmark inside the output; default: the step's")
    cache: Literal["", "L1", "L2", "L3", "RAM"] = Field(
        "",
        description="shows the largest block that is at most half of this cache of the host; RAM: "
        "the largest block of all",
    )
    optional: bool = Field(
        default=False, description="left out where its step was skipped on every host"
    )
    published: str = Field("", description="what the source has for its own host, as it has it")


class LinesDefinition(Definition):
    """A table whose rows are named figures, with columns for each host."""

    group: Name = Field(description="the group of steps in whose section it stands")
    title: str = Field("", description="heading above the table")
    columns: list[MetricId | LineColumn] = Field(description="metric ids, or tables")
    lines: list[LineDefinition] = Field(description="in order")


class ChartDefinition(Definition):
    """One chart of a page."""

    step: Name = Field(description="the step whose numbers it shows; or one with `each`")
    kind: Literal[
        "by-version",
        "percentiles",
        "over-time",
        "by-value",
        "columns",
        "stacked-times",
        "staircase",
    ] = Field(
        description="bars by version, latency percentiles, a curve over time; of a step with "
        "`each`: by-value (lines over its values, a panel for each variant) or columns (two "
        "metrics, variants beside each other); stacked-times: wall time beside CPU time; "
        "staircase: against the size of a block of memory, with the sizes of the caches"
    )
    metric: MetricId = Field("ops_per_sec", description="what is drawn; not of stacked-times")
    right: MetricId | None = Field(
        None, description="columns: what is drawn on the right axis, beside `metric` on the left"
    )
    series: str = Field(
        "variant",
        description="what has a colour of its own; by-value and stacked-times: always the engine",
    )
    phases: list[str] = Field(
        [], description="staircase: patterns of benchmarks, a line each: `latency/normal/*`"
    )
    log: list[Literal["x", "y"]] = Field(
        [], description="by-value: logarithmic axes; x counts in powers of two"
    )
    split: list[Literal["engine"]] = Field(
        [], description="makes a chart for each engine, under that engine's heading"
    )
    title: str = Field("", description="heading; default: step and metric")


class Page(Definition):
    """What a workload's page shows besides its steps' own sections."""

    title: str = Field("", description="default: the workload's")
    intro: str = Field("", description="first paragraphs")
    setup: list[str] = Field([], description="lines of the Setup section; {PARAM} is replaced")
    tables: list[TableDefinition] = Field([], description="in order, each under its step")
    lines: list[LinesDefinition] = Field(
        [], description="tables of named figures, in order, each in its group's section"
    )
    charts: list[ChartDefinition] = Field([], description="in order, each under its step")
    appendix: list[Name] = Field([], description="workloads whose raw output closes the page")
