"""The parts of a page around its tests: provenance, flags, metric definitions, commands. Pure."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from benchrunner.report.lookup import place_text
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

    from benchrunner.definitions import Workload
    from benchrunner.model import Artifact, FlagNote
    from benchrunner.report.input import Cell, ReportData, StepView, TrialView

_SHORT_SHA = 12
_LONGEST_FLAGS = 48
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


def commands(
    cells: Sequence[Cell], steps: Sequence[str], titles: Mapping[str, str]
) -> tuple[CommandView, ...]:
    """Return the full commands of a test, one for each variant.

    Args:
        cells: Newest first; of each engine the newest version that ran the test is taken.
        steps: The test's processes, the one that heads it first.
        titles: What the page calls the engines.
    """
    versions: dict[str, str] = {}
    for cell in cells:
        if any(_argv_of(cell, step) for step in steps):
            versions.setdefault(cell.engine, cell.version)
    several = len({place_text(cell) for cell in cells}) > 1
    found: dict[str, list[str]] = {}
    for cell in cells:
        if cell.version == versions.get(cell.engine):
            for step in steps:
                text = _argv_of(cell, step)
                label = f"{titles.get(cell.engine, cell.engine)} " if len(versions) > 1 else ""
                label += f"{cell.version} {cell.variant}"
                label += f" on {place_text(cell)}" if several else ""
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


def server_lines(data: ReportData) -> tuple[str, ...]:
    """Return in words where the servers of a page ran, one line for each pair of hosts."""
    lines: dict[str, None] = {}
    needy = steps_with_services(data.workload)
    several = len({cell.host for cell in data.cells}) > 1
    for cell in sorted(data.cells, key=place_text):
        if not cell.server and any(needy.intersection(trial.steps) for trial in cell.trials):
            on = f" on {cell.host}" if several else ""
            lines[f"Servers ran beside their clients{on}, reached over loopback"] = None
        for trial in cell.trials if cell.server else ():
            lines[server_line(cell, trial)] = None
    return tuple(lines)


def steps_with_services(workload: Workload) -> set[str]:
    """Return the names of the steps that need a server."""
    return {step.name for step in workload.steps if step.services}


def server_line(cell: Cell, trial: TrialView) -> str:
    """Return in words where the servers of a trial ran."""
    at = f" at {trial.server_address}" if trial.server_address else ""
    return f"Servers ran on {cell.server}, reached from {cell.host}{at}"


def provenance(cells: Sequence[Cell], titles: Mapping[str, str]) -> TableView:
    """Return one row for each binary, in the order of ``cells``: where it came from, what it is."""
    rows: dict[tuple[str, ...], RowView] = {}
    for cell in cells:
        for trial in cell.trials:
            row = _provenance_row(cell, trial.artifact, titles)
            rows.setdefault(tuple(entry.text + entry.hover for entry in row.cells), row)
    heads = ("Engine", "Version", "Source", "Ref", "Commit", "Compiler", "Build flags", "SHA-256")
    return TableView(
        "provenance", "", tuple(ColumnView(head) for head in heads), tuple(rows.values())
    )


def build_lines(cells: Sequence[Cell], titles: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the lines of the setup that tell which compilers and sources made the binaries."""
    found = [
        (cell.engine, trial.artifact)
        for cell in cells
        for trial in cell.trials
        if trial.artifact is not None and trial.artifact.state == "built"
    ]
    compilers = dict.fromkeys(artifact.compiler for _, artifact in found if artifact.compiler)
    versions: dict[str, dict[str, None]] = {}
    for engine, artifact in found:
        text = f"{artifact.version} ({' '.join(filter(None, (artifact.source, artifact.ref)))})"
        versions.setdefault(titles.get(engine, engine), {})[text] = None
    lines = [("Compiler", ", ".join(compilers))] if compilers else []
    return (*lines, *((f"Versions of {name}", ", ".join(v)) for name, v in versions.items()))


def _provenance_row(cell: Cell, artifact: Artifact | None, titles: Mapping[str, str]) -> RowView:
    names = (CellView(titles.get(cell.engine, cell.engine)), CellView(cell.version))
    if artifact is None:
        return RowView((*names, *(CellView(DASH) for _ in range(6))), failed=True)
    state = "" if artifact.state == "built" else f" ({artifact.state})"
    flags = sorted(artifact.build_flags.items())
    brief = " ".join(f"{name}={_cut(value)}" for name, value in flags)
    whole = " ".join(f"{name}={value}" for name, value in flags)
    sha = artifact.sha256
    return RowView(
        (
            *names,
            CellView(artifact.source + state),
            CellView(artifact.ref or DASH),
            _shortened(artifact.commit),
            CellView(artifact.compiler or DASH, wide=True),
            CellView(brief or DASH, hover=whole if whole != brief else "", wide=True),
            CellView(
                ", ".join(f"{name} {digest[:_SHORT_SHA]}" for name, digest in sorted(sha.items()))
                or DASH,
                hover=", ".join(f"{name} {digest}" for name, digest in sorted(sha.items())),
                wide=True,
            ),
        ),
        failed=bool(state),
    )


def _cut(value: str) -> str:
    """Return the beginning of a long list of compiler flags; the raw pages have all of it."""
    if len(value) <= _LONGEST_FLAGS:
        return value
    return f"{value[:_LONGEST_FLAGS].rpartition(' ')[0] or value[:_LONGEST_FLAGS]} ..."


def _shortened(commit: str | None) -> CellView:
    return CellView(commit[:_SHORT_SHA], hover=commit) if commit else CellView(DASH)


def flag_tables(cells: Sequence[Cell], titles: Mapping[str, str]) -> tuple[TableView, ...]:
    """Return, for each version, the flags that were translated or dropped; nothing is silent."""
    by_version: dict[tuple[str, str], dict[FlagNote, dict[str, None]]] = {}
    for cell in cells:
        for name, step in _steps_of(cell):
            for note in step.flags:
                if note.action != "given":
                    notes = by_version.setdefault((cell.engine, cell.version), {})
                    notes.setdefault(note, {})[name] = None
    heads = ("Flag", "Asked", "Given", "Action", "Reason", "Steps")
    columns = tuple(ColumnView(head) for head in heads)
    return tuple(
        TableView(
            f"flags-{engine}-{version}",
            f"{titles.get(engine, engine)} {version}",
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
