"""Pages: the tables and charts that a workload shows."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from benchrunner.definitions.base import Definition, MetricId, Name


class ColumnDefinition(Definition):
    """A column whose title or step differs from the metric's own."""

    metric: MetricId = Field(description="what the column shows")
    title: str = Field("", description="heading; default: the metric's")
    step: Name | None = Field(None, description="step measured; default: the table's")
    phase: str | None = Field(None, description="benchmark inside the output; default: the step's")
    role: str | None = Field(None, description="reader, writer or an operation type")


class TableDefinition(Definition):
    """One table of a page."""

    step: Name = Field(description="the step whose numbers it shows")
    title: str = Field("", description="heading above the table")
    rows: list[str] = Field(
        ["version:desc", "variant"], description="what makes a row, and its order"
    )
    columns: list[MetricId | ColumnDefinition] = Field(
        description="metric ids, or tables with a title, step, phase or role"
    )


class ChartDefinition(Definition):
    """One chart of a page."""

    step: Name = Field(description="the step whose numbers it shows")
    kind: Literal["by-version", "percentiles", "over-time"] = Field(
        description="bars by version, latency percentiles, or a curve over time"
    )
    metric: MetricId = Field("ops_per_sec", description="what is drawn")
    series: str = Field("variant", description="what has a colour of its own")
    title: str = Field("", description="heading; default: step and metric")


class Page(Definition):
    """What a workload's page shows besides its steps' own sections."""

    title: str = Field("", description="default: the workload's")
    intro: str = Field("", description="first paragraphs")
    setup: list[str] = Field([], description="lines of the Setup section; {PARAM} is replaced")
    tables: list[TableDefinition] = Field([], description="in order, each under its step")
    charts: list[ChartDefinition] = Field([], description="in order, each under its step")
    appendix: list[Name] = Field([], description="workloads whose raw output closes the page")
