"""A step of a job becomes a command: argument list, environment, and a note on every flag.

Pure. What a version cannot take is translated, dropped and recorded, or refused; never silent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from benchrunner.arguments import Asked, asked_arguments, find_variant
from benchrunner.errors import ConfigurationError
from benchrunner.expressions import Scalar, expand, to_text
from benchrunner.flags import Knowledge, Policy, decide
from benchrunner.model import Command
from benchrunner.unfolding import with_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchrunner.definitions import Engine, Step, Tool, Variant, Workload
    from benchrunner.model import Artifact, FlagNote, Job

BASE_ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C",
}
"""A benchmark starts from the same environment whoever starts it; hosts and variants add to it."""

LOOPBACK = "127.0.0.1"
TIMEOUT_FACTOR = 3.0
TIMEOUT_EXTRA_S = 60.0


class Subject(Protocol):
    """What a command is made from: see ``run_parts.Subject``."""

    @property
    def workload(self) -> Workload:
        """The workload that the step is in, unfolded for the job."""
        ...

    @property
    def engine(self) -> Engine:
        """The engine under test."""
        ...

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools of its steps, by name."""
        ...

    @property
    def flags(self) -> Mapping[str, Any]:
        """Flag matrix of the engine's tool, empty when there is none."""
        ...

    @property
    def host_env(self) -> Mapping[str, str]:
        """Environment that the host adds."""
        ...

    @property
    def host_step_s(self) -> float | None:
        """Longest that the host allows a step to take."""
        ...


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one step of one repetition runs."""

    db_dir: str
    wal_dir: str
    run_dir: str = ""
    work_dir: str = ""
    repetition: int = 1
    server_address: str = LOOPBACK
    """On which services listen, and at which steps reach them."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a step should take, and when it is ended; ``None`` where the workload is silent."""

    expected_s: float | None
    timeout_s: float | None


def build_command(
    step: Step, subject: Subject, job: Job, artifact: Artifact | None, placement: Placement
) -> Command:
    """The command of a step.

    Args:
        step: one of the workload's steps.
        subject: its workload, tools and flag matrix.
        job: parameters, version and variant.
        artifact: the build to run; ``None`` in a dry run, where the flag matrix has the word.
        placement: directories and repetition.

    Raises:
        ConfigurationError: A flag is refused or no version knows it, a template has no value, the
            seed is missing, or the build has not the tool's binary.
    """
    workload, tool = subject.workload, subject.tools[step.tool]
    variant = find_variant(workload, job.variant)
    where = f"step {step.name} of {workload.name}"
    names = step_names(step, workload, job, placement)
    asked = asked_arguments(
        step, tool, workload, variant, subject.engine.args, as_shipped=job.as_shipped
    )
    notes = _notes(asked, tool, subject, _Context(job, artifact, names, where))
    head = _head(tool, artifact, names, where)
    wrap = tuple(to_text(expand(word, names, where=f"{where}, wrap")) for word in variant.wrap)
    flags = tuple(note.given for note in notes if note.given is not None)
    words = tuple(to_text(expand(word, names, where=f"{where}, words")) for word in step.words)
    environment = _environment(variant, subject, names, where)
    return Command((*wrap, *head, *flags, *words), environment, notes)


@dataclass(frozen=True, slots=True)
class _Context:
    """What a flag's value and fate depend on besides the flag."""

    job: Job
    artifact: Artifact | None
    names: Mapping[str, Scalar]
    where: str


def _notes(asked: Asked, tool: Tool, subject: Subject, context: _Context) -> tuple[FlagNote, ...]:
    """What becomes of every flag; one that is repeated has a note for each of its values."""
    where, names, artifact = context.where, context.names, context.artifact
    values = {
        flag: _value(value, names, f"{where}, {flag}")
        for flag, value in asked.values.items()
        if flag not in tool.repeat
    }
    _check_seed(values, tool, where)
    version = context.job.version if artifact is None else artifact.version
    knowledge = _knowledge(tool, subject, version, artifact)
    policy = _policy(asked, subject.workload, tool, context)
    notes = list(decide(values, tool, knowledge, policy))
    for flag, value in asked.values.items():
        if flag in tool.repeat:
            for word in value if isinstance(value, list) else [value]:
                one = expand(word, names, where=f"{where}, {flag}")
                notes += decide({flag: one}, tool, knowledge, policy)
    return tuple(notes)


def step_limits(step: Step, subject: Subject, job: Job) -> Limits:
    """Expected time of a step, and its time limit: three times that and a minute unless it says.

    The host may allow less (``limits.step_hours``).

    Raises:
        ConfigurationError: A template has no value, or not a number.
    """
    where = f"step {step.name} of {subject.workload.name}"
    params = with_value(step, job.params)
    expected = _seconds(step.seconds, params, f"{where}, seconds")
    timeout = _seconds(step.timeout_s, params, f"{where}, timeout_s")
    if timeout is None and expected is not None:
        timeout = TIMEOUT_FACTOR * expected + TIMEOUT_EXTRA_S
    if subject.host_step_s is not None:
        timeout = min(timeout or subject.host_step_s, subject.host_step_s)
    return Limits(expected, timeout)


def _seconds(template: Scalar | None, params: Mapping[str, Scalar], where: str) -> float | None:
    if template is None:
        return None
    value = expand(template, params, where=where)
    if isinstance(value, str | bool):
        raise ConfigurationError(
            f"{where}: {value!r} is not a number of seconds", 'seconds = "{N}"'
        )
    return float(value)


def step_names(step: Step, workload: Workload, job: Job, placement: Placement) -> dict[str, Scalar]:
    """Everything that a template of this step may name."""
    places = {
        "db_dir": placement.db_dir,
        "wal_dir": placement.wal_dir,
        "run_dir": placement.run_dir,
        "work_dir": placement.work_dir,
        "server_address": placement.server_address,
    }
    order = [one.name for one in workload.steps] + [one.name for one in workload.services]
    numbers = {"step_index": order.index(step.name) + 1, "repetition": placement.repetition}
    return {**with_value(step, job.params), **places, **numbers, "version": job.version}


def _value(template: Scalar | list[str], names: Mapping[str, Scalar], where: str) -> Scalar:
    if isinstance(template, list):
        return ",".join(to_text(expand(one, names, where=where)) for one in template)
    return expand(template, names, where=where)


def _check_seed(values: Mapping[str, Scalar], tool: Tool, where: str) -> None:
    """db_bench without a seed draws the same keys in every run before 7.2, and others since."""
    if tool.parser == "db_bench" and not values.get("seed"):
        what = "no seed" if "seed" not in values else "seed 0, which RocksDB replaces"
        raise ConfigurationError(
            f"{where} has {what}, so its keys would differ between versions",
            'seed = "{SEED + step_index + 1000 * (repetition - 1)}"',
        )


def _knowledge(tool: Tool, subject: Subject, version: str, artifact: Artifact | None) -> Knowledge:
    if tool.of_job or not tool.drives(subject.workload.engine):
        return Knowledge(version)
    return Knowledge(version, artifact.known_flags if artifact else None, subject.flags)


def _policy(asked: Asked, workload: Workload, tool: Tool, context: _Context) -> Policy:
    rules = workload.rule if tool.drives(workload.engine) else []
    drop = workload.unknown_flags == "drop"
    return Policy(rules, drop, asked.pinned, context.where, context.names)


def _head(
    tool: Tool, artifact: Artifact | None, names: Mapping[str, Scalar], where: str
) -> tuple[str, ...]:
    """The program and its fixed first arguments."""
    program = tool.binary or tool.name
    binary = program
    if artifact is not None:
        if tool.drives(artifact.engine) and program not in artifact.binaries:
            kept = ", ".join(sorted(artifact.binaries)) or "none"
            raise ConfigurationError(
                f"{where}: {artifact.engine} {artifact.version} was built without {program}",
                f"the engine's build.keep names the binaries; this build has {kept}",
            )
        binary = artifact.binaries.get(program, program)
    known = {**names, "binary": binary}
    words = tool.argv or ["{binary}"]
    return tuple(to_text(expand(word, known, where=f"tool {tool.name}, argv")) for word in words)


def _environment(
    variant: Variant, subject: Subject, names: Mapping[str, Scalar], where: str
) -> dict[str, str]:
    own = {
        name: to_text(expand(value, names, where=f"{where}, env.{name}"))
        for name, value in variant.env.items()
    }
    return {**BASE_ENVIRONMENT, **subject.host_env, **own}
