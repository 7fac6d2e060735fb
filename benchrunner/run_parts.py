"""What the runner of trials holds in its hands: plain values, and the hooks of others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchrunner import definitions
    from benchrunner.model import Artifact, Command, FlagNote, Handle, PlannedTrial, StepState
    from benchrunner.store.rows import EndedStep


@dataclass(frozen=True, slots=True)
class StepEnd:
    """What is stored when a step's process has ended."""

    reason: str = ""
    status: Mapping[str, Any] | None = None
    raw_path: str | None = None
    raw_sha256: str | None = None
    options: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """What a trial runs: definitions of its workload, its engine and the tools of its steps."""

    workload: definitions.Workload
    engine: definitions.Engine
    tools: Mapping[str, definitions.Tool]
    flags: Mapping[str, Any]
    """Flag matrix of the engine's tool (``engines/flags/*.json``), empty when there is none."""
    host_env: Mapping[str, str] = field(default_factory=dict)
    host_step_s: float | None = None
    """Longest that the host allows a step to take."""

    def step(self, name: str) -> definitions.Step:
        """The definition of a step of this workload."""
        return next(step for step in self.workload.steps if step.name == name)


def _nothing(_subject: Subject, _step: definitions.Step, _expected_s: float | None) -> None:
    """No preparation."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """What others do with what happened here."""

    after_step: Callable[[EndedStep], tuple[StepState, str]]
    """Reads a step run's raw output; returns its state and reason then."""
    compare_options: Callable[[Command, str], Mapping[str, Any]]
    """Options asked for against the text of those that applied."""
    before_end: Callable[[str], None] = lambda _trial_id: None
    """Called before a trial's end is journalled; again after a crash there."""
    before_start: Callable[[Subject, definitions.Step, float | None], None] = _nothing
    """Prepares the host for a step of so many expected seconds; not for one that was adopted."""
    after_end: Callable[[], Mapping[str, bytes]] = dict
    """Files about the host during the step, for its raw folder."""


@dataclass(frozen=True, slots=True)
class Begun:
    """An attempt at a trial."""

    trial: PlannedTrial
    subject: Subject
    artifact: Artifact
    attempt: int


@dataclass(frozen=True, slots=True)
class StepToRun:
    """One step of one trial, with all that is needed to run it."""

    begun: Begun
    definition: definitions.Step
    position: int
    opens: bool
    """Whether its process is the first of its attempt, and so makes the database folders."""

    @property
    def options_glob(self) -> str:
        """Name of the file in which the engine states its options; empty for other programs."""
        subject = self.begun.subject
        is_engine_tool = subject.tools[self.definition.tool].engine == subject.engine.name
        return subject.engine.data.effective_options if is_engine_tool else ""

    @property
    def is_last(self) -> bool:
        """Whether no other step of its trial comes after it."""
        return self.position == len(self.trial.job.steps)

    @property
    def trial(self) -> PlannedTrial:
        """Whose step it is."""
        return self.begun.trial

    @property
    def subject(self) -> Subject:
        """What the trial runs."""
        return self.begun.subject

    @property
    def attempt(self) -> int:
        """Number of the attempt."""
        return self.begun.attempt


@dataclass(frozen=True, slots=True)
class Running:
    """A step whose process was started, by this controller or by one before it."""

    step: StepToRun
    step_run_id: int
    command: Command
    handle: Handle
    adopted: bool
    known: StepState
    """What the journal says of it."""
    stopped: bool = False
    """Whether somebody wanted it ended before it was watched."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A step run whose end is in the journal: an ``EndedStep``."""

    id: int
    trial_id: str
    step: str
    state: StepState
    reason: str
    status: Mapping[str, Any] | None
    raw_path: str | None
    flags: tuple[FlagNote, ...]
