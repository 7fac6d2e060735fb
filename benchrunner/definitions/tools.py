"""Tools: programs that drive load, and how their output is read."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from benchrunner.definitions.base import Definition, MetricId, Name


class Output(Definition):
    """One rule that reads text: a phase boundary (``split``) or a line of values (``pattern``)."""

    split: str = Field("", description="regular expression; group 'phase' starts a new phase")
    pattern: str = Field("", description="regular expression whose named groups are metric ids")
    require: list[MetricId] = Field([], description="metrics that must appear, else invalid")
    scale: dict[MetricId, float] = Field({}, description="factor from the printed unit to ours")


class Tool(Definition):
    """A program that drives load, and how its output is read."""

    name: Name = Field(description="as the file is called")
    title: str = Field("", description="as pages show it")
    engine: Name | None = Field(None, description="engine whose build holds the binary")
    binary: str = Field("", description="program name; default: the tool's name")
    debian: str = Field("", description="Debian package that installs it")
    argv: list[str] = Field([], description="fixed first arguments; {binary} is the program")
    flag_style: Literal["gflags", "long"] = Field(
        "gflags",
        description="gflags: --name=value, booleans as true/false; long: the same, true alone",
    )
    parser: Literal["db_bench", "fio", "rules"] = Field(
        "rules", description="what reads its output; rules: the [[output]] tables"
    )
    output: list[Output] = Field([], description="rules that read text, tried on every line")
