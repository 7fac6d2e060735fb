"""What the store hands out: frozen values in the words of ``model``, nothing of the database.

Times ending in ``_at`` are Unix seconds. ``None`` means "not known" or "not yet".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from benchrunner.model import PlannedTrial

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchrunner.model import (
        Artifact,
        FlagNote,
        HostFacts,
        Job,
        Measurement,
        Parsed,
        StepState,
        Taint,
        TrialState,
    )

MeasurementKey = tuple[str | None, int, str | None, str]
"""(phase, run, role, metric id), as in ``model.Measurement``."""

Points = tuple[tuple[float, float], ...]
"""A curve: (seconds since the step began, value)."""

TaintOrigin = Literal["run", "parse"]


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One stored sweep. It is finished when ``unfinished`` is 0."""

    id: int
    name: str
    created_at: float
    spec: Mapping[str, Any]
    baseline: Mapping[str, str]
    command_line: tuple[str, ...]
    benchrunner_version: str
    loads: int
    disk_bytes: int | None
    seconds: float | None
    skipped: tuple[tuple[str, str], ...]
    """Versions asked for and left out, with the reason."""
    unfinished: int
    """Trials that are planned or running."""


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One repetition of a job as it stands."""

    id: str
    sweep_id: int
    job: Job
    repetition: int
    position: int
    state: TrialState
    reason: str
    attempt: int
    artifact_id: str | None
    facts_id: str | None
    fence: int | None
    started_at: float | None
    ended_at: float | None
    server_address: str | None = None
    """At which clients reached the host of the services, where that is another one."""
    server_facts_id: str | None = None

    def planned(self) -> PlannedTrial:
        """The trial as a plan lists it, under its stored id."""
        return PlannedTrial(self.id, self.job, self.repetition, self.position)


@dataclass(frozen=True, slots=True)
class ServerSeen:
    """The host of a trial's services, where it is another than that of its steps."""

    facts_id: str
    """Stored before."""
    address: str
    """At which clients reach it."""


@dataclass(frozen=True, slots=True)
class StepRow:
    """One process of a trial as it stands."""

    id: int
    trial_id: str
    attempt: int
    step: str
    position: int
    state: StepState
    reason: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    flags: tuple[FlagNote, ...]
    run_dir: str
    pid: int | None
    start_time: int | None
    """Of the supervisor, in clock ticks since boot."""
    started_at: float | None
    ended_at: float | None
    exit_code: int | None
    signal: int | None
    status: Mapping[str, Any] | None
    raw_path: str | None
    raw_sha256: str | None
    options: Mapping[str, Any] | None
    """Comparison of the effective options with those asked for."""
    parser: str | None
    parser_version: str | None
    parsed_at: float | None
    problems: tuple[str, ...]
    facts: Mapping[str, str]
    superseded: bool
    """Belongs to an attempt that was started again; kept, not shown."""
    host: str | None = None
    """Where it ran, if not on the host of its job: a service of another host."""


class EndedStep(Protocol):
    """What reading a step run's raw output needs to know of it."""

    @property
    def id(self) -> int:
        """Its number."""

    @property
    def trial_id(self) -> str:
        """Its trial."""

    @property
    def step(self) -> str:
        """Its name in the workload."""

    @property
    def state(self) -> StepState:
        """How it ended."""

    @property
    def reason(self) -> str:
        """Why."""

    @property
    def status(self) -> Mapping[str, Any] | None:
        """What the supervisor said."""

    @property
    def raw_path(self) -> str | None:
        """Its folder below the raw folder of the results."""

    @property
    def flags(self) -> tuple[FlagNote, ...]:
        """Flags that were asked for."""


class StepEnd(Protocol):
    """What is stored when a step's process has ended."""

    @property
    def reason(self) -> str:
        """Why the state is not ok."""
        ...

    @property
    def status(self) -> Mapping[str, Any] | None:
        """The supervisor's status file."""
        ...

    @property
    def raw_path(self) -> str | None:
        """The raw output that was brought home."""
        ...

    @property
    def raw_sha256(self) -> str | None:
        """Hash of the raw output."""
        ...

    @property
    def options(self) -> Mapping[str, Any] | None:
        """Effective options compared with those asked for."""
        ...


@dataclass(frozen=True, slots=True)
class ParsedStep:
    """What a parser understood of one step run, ready to be stored."""

    step_run_id: int
    parsed: Parsed
    parser: str
    parser_version: str
    derived: tuple[Measurement, ...] = ()


@dataclass(frozen=True, slots=True)
class PageStep:
    """One process of a trial with what it measured."""

    row: StepRow
    measurements: Mapping[MeasurementKey, float]
    taints: tuple[Taint, ...] = ()


@dataclass(frozen=True, slots=True)
class PageTrial:
    """One repetition of a cell with all that a page shows of it."""

    row: TrialRow
    steps: tuple[PageStep, ...]
    artifact: Artifact | None
    facts: HostFacts | None
    taints: tuple[Taint, ...] = ()
    server_facts: HostFacts | None = None


@dataclass(frozen=True, slots=True)
class PageData:
    """The newest trials of every cell: newest version first, then variant, axes, repetition."""

    trials: tuple[PageTrial, ...]


@dataclass(frozen=True, slots=True)
class LeaseOwner:
    """Who holds a host: enough to tell whether that process still lives."""

    name: str
    pid: int
    hostname: str
    start_time: int
    """Of the controller, in clock ticks since boot."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The exclusive right to use a host. A greater fence is a later holder."""

    host: str
    owner: LeaseOwner
    fence: int
    since: float
    heartbeat_at: float


MEMORY = "memory"
"""Stands for a device where a ceiling is of the host's memory."""


@dataclass(frozen=True, slots=True)
class CeilingRow:
    """What a host's device or memory can do, by one metric."""

    host: str
    device: str
    """Its name, or :data:`MEMORY`."""
    metric: str
    value: float
    taken_at: float
    step_run_id: int | None
    block_bytes: int | None = None
    """Size of the requests; ``None``: of whatever size."""
    workload: str | None = None
    """Of the trial that measured it."""
    step: str | None = None


@dataclass(frozen=True, slots=True)
class EventRow:
    """One entry of the journal."""

    id: int
    at: float
    sweep_id: int | None
    trial_id: str | None
    step_run_id: int | None
    what: str
    detail: Mapping[str, Any] = field(default_factory=dict)
