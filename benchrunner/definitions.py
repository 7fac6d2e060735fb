"""What a person writes in TOML: engines, tools, workloads, sweeps, hosts, metrics.

Strict and frozen: an unknown key is an error (``catalog`` adds the file and the nearest valid key).
Every field's description is its reference documentation; ``docs/reference`` is checked against it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=64)]
MetricId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
Scalar = bool | int | float | str
Preparation = Annotated[
    str, StringConstraints(pattern=r"^(sync|drop-caches|fstrim|cool-down=[1-9][0-9]{0,3})$")
]


class Definition(BaseModel):
    """Base of all definitions: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


# ---------------------------------------------------------------- engines


class Source(Definition):
    """One place that has versions of an engine. Sources are tried in the order written."""

    kind: Literal["system", "git", "crate", "archive", "path"] = Field(
        description="how versions are had: installed, from git, a crate, a tarball, a tree"
    )
    url: str = Field("", description="git: repository URL or path")
    ref: list[str] = Field(
        [], description="git: tag patterns, tried in order; {version} is replaced"
    )
    branch: str = Field(
        "", description="git: branch to walk when no tag matches; {major}.{minor}.fb"
    )
    version_file: str = Field("", description="file in the tree that states the version")
    path: str = Field(
        "", description="crate, archive: folder inside the package; path: a local source tree"
    )
    versions: dict[str, str] = Field(
        {}, description="crate: version -> crate@number; archive: version -> file"
    )
    binary: str = Field("", description="system: program looked up on PATH")
    version_argv: list[str] = Field(
        [], description="system: arguments that make the binary print its version"
    )
    debian: str = Field("", description="system: Debian package that installs the binary")


class Needs(Definition):
    """What a build wants installed."""

    debian: list[str] = Field([], description="Debian packages")


class Build(Definition):
    """How a source tree becomes binaries. Placeholders: {jobs}, {source}, {prefix}."""

    needs: Needs = Field(Needs(), description="what a build wants installed")
    commands: list[list[str]] = Field([], description="argument lists, run in order in the tree")
    env: dict[str, str] = Field({}, description="environment of the build")
    portable_env: dict[str, str] = Field(
        {},
        description="environment added when it is built on the controller for other hosts, so that "
        "the result runs on their processors too",
    )
    keep: list[str] = Field(
        [], description="files kept from the tree; the first is the main binary"
    )
    config_file: str = Field(
        "", description="file with NAME=value lines to record (make_config.mk)"
    )
    features: dict[str, str] = Field(
        {}, description="feature -> regular expression that its presence matches in config_file"
    )
    forbid: dict[str, str] = Field(
        {}, description="reason -> regular expression over config_file and log that refuses a build"
    )
    count: str = Field("", description="regular expression of a log line that finishes one file")


class Data(Definition):
    """What an engine leaves on disk."""

    immutable: list[str] = Field([], description="globs hard-linked into a checkpoint; rest copied")
    effective_options: str = Field("", description="glob of the file that states effective options")


class Engine(Definition):
    """A thing under test: where versions come from, how one is built, what it leaves on disk."""

    name: Name = Field(description="as the file is called")
    title: str = Field(description="as pages show it")
    flags: str = Field("", description="JSON file: which flag which version knows, and its default")
    source: list[Source] = Field(description="where versions come from, tried in order")
    build: Build = Field(Build(), description="how a source tree becomes binaries")
    data: Data = Field(Data(), description="what the engine leaves on disk")


# ---------------------------------------------------------------- tools


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


# ---------------------------------------------------------------- workloads


class Variant(Definition):
    """A named overlay on every step: options, a command prefix, environment."""

    name: Name = Field(description="as --variants and pages show it")
    title: str = Field("", description="what it means, for the reader")
    options: dict[str, Scalar] = Field(
        {}, description="flags for the steps whose tool is the engine's own"
    )
    wrap: list[str] = Field([], description="command prefix, e.g. numactl --interleave=all")
    env: dict[str, str] = Field({}, description="environment added to every step")
    needs: list[Literal["direct-io"]] = Field(
        [], description="what the host must offer, else the variant's trials are skipped"
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
    state: Literal["creates", "keeps", "changes"] = Field(
        "keeps", description="what it does to the database: makes it, leaves it, alters it"
    )
    measure: bool = Field(default=True, description="whether its numbers are shown")
    use: list[Name] = Field([], description="argument sets merged first, in order")
    args: dict[str, Scalar | list[str]] = Field(
        {}, description="flags; lists are joined by commas, texts are templates over parameters"
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


class Rule(Definition):
    """What to do with a flag that some versions do not know."""

    flag: str = Field(description="the flag that the rule speaks of")
    since: str | None = Field(None, description="first version the rule applies to")
    until: str | None = Field(None, description="last version the rule applies to")
    action: Literal["drop", "rename", "refuse", "set"] = Field(
        description="drop, rename, refuse: where it is not known; set another value: in any case"
    )
    to: str | None = Field(None, description="rename, set: the flag given instead")
    value: Scalar | None = Field(None, description="rename, set: the value given instead")
    reason: str = Field("", description="stored with what became of the flag")


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


class Ceiling(Definition):
    """A workload that measures what the host's device can do, before the sweep."""

    workload: Name = Field(description="the workload that measures it")
    taints: dict[MetricId, str] = Field(
        {},
        description="metric of a step -> the ceiling's metric that it may not come within 5 % of",
    )


class Estimate(Definition):
    """What a trial needs, as expressions over the parameters."""

    disk: str = Field("", description="bytes at the largest moment")
    memory: str = Field("", description="bytes")


class Workload(Definition):
    """Ordered steps that may share a database, with default parameters and scale presets."""

    name: Name = Field(description="as the file is called")
    title: str = Field(description="as pages show it")
    source: str = Field("", description="which page, paper or script this reproduces")
    engine: Name = Field(description="the engine under test")
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
    args: dict[Name, dict[str, Scalar]] = Field({}, description="named argument sets")
    pinned: dict[str, Scalar] = Field(
        {}, description="defaults that moved between versions, fixed unless --as-shipped"
    )
    unknown_flags: Literal["drop", "refuse"] = Field(
        "refuse",
        description="what becomes of a flag that a version does not know and no rule speaks of",
    )
    rule: list[Rule] = Field([], description="flags that some versions do not know")
    estimate: Estimate = Field(Estimate(), description="what a trial needs")
    ceiling: Ceiling | None = Field(
        None, description="what the host's device can do, measured before the sweep"
    )
    before: list[Preparation] = Field(
        [], description="what is done before every measured step that does not say it itself"
    )
    steps: list[Step] = Field(description="in order")
    page: Page = Field(Page(), description="what its page shows")


# ---------------------------------------------------------------- sweeps, hosts, metrics


class Sweep(Definition):
    """Engine versions x variants x workloads x hosts x axes, minus excludes."""

    name: Name = Field(description="as the file is called")
    workloads: list[Name] = Field(description="workloads to run")
    engines: dict[Name, list[str]] = Field({}, description="engine -> versions and ranges")
    hosts: list[Name] = Field(["local"], description="hosts to run on")
    spread: bool = Field(
        default=False,
        description="divide the jobs over the hosts, which must be of one facts class, instead of "
        "running all of them on every host",
    )
    variants: list[Name] = Field([], description="variants to run; empty: all")
    scale: Name | None = Field(None, description="preset; default: the workload's")
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


class HostLimits(Definition):
    """What a sweep may take on a host."""

    disk_gib: float | None = Field(
        None,
        gt=0,
        description="most that one trial may need on disk; a plan that needs more is refused",
    )
    step_hours: float | None = Field(
        None, gt=0, description="longest that one step may take; shortens its own time limit"
    )
    jobs: int | None = Field(
        None, ge=1, description="compilers at a time for builds there; default: one for each CPU"
    )
    connect_s: float = Field(
        20.0, gt=0, description="longest for reaching the host and logging in, in seconds"
    )
    reconnect_s: float = Field(
        3600.0,
        ge=0,
        description="how long a host that was lost in the middle of a trial is waited for, in "
        "seconds; its step goes on meanwhile",
    )


class Host(Definition):
    """Where to run. A host without an address is this machine."""

    name: Name = Field(description="as the file is called")
    address: str = Field(
        "",
        description="[user@]host[:port], or an alias of ~/.ssh/config; empty: this machine",
    )
    port: int | None = Field(None, ge=1, le=65535, description="SSH port; default 22")
    user: str = Field("", description="login; default as ~/.ssh/config says, else your own name")
    key_files: list[str] = Field(
        [],
        description="private keys to log in with; empty: those of ~/.ssh/config, and the usual "
        "ones",
    )
    agent: bool = Field(default=True, description="whether keys of a running SSH agent are tried")
    jump: str = Field(
        "",
        description="host to go through: [user@]host[:port], an alias, or a host of the inventory; "
        "several separated by commas, first the one that is reached first",
    )
    work_dir: str = Field(
        "",
        description="folder for databases, runs and builds; empty: under --data (this machine "
        "only)",
    )
    lock_dir: str = Field(
        "",
        description="folder on the host where its lock is, shared by all controllers and users; "
        "empty: /run/lock, or /tmp where that is missing",
    )
    data: dict[str, str] = Field(
        {},
        description="data directory -> what must be mounted there: a file system (`xfs`), a device "
        "(`/dev/nvme1n1`), or empty for anything; the first is used unless --database-dir names "
        "one",
    )
    wal: dict[str, str] = Field(
        {},
        description="directory for write-ahead logs -> what must be mounted there; the first is "
        "used unless --wal-dir names one; none: with the database",
    )
    tune: dict[Name, str] = Field(
        {},
        description="settings changed for the time of a sweep and put back afterwards; names and "
        "values are in host-settings.md",
    )
    env: dict[str, str] = Field({}, description="environment of every process")
    tags: list[str] = Field([], description="free words")
    roles: list[Literal["client", "server"]] = Field(
        ["client", "server"],
        description="client: it runs the steps of workloads; server: their services",
    )
    limits: HostLimits = Field(HostLimits(), description="what a sweep may take there")
    build: Literal["host", "controller"] = Field(
        "host",
        description="where engines are compiled: there, or here (the host then needs no compiler, "
        "but a processor and libc that can run the result)",
    )


class Metric(Definition):
    """A number that a page can show: what it means, its unit and which way is better."""

    title: str = Field(description="heading of a column")
    unit: str = Field(description="unit of the stored value")
    better: Literal["higher", "lower", "neither"] = Field(description="which way is better")
    text: str = Field(description="definition, as benchrunner explain prints it")
    comparable: str = Field("", description="what it must not be compared with, and why")
    digits: int | None = Field(None, description="decimals on a page; default by unit")
