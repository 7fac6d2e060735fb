"""Store rows -> the report's input. Chooses what a page shows; lays nothing out."""

from __future__ import annotations

import gzip
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchrunner.derive import derive_test
from benchrunner.errors import NothingSelectedError
from benchrunner.model import Measurement
from benchrunner.report.input import (
    CeilingView,
    Cell,
    OptionDifference,
    RawText,
    ReportData,
    StepView,
    TrialView,
)
from benchrunner.unfolding import all_steps

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from benchrunner.definitions import Metric, Workload
    from benchrunner.store.rows import PageStep, PageTrial, StepRow
    from benchrunner.store.whole import Store

MAX_APPENDIX_BYTES = 64 * 1024
"""Of one raw output in a page's appendix; the rest is behind its link."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which trials a page is of."""

    sweep_ids: Collection[int] | None = None
    """Only those of these sweeps; ``None``: of all."""
    scale: str | None = None
    """Of the trials; ``None``: the scale of the newest one."""


def report_data(
    store: Store,
    workload: Workload,
    metrics: Mapping[str, Metric],
    raw_root: Path,
    asked: Asked,
    engine_titles: Mapping[str, str] | None = None,
) -> ReportData:
    """What the page of a workload shows: the newest trials of every cell at one scale.

    Args:
        store: where the results are.
        workload: whose page it is, with its layout as it is now.
        metrics: definitions by id.
        raw_root: folder below which raw run folders lie.
        asked: which trials.
        engine_titles: what the page calls engines; others have their names.

    Raises:
        NothingSelectedError: no trial of the workload has ended.
    """
    rows = store.page_rows(workload.name, sweep_ids=asked.sweep_ids, scale=asked.scale)
    found = rows.trials
    if not found:
        raise NothingSelectedError(
            f"the store has no finished trial of {workload.name}"
            + (f" at {asked.scale}" if asked.scale else ""),
            f"benchrunner sweep {workload.name} --scale smoke",
        )
    newest = max(found, key=lambda trial: trial.row.ended_at or 0)
    shown = [trial for trial in found if trial.row.job.scale == newest.row.job.scale]
    series = store.series(step.row.id for trial in shown for step in trial.steps)
    hosts = sorted({trial.row.job.host for trial in shown})
    sweep = store.sweep(newest.row.sweep_id)
    steps = all_steps(workload, (trial.row.job.params for trial in shown))
    workload = workload.model_copy(update={"steps": steps})
    return ReportData(
        workload=workload,
        params=newest.row.job.params,
        scale=newest.row.job.scale,
        host_facts=_host_facts(shown),
        cells=_cells(shown, series, workload, raw_root),
        metrics=metrics,
        generated_at=datetime.fromtimestamp(newest.row.ended_at or sweep.created_at, UTC),
        ceilings=_ceilings(store, shown, workload),
        appendix=_appendix(store, workload, raw_root, hosts),
        command_line=sweep.command_line,
        benchrunner_version=sweep.benchrunner_version,
        engine_titles=engine_titles or {},
    )


def _host_facts(trials: Sequence[PageTrial]) -> dict[str, Mapping[str, Any]]:
    """Facts of every host that steps or services ran on, as the newest trial has them."""
    found: dict[str, Mapping[str, Any]] = {}
    for trial in sorted(trials, key=lambda trial: trial.row.ended_at or 0):
        job = trial.row.job
        for host, facts in ((job.host, trial.facts), (job.server, trial.server_facts)):
            if facts is not None:
                found[host] = facts.facts
    return found


def _cells(
    trials: Sequence[PageTrial],
    series: Mapping[int, Mapping[str, tuple[tuple[float, float], ...]]],
    workload: Workload,
    raw_root: Path,
) -> tuple[Cell, ...]:
    groups: defaultdict[tuple[str, ...], list[PageTrial]] = defaultdict(list)
    for trial in trials:
        job = trial.row.job
        axes = repr(sorted(job.axes.items()))
        groups[(*_origin(trial), job.variant, job.host, job.server, axes)].append(trial)
    versions = _versions(trials)
    cells = []
    for members in groups.values():
        job = members[0].row.job
        views = tuple(_trial(trial, series, workload, raw_root) for trial in members)
        version = versions[_origin(members[0])]
        place = (job.variant, job.host, job.axes, views, job.server)
        cells.append(Cell(job.engine, version, *place))
    return tuple(cells)


class _Origin(NamedTuple):
    """What a trial ran, as far as a page tells versions apart."""

    engine: str
    asked: str
    """The version as asked for: ``7.2.2``, ``system``, ``main``."""
    source: str
    """Kind and word of the source; what is installed is called the same everywhere."""
    host: str
    """Where that can make a difference."""


def _origin(trial: PageTrial) -> _Origin:
    job = trial.row.job
    if job.source.kind == "system":
        return _Origin(job.engine, job.version, "system", job.host)
    return _Origin(job.engine, job.version, f"{job.source.kind} {job.source.ref}", "")


def _versions(trials: Sequence[PageTrial]) -> Mapping[_Origin, str]:
    """What the page calls each origin: the version that the built tree says it is.

    ``system`` and branch names mean nothing on a page. A variant that was skipped before anything
    was built has the version of the others. A tree of somebody's own is never taken for the
    release whose number it states, nor are two sources of one number for the same.
    """
    stated = {_origin(trial): trial.row.job.version for trial in trials}
    for trial in trials:
        if trial.artifact is not None:
            stated[_origin(trial)] = trial.artifact.version
    named = {origin: _named(origin, version) for origin, version in stated.items()}
    sources: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for origin, name in named.items():
        sources[origin.engine, name].add(origin.source)
    return {
        origin: name
        if len(sources[origin.engine, name]) == 1
        else f"{stated[origin]} ({origin.source})"
        for origin, name in named.items()
    }


def _named(origin: _Origin, version: str) -> str:
    kind, _, word = origin.source.partition(" ")
    return f"{version} ({Path(word).name})" if kind in ("path", "archive") else version


def _trial(
    trial: PageTrial,
    series: Mapping[int, Mapping[str, tuple[tuple[float, float], ...]]],
    workload: Workload,
    raw_root: Path,
) -> TrialView:
    row = trial.row
    steps = {
        step.row.step: _step(step, series.get(step.row.id, {}), raw_root) for step in trial.steps
    }
    steps = {
        name: replace(step, taints=(*trial.taints, *step.taints)) for name, step in steps.items()
    }
    for name, derived in _tests(trial, workload).items():
        if name in steps:
            extra = {(m.phase, m.run, m.role, m.metric): m.value for m in derived}
            steps[name] = replace(steps[name], measurements={**steps[name].measurements, **extra})
    return TrialView(
        row.id, row.repetition, row.state, row.reason, trial.artifact, steps, row.server_address
    )


def _tests(trial: PageTrial, workload: Workload) -> dict[str, tuple[Measurement, ...]]:
    """Figures of whole tests (``Time`` of bulkload = fillrandom + compact), by their first step."""
    by_step = {
        step.row.step: [Measurement(*key, value) for key, value in step.measurements.items()]
        for step in trial.steps
    }
    tests: dict[str, list[str]] = {}
    for step in workload.steps:
        tests.setdefault(step.part_of or step.name, []).append(step.name)
    return {
        head: derive_test([by_step.get(name, []) for name in names])
        for head, names in tests.items()
    }


def _step(
    step: PageStep, series: Mapping[str, tuple[tuple[float, float], ...]], raw_root: Path
) -> StepView:
    row = step.row
    return StepView(
        state=row.state,
        reason=row.reason,
        argv=row.argv,
        env=row.env,
        flags=row.flags,
        measurements=step.measurements,
        taints=step.taints,
        problems=row.problems,
        series=series,
        raw_files=raw_files(row, raw_root),
        option_differences=tuple(
            OptionDifference(d["flag"], d["asked"], d["effective"])
            for d in (row.options or {}).get("differs", ())
        ),
    )


def raw_files(row: StepRow, raw_root: Path) -> dict[str, Path]:
    """The stored files of a step run by their names without ``.gz``."""
    if not row.raw_path:
        return {}
    folder = raw_root / row.raw_path
    if not folder.is_dir():
        return {}
    return {path.name.removesuffix(".gz"): path for path in sorted(folder.iterdir())}


def _ceilings(
    store: Store, trials: Sequence[PageTrial], workload: Workload
) -> tuple[CeilingView, ...]:
    """What the devices below the trials' databases can do, and their hosts' memory."""
    if workload.ceiling is None:
        return ()
    wanted = set(workload.ceiling.taints.values())
    places = sorted({(t.row.job.host, t.facts.device) for t in trials if t.facts is not None})
    rows = {row: None for host, device in places for row in store.ceilings(host, device)}
    count = Counter(host for host, _ in places)
    return tuple(
        CeilingView(
            row.host, row.workload or "", row.metric, row.value, row.step or "", row.block_bytes,
            row.device if count[row.host] > 1 else "",
        )
        for row in rows
        if row.metric in wanted
    )  # fmt: skip


def _appendix(
    store: Store, workload: Workload, raw_root: Path, hosts: Sequence[str]
) -> tuple[RawText, ...]:
    """Raw outputs of the newest trials of the appendix's workloads, on the page's hosts."""
    texts = []
    for name in workload.page.appendix:
        newest: dict[str, PageTrial] = {}
        for trial in store.page_rows(name).trials:
            host = trial.row.job.host
            if host in hosts and (trial.row.ended_at or 0) >= _ended(newest.get(host)):
                newest[host] = trial
        for host, trial in sorted(newest.items()):
            for step in trial.steps:
                text = _stdout(step.row, raw_root)
                texts.append(RawText(f"{name}: {step.row.step}", text, step.row.argv, host))
    return tuple(texts)


def _ended(trial: PageTrial | None) -> float:
    return (trial.row.ended_at or 0) if trial is not None else -1.0


def _stdout(row: StepRow, raw_root: Path) -> str:
    path = raw_files(row, raw_root).get("stdout")
    if path is None:
        return row.reason
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        text = file.read(MAX_APPENDIX_BYTES).decode(errors="replace")
    return for_people(text)


def for_people(text: str) -> str:
    r"""What a tool printed, without the JSON that fio prints in between, and each line once.

    >>> print(for_people("a\nnote\nnote\nnote\n{\n  x\n}\nb\n"))
    a
    note
    (2 more lines like this)
    b
    """
    before, _, after = text.partition("\n{\n")
    _, _, rest = after.partition("\n}\n")
    lines: list[str] = []
    for line, same in groupby(f"{before}\n{rest}".strip().split("\n")):
        more = len(list(same)) - 1
        lines.append(line)
        if more and line.strip():
            lines.append(f"({more} more line{'s' if more > 1 else ''} like this)")
    return "\n".join(lines) or text
