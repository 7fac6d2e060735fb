"""What a report needs to know, as frozen values: the caller fills them from the store.

Nothing here knows the store; nothing in ``report`` asks for more than this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    from benchrunner.definitions import Metric, Workload
    from benchrunner.model import Artifact, FlagNote, StepState, Taint, TrialState

MeasurementKey = tuple[str | None, int, str | None, str]
"""(phase, run, role, metric id), as in ``model.Measurement``."""


@dataclass(frozen=True, slots=True)
class OptionDifference:
    """An option whose effective value (OPTIONS file) is not the one asked for."""

    name: str
    asked: str | None
    effective: str | None


@dataclass(frozen=True, slots=True)
class StepView:
    """One process of a trial: how it was started, how it ended, what it measured."""

    state: StepState
    reason: str = ""
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[FlagNote, ...] = ()
    measurements: Mapping[MeasurementKey, float] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    problems: tuple[str, ...] = ()
    series: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    """Metric id -> points (seconds since the step began, value)."""
    raw_files: Mapping[str, Path] = field(default_factory=dict)
    """``stdout``, ``stderr``, ``samples`` ... -> stored file, plain or gzip."""
    option_differences: tuple[OptionDifference, ...] = ()


@dataclass(frozen=True, slots=True)
class TrialView:
    """One repetition of a cell. ``id`` names its raw folder."""

    id: str
    repetition: int
    state: TrialState
    reason: str = ""
    artifact: Artifact | None = None
    steps: Mapping[str, StepView] = field(default_factory=dict)
    server_address: str | None = None
    """At which its steps reached their services, where these ran on another host."""


@dataclass(frozen=True, slots=True)
class Cell:
    """All trials of one engine version, variant, host, server and set of axis values."""

    engine: str
    version: str
    variant: str
    host: str
    axes: Mapping[str, Any] = field(default_factory=dict)
    trials: tuple[TrialView, ...] = ()
    server: str = ""
    """Host of the services; empty: the same as that of the steps."""


@dataclass(frozen=True, slots=True)
class CeilingView:
    """What a host can do, measured by a step of ``workload`` before the sweep."""

    host: str
    workload: str
    metric: str
    value: float
    step: str = ""
    block_bytes: int | None = None
    """Size of the requests; ``None``: of whatever size."""
    device: str = ""
    """Where a page has databases on several devices of the host."""


@dataclass(frozen=True, slots=True)
class RawText:
    """A raw output that the page prints whole in its appendix."""

    title: str
    text: str
    argv: tuple[str, ...] = ()
    host: str = ""


@dataclass(frozen=True, slots=True)
class ReportData:
    """Everything a page is made from. The same data gives the same bytes."""

    workload: Workload
    """With the steps that ran: those of ``each`` in place of the step that was written."""
    params: Mapping[str, Any]
    scale: str
    host_facts: Mapping[str, Mapping[str, Any]]
    """Host name -> nested facts (``HostFacts.facts``)."""
    cells: tuple[Cell, ...]
    metrics: Mapping[str, Metric]
    generated_at: datetime
    """With a time zone. The time of the newest trial makes a page that repeats to the byte."""
    ceilings: tuple[CeilingView, ...] = ()
    appendix: tuple[RawText, ...] = ()
    command_line: tuple[str, ...] = ()
    benchrunner_version: str = ""
    engine_titles: Mapping[str, str] = field(default_factory=dict)
    """Engine -> what pages call it; its name, where it is not there."""
