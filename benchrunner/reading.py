"""The parse stage over stored step runs: raw folder -> measurements, taints and problems.

Puts together what the tool printed, what the supervisor saw, what follows from both, and whether it
all fits together. Can be repeated at any time: raw output is kept for ever.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchrunner.ceiling import Limit, device_rates, saturation
from benchrunner.derive import DeriveContext, derive_step
from benchrunner.errors import OutputNotRecognisedError
from benchrunner.expressions import expand
from benchrunner.in_memory import not_in_memory
from benchrunner.model import Parsed, StepState
from benchrunner.parse import PARSERS, open_text, parse_output
from benchrunner.parse.supervisor import PARSER_VERSION, parse_status
from benchrunner.parse.validity import StepContext, find_problems
from benchrunner.steadiness import unsteady
from benchrunner.surroundings import (
    FILE,
    SERVER_FILE,
    of_server_host,
    servers_user_s,
    understood,
)
from benchrunner.unfolding import with_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from benchrunner.definitions import Engine, Step, Tool
    from benchrunner.model import Job, Measurement
    from benchrunner.run_parts import Subject


MAX_WORDS = 300
"""Characters of what a program said last that are kept in a reason."""


@dataclass(frozen=True, slots=True)
class StoredStep:
    """One step run as it lies in the results folder."""

    raw: Path
    state: StepState
    status: Mapping[str, Any] | None
    flags: Mapping[str, str]
    """Flags that were given, name -> value."""


@dataclass(frozen=True, slots=True)
class Understanding:
    """What a step run means now: ready to be stored."""

    parsed: Parsed
    derived: tuple[Measurement, ...]
    parser: str
    parser_version: str


def read_step(
    stored: StoredStep,
    step: Step,
    subject: Subject,
    job: Job,
    ceilings: Sequence[Limit],
) -> Understanding:
    """Everything that one step run's raw folder says.

    A step that did not end well keeps its resources (they tell why), but what its tool printed is
    read only for taints and facts: half a run's rate is not the rate of a run.
    """
    tool, workload, params = subject.tools[step.tool], subject.workload, job.params
    printed = _printed(stored, tool)
    if stored.state not in (StepState.OK, StepState.INVALID):
        printed = Parsed((), printed.taints, (), {}, printed.facts)
    left, far = _surroundings(stored, FILE), _surroundings(stored, SERVER_FILE)
    is_service = any(service.name == step.name for service in workload.services)
    watched = _watched(stored, None if is_service else servers_user_s(left))
    around = understood(left) if left else Parsed(())
    beyond = of_server_host(far, job.server) if far else Parsed(())
    measurements = printed.measurements + watched.measurements + device_rates(watched.series)
    taints = printed.taints + watched.taints + around.taints + beyond.taints
    taints += not_in_memory(workload, step, watched.measurements)
    taints += unsteady(workload, job.scale, printed.measurements)
    if workload.ceiling is not None and printed.measurements:
        taints += saturation(workload.ceiling, measurements, ceilings)
    problems = printed.problems
    complaint = ""
    if stored.state in (StepState.OK, StepState.INVALID):
        problems = problems or _unfinished(step, printed.measurements)
        problems += find_problems(measurements, _context(step, params, stored))
        problems = problems or _told_by_status(stored, tool)
    elif stored.state is StepState.FAILED:
        complaint = _last_words(stored)
    parsed = Parsed(
        measurements,
        taints,
        problems,
        {**watched.series, **printed.series},
        {**beyond.facts, **around.facts, **watched.facts, **printed.facts},
        complaint,
    )
    threads = _context(step, params, stored).threads
    sizes = replace(_sizes(params, subject.engine, stored.flags), threads=threads)
    derived = derive_step(measurements, sizes)
    version = f"{PARSERS[tool.parser].version}.{PARSER_VERSION}"
    return Understanding(parsed, derived, tool.parser, version)


def _unfinished(step: Step, measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """A result that the step was run for, and that is not there or cut short."""
    if step.phase is None or not step.measure:
        return ()
    found = {m.metric for m in measurements if m.phase == step.phase}
    if not found:
        return (f"the output has no result of {step.phase}",)
    if "usec_per_op" in found and "ops_per_sec" not in found:
        return (f"the result of {step.phase} is cut short: it has no ops/sec",)
    return ()


def _told_by_status(stored: StoredStep, tool: Tool) -> tuple[str, ...]:
    """A program can say by its exit status alone that its result is wrong."""
    code = (stored.status or {}).get("exit_code")
    if code not in tool.invalid_exits:
        return ()
    words = _last_words(stored)
    return (f"{tool.name} exited with status {code}{': ' if words else ''}{words}",)


def _last_words(stored: StoredStep) -> str:
    """The last line of a program that failed, which says why as a rule."""
    status = stored.status or {}
    if not status.get("exit_code"):
        return ""
    path = stored.raw / "stderr"
    try:
        with open_text(path) as text:
            lines = [line.strip() for line in text.read().replace("\r", "\n").split("\n")]
    except (OutputNotRecognisedError, EOFError, gzip.BadGzipFile):
        return ""
    said = [line for line in lines if line and "... thread " not in line]
    return said[-1][:MAX_WORDS] if said else ""


def _printed(stored: StoredStep, tool: Tool) -> Parsed:
    """What the tool printed; unrecognisable output of a step that claims success is a problem."""
    if tool.parser == "rules" and not tool.output:
        return Parsed(())  # a server: what it prints is kept, and no figure
    try:
        stdout = stored.raw / "stdout"
        return parse_output(tool.parser, stdout, stored.raw / "stderr", tool.output)
    except OutputNotRecognisedError as error:
        ended_well = stored.state in (StepState.OK, StepState.INVALID)
        why = error.message.removeprefix(f"{stored.raw / 'stdout'}: ")
        return Parsed((), (), (why,) if ended_well else ())


def _watched(stored: StoredStep, beside_user_s: float | None) -> Parsed:
    status = stored.status
    if status is None:
        path = stored.raw / "status.json"
        status = json.loads(path.read_text()) if path.exists() else None
    if not status or status.get("state") == "lost":
        return Parsed(())
    try:
        with open_text(stored.raw / "samples") as samples:
            return parse_status(status, samples, beside_user_s)
    except OutputNotRecognisedError:
        return parse_status(status)


def _surroundings(stored: StoredStep, name: str) -> dict[str, Any]:
    """What was done to a host before the step, and what else the host did during it."""
    path = stored.raw / f"{name}.gz"
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes())) if path.exists() else {}
    return found


def _context(step: Step, params: Mapping[str, Any], stored: StoredStep) -> StepContext:
    inside = with_value(step, params)
    threads = None if step.threads is None else expand(step.threads, inside, where=step.name)
    return StepContext(
        threads=int(threads) if threads is not None else None,
        seconds=_positive(stored.flags.get("duration")),
        wall_s=(stored.status or {}).get("wall_s"),
        phase=step.phase,
    )


def _sizes(params: Mapping[str, Any], engine: Engine, flags: Mapping[str, str]) -> DeriveContext:
    key, value = params.get("KEY_SIZE"), params.get("VALUE_SIZE")
    return DeriveContext(
        key_bytes=key if isinstance(key, int) else None,
        value_bytes=value if isinstance(value, int) else None,
        mapped=engine.data.mapped,
        duration_s=_positive(flags.get("duration")),
        writer_bytes_per_s=_positive(flags.get("benchmark_write_rate_limit")),
    )


def _positive(text: str | None) -> float | None:
    """The number that a flag has; 0 stands for none."""
    return (float(text) or None) if text else None
