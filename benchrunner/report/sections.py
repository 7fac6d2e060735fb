"""The parts of a page around its tests: provenance, flags, metric definitions, commands. Pure."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from benchrunner.report.tables import find_metric
from benchrunner.report.view import (
    DASH,
    CellView,
    ColumnView,
    CommandView,
    MetricView,
    RowView,
    TableView,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchrunner.model import Artifact, FlagNote
    from benchrunner.report.input import Cell, ReportData, StepView

_SHORT_SHA = 12
_BETTER = {
    "higher": "higher is better",
    "lower": "lower is better",
    "neither": "neither way is better",
}


def command_text(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """Return a command as one could type it: environment, then quoted arguments.

    >>> command_text(["db_bench", "--db=/a b"], {"X": "1"})
    "X=1 db_bench '--db=/a b'"
    """
    settings = [f"{name}={shlex.quote(value)}" for name, value in sorted(env.items())]
    return " ".join([*settings, *(shlex.quote(part) for part in argv)])


def commands(cells: Sequence[Cell], steps: Sequence[str]) -> tuple[CommandView, ...]:
    """Return the full commands of a test in the newest version that ran it, one for each variant.

    ``cells`` are ordered newest first.
    """
    version = next((cell.version for cell in cells if _argv_of(cell, steps[0])), None)
    several = len({cell.host for cell in cells}) > 1
    found: dict[str, list[str]] = {}
    for cell in cells:
        if cell.version == version:
            for step in steps:
                text = _argv_of(cell, step)
                label = f"{cell.version} {cell.variant}"
                label += f" on {cell.host}" if several else ""
                label += f" {step}" if len(steps) > 1 else ""
                if text and label not in found.setdefault(text, []):
                    found[text].append(label)
    return tuple(CommandView(", ".join(labels), text) for text, labels in found.items())


def _argv_of(cell: Cell, step_name: str) -> str:
    for trial in cell.trials:
        step = trial.steps.get(step_name)
        if step is not None and step.argv:
            return command_text(step.argv, step.env)
    return ""


def provenance(cells: Sequence[Cell]) -> TableView:
    """Return one row for each binary, in the order of ``cells``: where it came from, what it is."""
    rows: dict[tuple[str, ...], RowView] = {}
    for cell in cells:
        for trial in cell.trials:
            row = _provenance_row(cell, trial.artifact)
            rows.setdefault(tuple(entry.text + entry.hover for entry in row.cells), row)
    titles = ("Engine", "Version", "Source", "Ref", "Commit", "Compiler", "Build flags", "SHA-256")
    return TableView(
        "provenance", "", tuple(ColumnView(title) for title in titles), tuple(rows.values())
    )


def build_lines(cells: Sequence[Cell]) -> tuple[tuple[str, str], ...]:
    """Return the lines of the setup that tell which compilers and sources made the binaries."""
    artifacts = [
        trial.artifact for cell in cells for trial in cell.trials if trial.artifact is not None
    ]
    compilers = dict.fromkeys(artifact.compiler for artifact in artifacts if artifact.compiler)
    versions: dict[str, dict[str, None]] = {}
    for artifact in artifacts:
        text = f"{artifact.version} ({' '.join(filter(None, (artifact.source, artifact.ref)))})"
        versions.setdefault(artifact.engine, {})[text] = None
    lines = [("Compiler", ", ".join(compilers))] if compilers else []
    return (*lines, *((f"Versions of {name}", ", ".join(v)) for name, v in versions.items()))


def _provenance_row(cell: Cell, artifact: Artifact | None) -> RowView:
    names = (CellView(cell.engine), CellView(cell.version))
    if artifact is None:
        return RowView((*names, *(CellView(DASH) for _ in range(6))), failed=True)
    state = "" if artifact.state == "built" else f" ({artifact.state})"
    flags = " ".join(f"{name}={value}" for name, value in sorted(artifact.build_flags.items()))
    sha = artifact.sha256
    return RowView(
        (
            *names,
            CellView(artifact.source + state),
            CellView(artifact.ref or DASH),
            _shortened(artifact.commit),
            CellView(artifact.compiler or DASH, wide=True),
            CellView(flags or DASH, wide=True),
            CellView(
                ", ".join(f"{name} {digest[:_SHORT_SHA]}" for name, digest in sorted(sha.items()))
                or DASH,
                hover=", ".join(f"{name} {digest}" for name, digest in sorted(sha.items())),
            ),
        ),
        failed=bool(state),
    )


def _shortened(commit: str | None) -> CellView:
    return CellView(commit[:_SHORT_SHA], hover=commit) if commit else CellView(DASH)


def flag_tables(cells: Sequence[Cell]) -> tuple[TableView, ...]:
    """Return, for each version, the flags that were translated or dropped; nothing is silent."""
    by_version: dict[tuple[str, str], dict[FlagNote, dict[str, None]]] = {}
    for cell in cells:
        for name, step in _steps_of(cell):
            for note in step.flags:
                if note.action != "given":
                    notes = by_version.setdefault((cell.engine, cell.version), {})
                    notes.setdefault(note, {})[name] = None
    titles = ("Flag", "Asked", "Given", "Action", "Reason", "Steps")
    columns = tuple(ColumnView(title) for title in titles)
    return tuple(
        TableView(
            f"flags-{engine}-{version}",
            f"{engine} {version}",
            columns,
            tuple(_flag_row(note, tuple(steps)) for note, steps in notes.items()),
        )
        for (engine, version), notes in by_version.items()
    )


def _steps_of(cell: Cell) -> Iterator[tuple[str, StepView]]:
    for trial in cell.trials:
        yield from trial.steps.items()


def _flag_row(note: FlagNote, steps: tuple[str, ...]) -> RowView:
    texts = (note.flag, note.asked, note.given or DASH, note.action)
    return RowView(
        (
            *(CellView(text) for text in texts),
            CellView(note.reason or DASH, wide=True),
            CellView(", ".join(steps), wide=True),
        )
    )


def metric_views(
    data: ReportData, used: Sequence[str], anchors: Mapping[str, str]
) -> tuple[MetricView, ...]:
    """Return the definitions that the page's column titles lead to, in the order of first use."""
    views: list[MetricView] = []
    for name in used:
        metric = find_metric(data.metrics, name, "The page")
        better = _BETTER[metric.better]
        views.append(
            MetricView(
                name,
                anchors[name],
                metric.title,
                metric.unit,
                better,
                metric.text,
                metric.comparable,
            )
        )
    return tuple(views)
