"""Metrics: what a number means."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from benchrunner.definitions.base import Definition


class Metric(Definition):
    """A number that a page can show: what it means, its unit and which way is better."""

    title: str = Field(description="heading of a column")
    unit: str = Field(description="unit of the stored value")
    better: Literal["higher", "lower", "neither"] = Field(description="which way is better")
    text: str = Field(description="definition, as benchrunner explain prints it")
    comparable: str = Field("", description="what it must not be compared with, and why")
    digits: int | None = Field(None, description="decimals on a page; default by unit")
