"""Sweeps: what to run, in which versions and variants, where and how often."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from benchrunner.definitions.base import Definition, Name, Scalar


class Sweep(Definition):
    """Engine versions x variants x workloads x hosts x axes, minus excludes."""

    name: Name = Field(description="as the file is called")
    workloads: list[Name] = Field(description="workloads to run")
    engines: dict[Name, list[str]] = Field(
        {},
        description="engine -> versions and ranges; no version: the engine's default. Workloads "
        "with several engines run those named here, or all when none of theirs is",
    )
    policy: Literal["carry", "pristine"] | None = Field(
        None, description="what becomes of the database between steps; default: the workload's"
    )
    hosts: list[Name] = Field(["local"], description="hosts to run on")
    server: Name | None = Field(
        None,
        description="host that runs the services, and the one host of `hosts` their clients; "
        "default: both run on the same host, over its loopback",
    )
    spread: bool = Field(
        default=False,
        description="divide the jobs over the hosts, which must be of one facts class, instead of "
        "running all of them on every host",
    )
    variants: list[Name] = Field([], description="variants to run; empty: all")
    scale: Name | None = Field(None, description="preset; default: the workload's")
    only: list[Name] = Field([], description="groups of steps to run; empty: all")
    set: dict[str, Scalar] = Field({}, description="parameter overrides")
    axes: dict[str, list[Scalar]] = Field(
        {}, description="parameter -> values; every combination runs"
    )
    exclude: list[dict[str, Scalar]] = Field(
        [],
        description="cells left out, by workload, engine, version, variant, host, scale, params",
    )
    repeat: Annotated[int, Field(ge=1, le=1000)] = Field(1, description="trials of every job")
    order: Literal["interleaved", "grouped"] = Field(
        "interleaved",
        description="interleaved: versions take turns; grouped: all trials of a job together",
    )
    baseline: dict[str, str] = Field({}, description="the cell that others are compared with")
    as_shipped: bool = Field(default=False, description="leave the workload's pinned defaults free")
    ceilings: bool = Field(default=True, description="measure the device's ceiling first")
    sources: list[str] = Field(
        [], description="source kinds to use, in order; empty: the engine's own"
    )
