"""The raw page of a trial: everything behind its numbers, down to what the process printed.

Reads the stored raw files; long texts are shown by their two ends with a link to the file.
"""

from __future__ import annotations

import gzip
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, cast

from benchrunner.model import StepState
from benchrunner.report.facts import flattened
from benchrunner.report.format import clean, safe_name
from benchrunner.report.lookup import place_text
from benchrunner.report.sections import command_text
from benchrunner.report.view import DASH

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchrunner.model import FlagNote, Taint
    from benchrunner.report.input import Cell, OptionDifference, ReportData, StepView, TrialView

LONGEST_TEXT_BYTES = 1 << 20
_CHUNK_BYTES = 1 << 16
_GZIP_MAGIC = b"\x1f\x8b"
_SHOWN = ("stdout", "stderr")


@dataclass(frozen=True, slots=True)
class RawFile:
    """A stored file: its name, where the page folder has it, and its text if that is shown."""

    name: str
    href: str
    """Relative to the folder ``raw``."""
    text: str | None = None
    left_out_bytes: int = 0


@dataclass(frozen=True, slots=True)
class MeasurementRow:
    """One measured number with its coordinates, as text."""

    phase: str
    run: str
    role: str
    metric: str
    title: str
    value: str
    unit: str


@dataclass(frozen=True, slots=True)
class StepPage:
    """One process of a trial."""

    name: str
    state: str
    reason: str
    command: str
    flags: tuple[FlagNote, ...]
    options: tuple[OptionDifference, ...]
    measurements: tuple[MeasurementRow, ...]
    taints: tuple[Taint, ...]
    problems: tuple[str, ...]
    files: tuple[RawFile, ...]


@dataclass(frozen=True, slots=True)
class TrialPage:
    """One trial, ready to be laid out."""

    id: str
    title: str
    state: str
    reason: str
    artifact: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]
    steps: tuple[StepPage, ...]


def trial_page(data: ReportData, cell: Cell, trial: TrialView) -> TrialPage:
    """Return the raw page of one trial; reads what its processes printed."""
    title = f"{cell.engine} {cell.version} {cell.variant} on {place_text(cell)}"
    facts = [*flattened(data.host_facts.get(cell.host, {}))]
    if cell.server:
        facts += flattened(data.host_facts.get(cell.server, {}), cell.server)
    axes = "".join(f", {name} {value}" for name, value in cell.axes.items())
    return TrialPage(
        id=trial.id,
        title=f"{title}{axes}, repetition {trial.repetition}",
        state=trial.state.value,
        reason=trial.reason,
        artifact=_artifact(trial),
        facts=tuple(facts),
        steps=tuple(_step_page(data, trial.id, name, step) for name, step in trial.steps.items()),
    )


def raw_files(trial: TrialView) -> Iterator[tuple[str, Path]]:
    """Yield (path relative to the folder ``raw``, stored file) for all that a trial left."""
    for step_name, step in trial.steps.items():
        for name, path in step.raw_files.items():
            yield _href(trial.id, step_name, name, path), path


def _href(trial_id: str, step_name: str, name: str, path: Path) -> str:
    ending = path.suffix if path.suffix == ".gz" and not name.endswith(".gz") else ""
    parts = (
        safe_name(trial_id, "trial id"),
        safe_name(step_name, "step name"),
        safe_name(name, "raw file name") + ending,
    )
    return "/".join(parts)


def _artifact(trial: TrialView) -> tuple[tuple[str, str], ...]:
    artifact = trial.artifact
    if artifact is None:
        return ()
    pairs = [
        ("Engine", f"{artifact.engine} {artifact.version}"),
        ("Source", f"{artifact.source} {artifact.ref}"),
        ("Commit", artifact.commit or DASH),
        ("Compiler", artifact.compiler or DASH),
        ("Features", ", ".join(sorted(artifact.features)) or DASH),
        *((f"SHA-256 of {name}", digest) for name, digest in sorted(artifact.sha256.items())),
        *((f"Built with {name}", value) for name, value in sorted(artifact.build_flags.items())),
        ("Artifact", f"{artifact.id} ({artifact.state})"),
    ]
    return (*pairs, ("Reason", artifact.reason)) if artifact.reason else tuple(pairs)


def _step_page(data: ReportData, trial_id: str, name: str, step: StepView) -> StepPage:
    return StepPage(
        name=name,
        state=step.state.value,
        reason=step.reason,
        command=command_text(step.argv, step.env),
        flags=step.flags,
        options=step.option_differences,
        measurements=_measurements(data, step),
        taints=step.taints,
        problems=step.problems,
        files=tuple(
            _raw_file(_href(trial_id, name, file_name, path), file_name, path)
            for file_name, path in step.raw_files.items()
        ),
    )


def _measurements(data: ReportData, step: StepView) -> tuple[MeasurementRow, ...]:
    """Return every number at full precision; an invalid step's are withheld."""
    rows: list[MeasurementRow] = []
    for (phase, run, role, name), value in step.measurements.items():
        metric = data.metrics.get(name)
        rows.append(
            MeasurementRow(
                phase=phase or DASH,
                run=str(run),
                role=role or DASH,
                metric=name,
                title=metric.title if metric else name,
                value=DASH if step.state is StepState.INVALID else f"{value:.15g}",
                unit=metric.unit if metric else "",
            )
        )
    return tuple(rows)


def _raw_file(href: str, name: str, path: Path) -> RawFile:
    if name not in _SHOWN:
        return RawFile(name, href)
    if not path.is_file():
        return RawFile(name, "", "(the file is no longer there)")
    text, left_out = read_ends(path, LONGEST_TEXT_BYTES)
    return RawFile(name, href, text, left_out)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    with path.open("rb") as file:
        packed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        file.seek(0)
        yield cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if packed else file


def read_ends(path: Path, limit_bytes: int) -> tuple[str, int]:
    """Return a file's text and how many bytes were left out of its middle.

    The end matters most: tools print their summary there. Memory stays bounded.
    """
    half = limit_bytes // 2
    head, tail, size = b"", b"", 0
    with _opened(path) as file:
        head = file.read(half)
        size = len(head)
        while chunk := file.read(_CHUNK_BYTES):
            size += len(chunk)
            tail = (tail + chunk)[-half:]
    left_out = size - len(head) - len(tail)
    gap = f"\n... {left_out} bytes left out ...\n".encode() if left_out else b""
    return clean((head + gap + tail).decode(errors="replace")), left_out
