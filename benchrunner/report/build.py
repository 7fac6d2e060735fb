"""Report data -> page view: the one place that decides a page's parts and their order. Pure."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING

from benchrunner.definitions import ChartDefinition, ColumnDefinition, TableDefinition
from benchrunner.report.anchors import Anchors
from benchrunner.report.charts import build_chart
from benchrunner.report.facts import host_view
from benchrunner.report.families import Family, families
from benchrunner.report.footnotes import Footnotes
from benchrunner.report.format import clean, fill, param_text
from benchrunner.report.lines import line_metrics, line_tables
from benchrunner.report.lookup import step_outcome, values_of, varying
from benchrunner.report.order import ordered_cells
from benchrunner.report.sections import (
    build_lines,
    commands,
    flag_tables,
    metric_views,
    provenance,
    server_line,
    server_lines,
    steps_with_services,
)
from benchrunner.report.tables import build_tables
from benchrunner.report.view import AppendixView, ContentView, PageView, PartView, TestView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchrunner.report.input import Cell, ReportData
    from benchrunner.report.tables import PlacedTable
    from benchrunner.report.view import ChartView


@dataclass(frozen=True, slots=True)
class _Section:
    """A test's place on the page: what it shows, and the anchors of its headings."""

    family: Family
    title: str
    anchor: str
    parts: Mapping[str, str]
    """Engine -> anchor, where something is shown for each engine under a heading of its own."""


def build_page(data: ReportData) -> PageView:
    """Return the page of a workload: the same for every markup."""
    anchors, notes = Anchors(), Footnotes()
    tables = page_tables(data)
    contents = [ContentView("Setup", anchors.take("Setup"))]
    sections = [
        _section(data, one, anchors) for one in families(data.workload) if _is_test(data, one)
    ]
    groups = [(name, anchors.take(data.workload.groups[name])) for name in _groups(data)]
    contents += [ContentView(data.workload.groups[name], anchor) for name, anchor in groups]
    for section in sections:
        contents.append(ContentView(section.title, section.anchor))
        contents += [
            ContentView(data.engine_titles.get(engine, engine), anchor, level=1)
            for engine, anchor in section.parts.items()
        ]
    appendix = _appendix(data, anchors, contents)
    flags = flag_tables(newest_first(data), data.engine_titles)
    closing = ["Provenance", *(["Flags"] if flags else []), "Metrics"]
    contents += [ContentView(title, anchors.take(title)) for title in closing]
    used = tuple(dict.fromkeys((*_used_metrics(tables), *line_metrics(data.workload))))
    metric_anchors = {name: anchors.take(name) for name in used}
    tests = tuple(
        _group(data, name, anchor, notes, metric_anchors)
        for name, anchor in groups
    )  # fmt: skip
    tests += tuple(_test(data, section, notes, metric_anchors) for section in sections)
    if notes.texts:
        contents.append(ContentView("Footnotes", anchors.take("Footnotes")))
    return PageView(
        name=data.workload.name,
        title=data.workload.page.title or data.workload.title,
        subtitle=_subtitle(data),
        intro=tuple(filter(None, fill(data.workload.page.intro, data.params, {}).split("\n\n"))),
        contents=tuple(contents),
        hosts=tuple(host_view(data, host) for host in _hosts(data)),
        builds=build_lines(newest_first(data), data.engine_titles),
        setup=(
            *(fill(line, data.params, {}) for line in data.workload.page.setup),
            *server_lines(data),
        ),
        params=tuple((name, param_text(value)) for name, value in data.params.items()),
        tests=tests,
        appendix=appendix,
        provenance=provenance(newest_first(data), data.engine_titles),
        flags=flags,
        metrics=metric_views(data, used, metric_anchors),
        footnotes=tuple(notes.texts),
    )


def newest_first(data: ReportData) -> tuple[Cell, ...]:
    """Return the cells in the order of the page's rows."""
    keys = ("engine", "version:desc", "variant", "host", *varying(data.cells))
    return ordered_cells(data.cells, keys, data.workload)


def page_tables(data: ReportData) -> tuple[TableDefinition, ...]:
    """Return the workload's tables; without any, one for each test with all that was measured."""
    if data.workload.page.tables or data.workload.page.lines:
        return tuple(data.workload.page.tables)
    tables: list[TableDefinition] = []
    for family in families(data.workload):
        found = _measured_ids(data, family)
        if family.first.measure and family.first.part_of is None and found:
            tables.append(TableDefinition(step=family.name, columns=list(found)))
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


def _measured_ids(data: ReportData, family: Family) -> tuple[str, ...]:
    seen = {
        metric
        for cell in data.cells
        for step in family.steps
        for counted in step_outcome(cell, step).steps
        for phase, _, role, metric in counted.measurements
        if role is None and phase in (None, family.first.phase)
    }
    return tuple(name for name in data.metrics if name in seen)


def _is_test(data: ReportData, family: Family) -> bool:
    if family.first.part_of is not None or family.first.group:
        return False
    names = {family.name, *family.steps}
    return family.first.measure or any(table.step in names for table in page_tables(data))


def _section(data: ReportData, family: Family, anchors: Anchors) -> _Section:
    title = _filled(data, family, family.first.title) or family.name
    anchor = anchors.take(title)
    split = any("engine" in table.split for table in _tables_of(data, family))
    split = split or any(chart.split for chart in _charts_of(data, family))
    engines = dict.fromkeys(cell.engine for cell in newest_first(data)) if split else {}
    parts = {name: anchors.take(data.engine_titles.get(name, name)) for name in engines}
    return _Section(family, title, anchor, parts)


def _groups(data: ReportData) -> list[str]:
    """The groups of which something ran, and those that have no steps."""
    ran = {step for cell in data.cells for trial in cell.trials for step in trial.steps}
    own = {name: [s.name for s in data.workload.steps if s.group == name]
           for name in data.workload.groups}  # fmt: skip
    return [name for name, steps in own.items() if not steps or ran.intersection(steps)]


def _group(
    data: ReportData, name: str, anchor: str, notes: Footnotes, anchors: Mapping[str, str]
) -> TestView:
    """The section of a group of steps: its lines, then what its steps show besides."""
    own = [family for family in families(data.workload) if family.first.group == name]
    steps = [step for family in own for step in family.steps]
    tables = list(line_tables(data, name, notes, anchors))
    tables += [
        placed.view
        for title, table in named_tables(data)
        if any(_shows(table.step, family) for family in own)
        for placed in build_tables(data, table, title, notes, anchors)
    ]
    return TestView(
        title=data.workload.groups[name],
        anchor=anchor,
        command="",
        commands=commands(newest_first(data), steps, data.engine_titles),
        paragraphs=_over_network(data, steps),
        tables=tuple(tables),
        charts=tuple(chart for family in own for _, chart in _charts(data, family)),
    )


def _over_network(data: ReportData, steps: Sequence[str]) -> tuple[str, ...]:
    """What a section says when servers of its steps ran on another host."""
    needy = steps_with_services(data.workload).intersection(steps)
    lines = {
        server_line(cell, trial): None
        for cell in data.cells
        for trial in cell.trials
        if cell.server and needy.intersection(trial.steps)
    }
    return tuple(f"{line}: what is measured includes the network between them." for line in lines)


def _tables_of(data: ReportData, family: Family) -> tuple[TableDefinition, ...]:
    return tuple(table for table in page_tables(data) if _shows(table.step, family))


def _charts_of(data: ReportData, family: Family) -> tuple[ChartDefinition, ...]:
    return tuple(chart for chart in data.workload.page.charts if _shows(chart.step, family))


def _shows(step: str, family: Family) -> bool:
    return step == family.name or step in family.steps


def _used_metrics(tables: tuple[TableDefinition, ...]) -> tuple[str, ...]:
    names = (
        entry.metric if isinstance(entry, ColumnDefinition) else entry
        for table in tables
        for entry in table.columns
    )
    return tuple(dict.fromkeys(names))


def _hosts(data: ReportData) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*(cell.host for cell in data.cells), *data.host_facts]))


def _filled(data: ReportData, family: Family, text: str) -> str:
    measured = {
        name: tuple(
            value
            for cell in data.cells
            for step in family.steps
            for value in values_of(step_outcome(cell, step).steps, name, family.first.phase, None)
        )
        for name in data.metrics
        if f"{{{name}" in text
    }
    return fill(text, data.params, measured)


def _test(
    data: ReportData, section: _Section, notes: Footnotes, metric_anchors: Mapping[str, str]
) -> TestView:
    family = section.family
    tables = [
        placed
        for name, table in named_tables(data)
        if _shows(table.step, family)
        for placed in build_tables(data, table, name, notes, metric_anchors)
    ]
    charts = tuple(_charts(data, family))
    members = [family.steps[0]] if family.parameter else _members(data, family)
    in_parts = bool(section.parts)
    return TestView(
        title=section.title,
        anchor=section.anchor,
        command=_filled(data, family, family.first.command),
        commands=() if in_parts else commands(newest_first(data), members, data.engine_titles),
        paragraphs=tuple(filter(None, _filled(data, family, family.first.text).split("\n\n"))),
        tables=tuple(placed.view for placed in tables if not placed.engine),
        charts=tuple(chart for engine, chart in charts if not engine),
        parts=tuple(
            _part(data, engine, anchor, (members, tables, charts))
            for engine, anchor in section.parts.items()
        ),
    )


def _members(data: ReportData, family: Family) -> list[str]:
    """The steps of a test, the one that heads it first; then the load of its own, if it has one."""
    steps = data.workload.steps
    members = [step.name for step in steps if family.name in (step.name, step.part_of)]
    before = steps[max(0, [step.name for step in steps].index(family.steps[0]) - 1)]
    is_load = before.state == "creates" and not before.measure
    return [*members, before.name] if is_load and before.name not in members else members


def _part(
    data: ReportData,
    engine: str,
    anchor: str,
    found: tuple[Sequence[str], Sequence[PlacedTable], Sequence[tuple[str, ChartView]]],
) -> PartView:
    """What a test shows of one engine, under that engine's heading."""
    members, tables, charts = found
    own = [cell for cell in newest_first(data) if cell.engine == engine]
    return PartView(
        title=data.engine_titles.get(engine, engine),
        anchor=anchor,
        commands=commands(own, members, data.engine_titles),
        tables=tuple(placed.view for placed in tables if placed.engine == engine),
        charts=tuple(chart for name, chart in charts if name == engine),
    )


def _charts(data: ReportData, family: Family) -> list[tuple[str, ChartView]]:
    """The charts of a test, each with the engine whose part it stands in, or none."""
    own = _charts_of(data, family)
    engines = tuple(dict.fromkeys(cell.engine for cell in newest_first(data)))
    built: list[tuple[str, ChartView]] = []
    for place, chart in enumerate(own):
        name = _chart_name(chart, place, own)
        if not chart.split:
            view = build_chart(data, chart, name)
            built += [("", view)] if view is not None else []
            continue
        for engine in engines:
            view = build_chart(data, chart, f"{name}-{engine}", engine)
            built += [(engine, view)] if view is not None else []
    return built


def _chart_name(chart: ChartDefinition, place: int, charts: Sequence[ChartDefinition]) -> str:
    name = f"{chart.step}-{chart.kind}"
    if chart.kind not in ("percentiles", "stacked-times"):
        name += f"-{chart.metric}"
    twins = [
        other
        for other in charts[:place]
        if (other.kind, other.metric) == (chart.kind, chart.metric)
    ]
    return f"{name}-{len(twins) + 1}" if twins else name


def _appendix(
    data: ReportData, anchors: Anchors, contents: list[ContentView]
) -> tuple[AppendixView, ...]:
    if not data.appendix:
        return ()
    contents.append(ContentView("Appendix", anchors.take("Appendix")))
    views: list[AppendixView] = []
    for raw in data.appendix:
        title = f"{raw.title} on {raw.host}" if raw.host and len(_hosts(data)) > 1 else raw.title
        view = AppendixView(title, anchors.take(title), shlex.join(raw.argv), clean(raw.text))
        contents.append(ContentView(title, view.anchor, level=1))
        views.append(view)
    return tuple(views)


def _subtitle(data: ReportData) -> str:
    when = data.generated_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    by = f" by benchrunner {data.benchrunner_version}".rstrip()
    typed = f" from: {shlex.join(data.command_line)}" if data.command_line else ""
    return f"Workload {data.workload.name}, scale {data.scale}. Made {when}{by}{typed}"
