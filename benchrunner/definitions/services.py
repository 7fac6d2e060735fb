"""Services: servers that run beside the steps that need them."""

from __future__ import annotations

from pydantic import Field

from benchrunner.definitions.base import Definition, Name, Scalar


class Service(Definition):
    """A server that is started before the first step that names it and ended after the last one."""

    name: Name = Field(description="unique among the workload's services and steps")
    tool: Name = Field(description="the tool that runs")
    args: dict[str, Scalar | list[str]] = Field(
        {}, description="flags, as a step's; texts are templates over parameters"
    )
    words: list[str] = Field([], description="words after the flags, as a step's")
    port: Scalar | None = Field(
        None,
        description="TCP port that it listens on: it must be free before, and the service is ready "
        "when it answers there",
    )
    ready: str = Field(
        "",
        description="regular expression of a line of its output that says that it is ready; "
        "default: the port answers",
    )
    ready_s: float = Field(20.0, gt=0, description="longest that it may take to be ready, seconds")
    grace_s: float = Field(10.0, ge=0, description="seconds between TERM and KILL when it is ended")
