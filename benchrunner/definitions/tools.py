"""Tools: programs that drive load, and how their output is read."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from benchrunner.definitions.base import Definition, MetricId, Name


class Output(Definition):
    """One rule that reads text: a phase boundary, a line of values, or one that spoils them."""

    split: str = Field("", description="regular expression; group 'phase' starts a new phase")
    pattern: str = Field("", description="regular expression whose named groups are metric ids")
    require: list[MetricId] = Field([], description="metrics that must appear, else invalid")
    read: dict[MetricId, Literal["size", "count", "bits", "duration"]] = Field(
        {},
        description="values printed with a unit or prefix: size (`12.5MB`, to bytes), count "
        "(`114K`, K is 1000), bits (`15.1Gbit/s`, to bit/s), duration (`~2.5us`, to seconds)",
    )
    scale: dict[MetricId, float] = Field(
        {}, description="factor from the printed unit to ours, or from what `read` gives"
    )
    problem: str = Field(
        "", description="regular expression of a line that says that no figure here is good"
    )


class Tool(Definition):
    """A program that drives load, and how its output is read."""

    name: Name = Field(description="as the file is called")
    title: str = Field("", description="as pages show it")
    engine: Name | None = Field(None, description="engine whose build holds the binary")
    engines: list[Name] = Field([], description="the same, where builds of several engines do")
    of_job: bool = Field(
        default=False,
        description="whether it is the generic driver, which comes with the job's own build "
        "whichever engine that has",
    )
    binary: str = Field("", description="program name; default: the tool's name")
    debian: str = Field("", description="Debian package that installs it")
    argv: list[str] = Field([], description="fixed first arguments; {binary} is the program")
    flag_style: Literal["gflags", "long"] = Field(
        "gflags",
        description="gflags: --name=value, booleans as true/false; long: the same, true alone",
    )
    repeat: list[str] = Field(
        [], description="flags that are given once for each value of a list, not joined by commas"
    )
    invalid_exits: list[int] = Field(
        [],
        description="exit statuses that say that a result is wrong: the step is then invalid, "
        "not failed",
    )
    max_threads: int | None = Field(
        None, ge=1, description="most threads it can be asked for; a plan with more is refused"
    )
    parser: Literal["db_bench", "fio", "hostbench", "iperf3", "openssl", "rules"] = Field(
        "rules", description="what reads its output; rules: the [[output]] tables"
    )
    output: list[Output] = Field([], description="rules that read text, tried on every line")

    def drives(self, engine: str) -> bool:
        """Whether it is a program of this engine's build, or one of every engine's."""
        return self.of_job or engine == self.engine or engine in self.engines

    @property
    def is_free(self) -> bool:
        """Whether it is taken as the system has it: no engine's build holds it (fio)."""
        return not (self.of_job or self.engine or self.engines)
