"""The vocabulary of what happens: jobs, trials, step runs, measurements. Read this file first.

Plain frozen values without behaviour; no input, no output, no third-party import. What a person
writes in TOML (engines, tools, workloads, hosts, metrics) is in ``definitions``. Units are part of
every name: ``_s`` seconds, ``_us`` microseconds, ``_kib`` 1024 bytes. ``None``: not measured.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

SourceKind = Literal[
    "system", "git", "crate", "apt", "npm", "pypi", "archive", "path", "native", "none"
]  # fmt: skip
MISSING: Literal["none"] = "none"
"""The source of what cannot be had: its jobs are stored and skipped, the reason is its note."""
FlagAction = Literal["given", "translated", "dropped"]


class TrialState(StrEnum):
    """Where one repetition of a job stands. The last five are final: a failure is a result."""

    PLANNED = "planned"
    RUNNING = "running"
    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    INVALID = "invalid"
    SKIPPED = "skipped"

    @property
    def final(self) -> bool:
        """Whether the trial will not change any more by running."""
        return self not in (TrialState.PLANNED, TrialState.RUNNING)


class StepState(StrEnum):
    """Where one process of a trial stands."""

    STARTING = "starting"
    RUNNING = "running"
    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    INVALID = "invalid"
    SKIPPED = "skipped"
    INTERRUPTED = "interrupted"

    @property
    def final(self) -> bool:
        """Whether the process has ended and its outcome is stored."""
        return self not in (StepState.STARTING, StepState.RUNNING)


@dataclass(frozen=True, slots=True)
class SourceRef:
    """One engine version at one place: enough to fetch it, not yet fetched."""

    engine: str
    version: str
    kind: SourceKind
    ref: str
    """What the source calls it: ``v7.2.2``, ``ckb-librocksdb-sys@7.2.2``, ``/usr/bin/db_bench``."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Artifact:
    """One engine version built (or found) one way on one kind of host. ``id`` is a content hash."""

    id: str
    engine: str
    version: str
    """The version the source tree itself reports (``version.h``, ``--version``)."""
    source: SourceKind
    ref: str
    state: Literal["built", "failed", "refused"]
    commit: str | None = None
    compiler: str | None = None
    directory: str = ""
    binaries: Mapping[str, str] = field(default_factory=dict)
    """Binary name -> absolute path on the host that built it."""
    sha256: Mapping[str, str] = field(default_factory=dict)
    build_flags: Mapping[str, str] = field(default_factory=dict)
    """Environment and ``make_config.mk`` entries that shaped the binary."""
    known_flags: frozenset[str] | None = None
    """Command-line flags that the binary's own ``--help`` lists; ``None`` when not asked."""
    features: frozenset[str] = frozenset()
    """What the build was linked with: ``zstd``, ``lz4``, ``jemalloc``, ``assertions`` ..."""
    seconds: float | None = None
    log: str = ""
    """Path of the complete build log."""
    reason: str = ""
    """Why ``state`` is not ``built``, with the last lines of the log."""


@dataclass(frozen=True, slots=True)
class FlagNote:
    """What became of one requested command-line flag for one version (nothing is silent)."""

    flag: str
    asked: str
    given: str | None
    """``--name=value`` as passed, or ``None`` when it was dropped."""
    action: FlagAction
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """A process to start: an argument list (never a shell string) and its whole environment."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[FlagNote, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """One cell of a sweep: what runs, in which version, how, where. ``id`` hashes all the rest."""

    id: str
    workload: str
    engine: str
    version: str
    source: SourceRef
    variant: str
    host: str
    scale: str
    params: Mapping[str, Any]
    """Every parameter of the workload with its effective value."""
    axes: Mapping[str, Any]
    """Values of the sweep's extra axes (``{"threads": 16}``); also present in ``params``."""
    steps: tuple[str, ...]
    """Names of the workload's steps that run, in order."""
    policy: Literal["carry", "pristine"]
    as_shipped: bool = False
    server: str = ""
    """Host of its services, when that is another one than that of its steps."""


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """One repetition of a job at its place in the order of a plan."""

    id: str
    job: Job
    repetition: int
    position: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The ordered trials of a sweep and what they are expected to cost."""

    sweep: str
    trials: tuple[PlannedTrial, ...]
    loads: int
    """How many times a database is loaded from empty."""
    disk_bytes: int | None
    """Largest space that a running trial is expected to take, bytes."""
    seconds: float | None
    """Expected wall time without builds, seconds; ``None`` when nothing is known."""
    skipped: tuple[tuple[str, str], ...] = ()
    """Versions asked for and left out, with the reason."""
    memory_bytes: int | None = None
    """Largest memory that a running trial is expected to take, bytes."""


class Measurement(NamedTuple):
    """One number: ``value`` of ``metric`` in one phase of one step run.

    A named tuple because millions of them pass through a store.
    """

    phase: str | None
    """The benchmark inside the process (``readrandom``), ``None`` for the process as a whole."""
    run: int
    """1 for the first occurrence of the phase in one output, 2 for the second (``bench[-X3]``)."""
    role: str | None
    """``reader``, ``writer``, an operation type (``read``), or ``None``."""
    metric: str
    value: float


@dataclass(frozen=True, slots=True)
class Taint:
    """A named reason to distrust a number: shown with it, and kept out of every verdict."""

    name: str
    evidence: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a parser understood of one step run's raw output."""

    measurements: tuple[Measurement, ...]
    taints: tuple[Taint, ...] = ()
    problems: tuple[str, ...] = ()
    """Contradictions that make the step run invalid: shown, never a number."""
    series: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    """Curves over time, (seconds since start, value): ``ops_per_sec``, ``cpu_pct`` ..."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What the tool says of itself: version, compression, memtable, number of entries."""
    complaint: str = ""
    """The last thing that a process said which failed: completes the reason."""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What was observed on a host at one moment; ``id`` hashes the facts that last."""

    id: str
    host: str
    taken_at: float
    """Unix time, seconds."""
    boot_id: str
    facts: Mapping[str, Any]
    """Nested plain data: cpu, memory, kernel, numa, device, file_system, tools, virtualisation."""

    @property
    def device(self) -> str:
        """What databases lie on: a disk's name, else what is mounted there (memory, network)."""
        name = (self.facts.get("device") or {}).get("name")
        mounted = self.facts.get("file_system") or {}
        return str(name or mounted.get("source") or mounted.get("mount_point") or "")


@dataclass(frozen=True, slots=True)
class Handle:
    """A process under the supervisor on a host; survives the controller that started it."""

    run_dir: str
    pid: int
    start_time: int
    """Of the supervisor, in clock ticks since boot (field 22 of ``/proc/PID/stat``)."""
