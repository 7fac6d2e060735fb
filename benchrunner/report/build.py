"""Report data -> page view: the one place that decides a page's parts and their order. Pure."""

from __future__ import annotations

import shlex
from datetime import UTC
from typing import TYPE_CHECKING

from benchrunner.definitions import ChartDefinition, ColumnDefinition, TableDefinition
from benchrunner.report.anchors import Anchors
from benchrunner.report.charts import build_chart
from benchrunner.report.facts import host_view
from benchrunner.report.footnotes import Footnotes
from benchrunner.report.format import clean, fill
from benchrunner.report.lookup import step_outcome, values_of, varying
from benchrunner.report.sections import build_lines, commands, flag_tables, metric_views, provenance
from benchrunner.report.tables import build_table, ordered_cells
from benchrunner.report.view import AppendixView, PageView, TestView

if TYPE_CHECKING:
    from benchrunner.definitions import Step
    from benchrunner.report.input import Cell, ReportData


def build_page(data: ReportData) -> PageView:
    """Return the page of a workload: the same for every markup."""
    anchors, notes = Anchors(), Footnotes()
    tables = page_tables(data)
    heads = [step for step in data.workload.steps if _is_test(data, step, tables)]
    headings: list[tuple[str, str]] = [("Setup", anchors.take("Setup"))]
    titles = {step.name: _filled(data, step, step.title) or step.name for step in heads}
    taken = {step.name: anchors.take(titles[step.name]) for step in heads}
    headings += [(titles[name], anchor) for name, anchor in taken.items()]
    appendix = _appendix(data, anchors, headings)
    flags = flag_tables(newest_first(data))
    closing = ["Provenance", *(["Flags"] if flags else []), "Metrics"]
    headings += [(title, anchors.take(title)) for title in closing]
    used = _used_metrics(tables)
    metric_anchors = {name: anchors.take(name) for name in used}
    tests = tuple(
        _test(data, step, (titles[step.name], taken[step.name]), notes, metric_anchors)
        for step in heads
    )
    if notes.texts:
        headings.append(("Footnotes", anchors.take("Footnotes")))
    return PageView(
        name=data.workload.name,
        title=data.workload.page.title or data.workload.title,
        subtitle=_subtitle(data),
        intro=tuple(filter(None, fill(data.workload.page.intro, data.params, {}).split("\n\n"))),
        contents=tuple(headings),
        hosts=tuple(host_view(data, host) for host in _hosts(data)),
        builds=build_lines(newest_first(data)),
        setup=tuple(fill(line, data.params, {}) for line in data.workload.page.setup),
        params=tuple((name, str(value)) for name, value in data.params.items()),
        tests=tests,
        appendix=appendix,
        provenance=provenance(newest_first(data)),
        flags=flags,
        metrics=metric_views(data, used, metric_anchors),
        footnotes=tuple(notes.texts),
    )


def newest_first(data: ReportData) -> tuple[Cell, ...]:
    """Return the cells in the order of the page's rows."""
    keys = ("engine", "version:desc", "variant", "host", *varying(data.cells))
    return ordered_cells(data.cells, keys, [variant.name for variant in data.workload.variants])


def page_tables(data: ReportData) -> tuple[TableDefinition, ...]:
    """Return the workload's tables; without any, one for each test with all that was measured."""
    if data.workload.page.tables:
        return tuple(data.workload.page.tables)
    tables: list[TableDefinition] = []
    for step in data.workload.steps:
        found = _measured_ids(data, step)
        if step.measure and step.part_of is None and found:
            tables.append(TableDefinition(step=step.name, columns=list(found)))
    return tuple(tables)


def named_tables(data: ReportData) -> tuple[tuple[str, TableDefinition], ...]:
    """Return every table with the name of its files, unique on the page."""
    named: dict[str, TableDefinition] = {}
    for table in page_tables(data):
        words = "".join(sign if sign.isalnum() else "-" for sign in table.title.lower())
        name = f"{table.step}-{words}".strip("-")
        twins = sum(1 for other in named if other == name or other.startswith(f"{name}~"))
        named[f"{name}~{twins + 1}" if twins else name] = table
    return tuple((name.replace("~", "-"), table) for name, table in named.items())


def _measured_ids(data: ReportData, step: Step) -> tuple[str, ...]:
    seen = {
        metric
        for cell in data.cells
        for counted in step_outcome(cell, step.name).steps
        for phase, _, role, metric in counted.measurements
        if role is None and phase in (None, step.phase)
    }
    return tuple(name for name in data.metrics if name in seen)


def _is_test(data: ReportData, step: Step, tables: tuple[TableDefinition, ...]) -> bool:
    if step.part_of is not None:
        return False
    return step.measure or any(table.step == step.name for table in tables)


def _used_metrics(tables: tuple[TableDefinition, ...]) -> tuple[str, ...]:
    names = (
        entry.metric if isinstance(entry, ColumnDefinition) else entry
        for table in tables
        for entry in table.columns
    )
    return tuple(dict.fromkeys(names))


def _hosts(data: ReportData) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*(cell.host for cell in data.cells), *data.host_facts]))


def _filled(data: ReportData, step: Step, text: str) -> str:
    measured = {
        name: tuple(
            value
            for cell in data.cells
            for value in values_of(step_outcome(cell, step.name).steps, name, step.phase, None)
        )
        for name in data.metrics
        if f"{{{name}" in text
    }
    return fill(text, data.params, measured)


def _test(
    data: ReportData,
    step: Step,
    heading: tuple[str, str],
    notes: Footnotes,
    metric_anchors: dict[str, str],
) -> TestView:
    members = [
        other.name for other in data.workload.steps if step.name in (other.name, other.part_of)
    ]
    own_tables = [(name, table) for name, table in named_tables(data) if table.step == step.name]
    own_charts = [chart for chart in data.workload.page.charts if chart.step == step.name]
    built = (
        build_chart(data, chart, _chart_name(chart, place, own_charts))
        for place, chart in enumerate(own_charts)
    )
    return TestView(
        title=heading[0],
        anchor=heading[1],
        command=_filled(data, step, step.command),
        commands=commands(newest_first(data), members),
        paragraphs=tuple(filter(None, _filled(data, step, step.text).split("\n\n"))),
        tables=tuple(
            build_table(data, table, name, notes, metric_anchors) for name, table in own_tables
        ),
        charts=tuple(chart for chart in built if chart is not None),
    )


def _chart_name(chart: ChartDefinition, place: int, charts: list[ChartDefinition]) -> str:
    name = f"{chart.step}-{chart.kind}"
    if chart.kind != "percentiles":
        name += f"-{chart.metric}"
    twins = [
        other
        for other in charts[:place]
        if (other.kind, other.metric) == (chart.kind, chart.metric)
    ]
    return f"{name}-{len(twins) + 1}" if twins else name


def _appendix(
    data: ReportData, anchors: Anchors, headings: list[tuple[str, str]]
) -> tuple[AppendixView, ...]:
    if not data.appendix:
        return ()
    headings.append(("Appendix", anchors.take("Appendix")))
    views: list[AppendixView] = []
    for raw in data.appendix:
        title = f"{raw.title} on {raw.host}" if raw.host and len(_hosts(data)) > 1 else raw.title
        view = AppendixView(title, anchors.take(title), shlex.join(raw.argv), clean(raw.text))
        headings.append((title, view.anchor))
        views.append(view)
    return tuple(views)


def _subtitle(data: ReportData) -> str:
    when = data.generated_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    by = f" by benchrunner {data.benchrunner_version}".rstrip()
    typed = f" from: {shlex.join(data.command_line)}" if data.command_line else ""
    return f"Workload {data.workload.name}, scale {data.scale}. Made {when}{by}{typed}"
