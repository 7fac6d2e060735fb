"""What the runner of trials holds in its hands: plain values, and the hooks of others."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from benchrunner.expressions import expand, to_text
from benchrunner.unfolding import service_step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchrunner import definitions
    from benchrunner.model import (
        Artifact,
        Command,
        FlagNote,
        Handle,
        Job,
        PlannedTrial,
        StepState,
    )
    from benchrunner.services import Services
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
        """The definition of a step of this workload; a service's is that of the step it runs as."""
        for service in self.workload.services:
            if service.name == name:
                return service_step(service)
        return next(step for step in self.workload.steps if step.name == name)


@dataclass(frozen=True, slots=True)
class Beside:
    """Pids of the supervisors of servers that run beside a step."""

    here: tuple[int, ...] = ()
    """On its own host."""
    there: tuple[int, ...] = ()
    """On the host of services, where that is another one."""


def _nothing(
    _subject: Subject, _step: definitions.Step, _expected_s: float | None, _beside: Beside
) -> None:
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
    before_start: Callable[[Subject, definitions.Step, float | None, Beside], None] = _nothing
    """Prepares the host for a step of so many expected seconds, beside which servers run; not for
    one that was adopted."""
    after_end: Callable[[], Mapping[str, bytes]] = dict
    """Files about the host during the step, for its raw folder."""
    after_removal: Callable[[str], None] = lambda _trial_id: None
    """Called once a trial's folders on the host are gone, before its end is journalled."""


@dataclass(frozen=True, slots=True)
class Begun:
    """An attempt at a trial."""

    trial: PlannedTrial
    subject: Subject
    artifact: Artifact
    attempt: int
    sides: Mapping[str, Side] = field(default_factory=dict)
    """Engine -> what steps of it run instead."""

    def side(self, step: definitions.Step) -> Side:
        """What a step is a step of: the job, or another engine beside it."""
        return self.sides.get(step.engine) or Side(self.subject, self.trial.job, self.artifact)

    def lacks(self, step: definitions.Step) -> str:
        """Why a step has no program: its engine could not be built."""
        side = self.side(step)
        tool = self.subject.tools[step.tool]
        if side.artifact.state == "built" or not tool.drives(side.subject.engine.name):
            return ""
        return f"{side.subject.engine.title} is not there: {side.artifact.reason}"


@dataclass(frozen=True, slots=True)
class Side:
    """Another engine whose program some steps run (``also``): as if the job were of that one."""

    subject: Subject
    job: Job
    artifact: Artifact


def beside(
    subject: Subject, job: Job, engine: definitions.Engine, flags: Mapping[str, Any]
) -> tuple[Subject, Job]:
    """A subject and its job as those of another engine."""
    own = subject.workload.model_copy(update={"engine": engine.name})
    version = to_text(expand(own.also[engine.name], job.params, where=f"also.{engine.name}"))
    return (
        replace(subject, engine=engine, workload=own, flags=flags),
        replace(job, engine=engine.name, version=version),
    )


@dataclass(frozen=True, slots=True)
class StepToRun:
    """One step of one trial, with all that is needed to run it."""

    begun: Begun
    definition: definitions.Step
    position: int
    opens: bool
    """Whether no step's process was started before in its attempt."""
    services: Services
    """The servers of the attempt."""

    @property
    def options_glob(self) -> str:
        """Name of the file in which the engine states its options; empty for other programs."""
        subject = self.begun.subject
        is_engine_tool = subject.tools[self.definition.tool].drives(subject.engine.name)
        return subject.engine.data.effective_options if is_engine_tool else ""

    @property
    def begins_anew(self) -> bool:
        """Whether it loads a database of the engine where an earlier step did: that one goes."""
        workload, tools = self.subject.workload, self.subject.tools
        loading = {
            step.name
            for step in workload.steps
            if step.state == "creates" and tools[step.tool].drives(workload.engine)
        }
        earlier = self.trial.job.steps[: self.position - 1]
        return self.definition.name in loading and not loading.isdisjoint(earlier)

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
