"""Workloads: ordered steps, variants, what becomes of flags, and what they need."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from benchrunner.definitions.base import (
    Definition,
    MetricId,
    Name,
    NameOrNone,
    Preparation,
    Scalar,
)
from benchrunner.definitions.pages import Page
from benchrunner.definitions.services import Service  # noqa: TC001 - pydantic needs it


class Variant(Definition):
    """A named overlay on every step: options, a command prefix, environment."""

    name: Name = Field(description="as --variants and pages show it")
    title: str = Field("", description="what it means, for the reader")
    options: dict[str, Scalar | list[str]] = Field(
        {}, description="flags for the steps whose tool is the engine's own"
    )
    wrap: list[str] = Field([], description="command prefix, e.g. numactl --interleave=all")
    env: dict[str, str] = Field({}, description="environment added to every step")
    needs: list[Literal["direct-io", "numactl", "jemalloc"]] = Field(
        [],
        description="what the host must offer, else the variant's trials are skipped; numactl: "
        "where there is one NUMA node they run, and are marked as without effect; jemalloc: "
        "libjemalloc.so.2, as LD_PRELOAD finds it",
    )


class Step(Definition):
    """One process: a tool and its arguments."""

    name: Name = Field(description="unique in the workload")
    tool: Name = Field(description="the tool that runs")
    title: str = Field("", description="section title on the page")
    text: str = Field("", description="paragraph under the title")
    command: str = Field("", description="the source page's own command line, for the reader")
    part_of: Name | None = Field(
        None, description="the earlier step whose test this step completes"
    )
    each: str = Field(
        "",
        description="parameter that holds a list as text (`1,2,4`): the step becomes one step for "
        "each value, in order, called NAME-VALUE, and inside it the parameter is that value",
    )
    state: Literal["creates", "keeps", "changes"] = Field(
        "keeps",
        description="what it does to the database: makes it, leaves it, alters it; where a second "
        "step of the engine's own tool makes it, the first database is deleted before",
    )
    measure: bool = Field(default=True, description="whether its numbers are shown")
    use: list[Name] = Field([], description="argument sets merged first, in order")
    args: dict[str, Scalar | list[str]] = Field(
        {}, description="flags; lists are joined by commas, texts are templates over parameters"
    )
    words: list[str] = Field(
        [], description="words after the flags, as they are; texts are templates over parameters"
    )
    services: list[Name] = Field([], description="services that must be ready while it runs")
    group: NameOrNone = Field(
        "",
        description="one of `groups`: --only chooses groups, and a step that failed stops those of "
        "its own group only",
    )
    engine: NameOrNone = Field(
        "", description="one of `also`: the engine whose build its program is; default: the job's"
    )
    phase: str | None = Field(None, description="benchmark inside the output that the page shows")
    threads: Scalar | None = Field(None, description="threads measured, for the usec/op check")
    seconds: Scalar | None = Field(
        None, description="expected run time; limits at three times this plus a minute"
    )
    timeout_s: Scalar | None = Field(None, description="time limit; default from seconds")
    requires: str = Field(
        "", description="versions that can run this step: '>=6.19', '>=6.19, <7.0'"
    )
    before: list[Preparation] | None = Field(
        None,
        description="what is done first, in order: `sync`, `drop-caches`, `fstrim`, `cool-down=60` "
        "(at most 60 s); default: the workload's, where the step is measured",
    )


class ExpandedStep(Step):
    """One of the steps that a step with ``each`` becomes; made by ``unfolding``, never written."""

    family: Name = Field(description="name of the step that was written")
    value: Scalar = Field(description="this step's value of the parameter that `each` names")


class Rule(Definition):
    """What to do with a flag that some versions do not know."""

    flag: str = Field(description="the flag that the rule speaks of")
    since: str | None = Field(None, description="first version the rule applies to")
    until: str | None = Field(None, description="last version the rule applies to")
    action: Literal["drop", "rename", "refuse", "set"] = Field(
        description="drop, rename, refuse: where it is not known; set another value: in any case"
    )
    to: str | None = Field(None, description="rename, set: the flag given instead")
    value: Scalar | None = Field(
        None,
        description="rename, set: the value given instead; a text is a template over the "
        "workload's parameters and `asked`, the value asked for",
    )
    reason: str = Field("", description="stored with what became of the flag")


class Check(Definition):
    """What must hold of the parameters, else a sweep is refused before anything starts."""

    that: str = Field(description="expression over the parameters: A >= 2 * B")
    why: str = Field(description="sentence that says what goes wrong otherwise")


class Ceiling(Definition):
    """A workload that measures what the host's device can do, before the sweep."""

    workload: NameOrNone = Field(
        "",
        description="the workload that measures it before a sweep, as its `gives` says, else by "
        "the best of each metric; without one a step is held "
        "against what the host is known for from earlier sweeps, of host-numbers for example",
    )
    taints: dict[MetricId, MetricId] = Field(
        {},
        description="metric of a step -> the ceiling's metric that it may not come within 5 % of",
    )


class Gift(Definition):
    """A number of a workload's steps that is a ceiling of the host for every later sweep."""

    metric: MetricId = Field(description="the number; the best one of all steps counts")
    steps: str = Field("*", description="pattern of the steps that may give it")
    phases: str = Field("*", description="pattern of the phases of their output")
    block: Literal["", "each", "largest"] = Field(
        "",
        description="each: the best for each size of a block, which is measured or the mean size "
        "of a request; largest: only phases with the largest block",
    )
    of: Literal["device", "memory"] = Field(
        "device",
        description="device: of what the databases lie on, and of nothing else; memory: of the "
        "host, whatever they lie on",
    )
    scales: list[Name] = Field([], description="only at these scales; empty: at all")


class Steady(Definition):
    """How near to each other repeated measurements must be."""

    within_pct: float = Field(
        gt=0,
        description="half the way from the lowest to the highest, in percent of the median",
    )
    scales: list[Name] = Field([], description="only at these scales; empty: at all")
    remedy: str = Field("", description="what the mark of numbers that are not advises")


class Estimate(Definition):
    """What a trial needs, as expressions over the parameters."""

    disk: str = Field("", description="bytes at the largest moment")
    memory: str = Field("", description="bytes")


class Workload(Definition):
    """Ordered steps that may share a database, with default parameters and scale presets."""

    name: Name = Field(description="as the file is called")
    title: str = Field(description="as pages show it")
    source: str = Field("", description="which page, paper or script this reproduces")
    engine: NameOrNone = Field(
        "", description="the engine under test; exactly one of engine and engines"
    )
    engines: list[Name] = Field(
        [], description="the engines that it compares, in the page's order; a sweep takes all"
    )
    also: dict[Name, str] = Field(
        {},
        description="engine -> version: engines whose programs some steps run besides, as their "
        "`engine` says; templates over parameters. One that cannot be had or built skips its steps",
    )
    groups: dict[Name, str] = Field(
        {}, description="groups of steps and their titles: sections of the page, in order"
    )
    policy: Literal["carry", "pristine"] = Field(
        "carry",
        description="carry: a step gets the database as left; pristine: as it was after loading",
    )
    params: dict[str, Scalar] = Field(
        {}, description='names and defaults; "6GiB" is a number of bytes'
    )
    scale: dict[Name, dict[str, Scalar]] = Field(
        {}, description="preset -> parameters that differ from the defaults"
    )
    default_scale: Name = Field("published", description="preset used when none is asked for")
    variants: list[Variant] = Field(
        [Variant(name="None")], description="overlays that a sweep compares"
    )
    compression: str = Field("", description="codec the build must have; {PARAM} is replaced")
    args: dict[Name, dict[str, Scalar | list[str]]] = Field({}, description="named argument sets")
    pinned: dict[str, Scalar] = Field(
        {}, description="defaults that moved between versions, fixed unless --as-shipped"
    )
    unknown_flags: Literal["drop", "refuse"] = Field(
        "refuse",
        description="what becomes of a flag that a version does not know and no rule speaks of",
    )
    rule: list[Rule] = Field([], description="flags that some versions do not know")
    estimate: Estimate = Field(Estimate(), description="what a trial needs")
    data_on: Literal["", "memory"] = Field(
        "",
        description="memory: databases lie on a tmpfs, mounted for the sweep where that is "
        "permitted, with room for estimate.disk; write-ahead logs stay on a device "
        "(rocksdb-in-memory.md); empty: on a device",
    )
    check: list[Check] = Field([], description="what must hold of the parameters")
    gives: list[Gift] = Field([], description="what it measures that is a ceiling of the host")
    steady: Steady | None = Field(
        None,
        description="how near repeated measurements must be to each other, or are marked",
    )
    ceiling: Ceiling | None = Field(
        None, description="what the host can do at most, for a mark where a step came near to it"
    )
    before: list[Preparation] = Field(
        [], description="what is done before every measured step that does not say it itself"
    )
    services: list[Service] = Field([], description="servers that steps need")
    steps: list[Step] = Field(description="in order")
    page: Page = Field(Page(), description="what its page shows")
