"""The page that compares engines: tables over a list's values, sections, charts, gaps."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from report_data import small_data
from report_engines import (
    LOADS,
    NO_SOURCE,
    SCALING,
    TITLES,
    engine_chart,
    engines_data,
    gaps_of,
    scaling_rows,
)

from benchrunner.definitions import ColumnDefinition, TableDefinition
from benchrunner.errors import ConfigurationError
from benchrunner.report.build import build_page
from benchrunner.report.csv_files import csv_texts
from benchrunner.report.families import families, find_family
from benchrunner.report.page import write_page

if TYPE_CHECKING:
    from pathlib import Path

    from benchrunner.report.input import ReportData
    from benchrunner.report.view import PageView, PartView, TableView

THREADS = ("1", "2", "4", "8", "16", "32", "64")


@pytest.fixture(scope="module")
def data() -> ReportData:
    return engines_data()


@pytest.fixture(scope="module")
def page(data: ReportData) -> PageView:
    return build_page(data)


@pytest.fixture(scope="module")
def with_gaps(data: ReportData) -> ReportData:
    """TokuDB could not be had, and more."""
    return gaps_of(data)


def rows(view: TableView) -> list[list[str]]:
    return [[cell.text for cell in row.cells[:-1]] for row in view.rows]


def part(page: PageView, engine: str) -> PartView:
    return next(one for one in page.tests[1].parts if one.title == TITLES[engine])


def test_load_tables_print_the_source_s_own_times(page: PageView) -> None:
    views = page.tests[0].tables
    assert [view.title.split(" ")[0] for view in views] == ["local", "interleave"]
    for view, variant in zip(views, LOADS, strict=True):
        lines = [line.split() for line in LOADS[variant].strip().split("\n")]
        for row, line, title in zip(rows(view), lines, TITLES.values(), strict=True):
            assert row[:5] == [title, *line[:4]]
            assert row[8:10] == line[7:9]


def test_sizes_have_the_unit_that_the_title_names(page: PageView) -> None:
    (local, _) = page.tests[0].tables
    assert [column.title for column in local.columns][4:8] == [
        *("CPU %", "DB size (GiB)", "Process size (GiB)", "Total size (GiB)"),
    ]
    assert rows(local)[0][5:8] == ["11.2", "0.52", "11.7"]
    heads = {column.title: column for column in local.columns}
    assert (heads["Wall"].unit, heads["DB size (GiB)"].unit) == ("clock", "GiB")
    assert heads["DB size (GiB)"].anchor == "du_kib"


def test_each_engine_has_a_section_with_its_table_over_threads(page: PageView) -> None:
    parts = page.tests[1].parts
    assert [one.title for one in parts] == list(TITLES.values())
    assert not page.tests[1].tables
    (view,) = part(page, "leveldb").tables
    assert [column.title for column in view.columns][:3] == ["Threads", "Opts", "Wall"]
    got = rows(view)
    assert [row[:2] for row in got] == [
        [threads, variant] for threads in THREADS for variant in ("local", "interleave")
    ]
    assert [row.first for row in view.rows] == [True, False] * 7
    expected = SCALING.strip().split("\n\n")[0].split("\n")[-1].split()
    last = got[-1]
    assert last[2:6] == ["10:46.10", "1:51:27.29", "8:07:38.24", "5563"]
    assert [last[0], *last[9:13]] == [expected[0], *expected[8:12]]
    assert [chart.kind for chart in parts[0].charts] == ["columns"]
    assert [command.title for command in parts[0].commands] == ["1.0 local", "1.0 interleave"]
    assert "numactl --interleave=all /opt/kvbench" in parts[0].commands[1].text


def test_contents_and_anchors_lead_to_the_engines(page: PageView) -> None:
    below = [(line.title, line.anchor) for line in page.contents if line.level]
    assert below[:2] == [("LevelDB", "leveldb"), ("Basho LevelDB", "basho-leveldb")]
    assert [line.title for line in page.contents if not line.level][:3] == [
        *("Setup", page.tests[0].title, page.tests[1].title),
    ]


def test_an_engine_that_could_not_be_had_keeps_its_row_and_its_section(
    with_gaps: ReportData,
) -> None:
    page = build_page(with_gaps)
    local, interleave = page.tests[0].tables
    place = list(TITLES).index("tokudb")
    assert rows(local)[place][:3] == ["TokuDB", "skipped", "-"]
    (note,) = local.rows[place].cells[1].notes
    assert page.footnotes[note - 1] == f"skipped: {NO_SOURCE}."
    (view,) = part(page, "tokudb").tables
    assert [row[:3] for row in rows(view)] == [
        ["all", "local", "skipped"],
        ["all", "interleave", "skipped"],
    ]
    assert view.rows[0].cells[2].notes == (note,)
    assert view.rows[0].cells[-1].trials == (("raw", "tokudb-local"),)
    assert not part(page, "tokudb").charts
    (berkeley,) = part(page, "berkeleydb").tables
    assert [row[:3] for row in rows(berkeley)][-1] == ["all", "interleave", "skipped"]
    assert len(berkeley.rows) == 8
    assert rows(interleave)[2][1] == "skipped"


def test_a_variant_without_effect_has_a_footnote(with_gaps: ReportData) -> None:
    page = build_page(with_gaps)
    (view,) = part(page, "lmdb").tables
    marks = {row.cells[2].notes for row in view.rows if row.cells[1].text == "interleave"}
    ((number,),) = marks
    assert page.footnotes[number - 1] == "single-numa-node: the host has one NUMA node."


def test_csv_has_a_row_for_each_value_and_the_stored_figures(with_gaps: ReportData) -> None:
    texts = csv_texts(with_gaps)
    found = list(csv.DictReader(io.StringIO(texts["readwhilewriting.csv"])))
    assert len(found) == 2 * 7 * len(TITLES)
    row = next(
        r for r in found if (r["engine"], r["variant"], r["THREADS"]) == ("lmdb", "interleave", "8")
    )
    assert float(row["du_kib"]) == scaling_rows()["lmdb"]["8"]["du_kib"] == 12584440
    assert float(row["cpu_user_s"]) == 5365.67
    lost = [r for r in found if r["engine"] == "tokudb"]
    assert {(r["state"], r["write_rate"], r["n"]) for r in lost} == {("skipped", "", "0")}
    assert [r["THREADS"] for r in lost][:3] == ["1", "1", "2"]


def test_versions_become_a_column_and_lines_where_an_engine_has_several(data: ReportData) -> None:
    older = [replace(cell, version="0.9") for cell in data.cells if cell.engine == "leveldb"]
    more = replace(data, cells=(*data.cells, *older))
    page = build_page(more)
    assert [column.title for column in page.tests[0].tables[0].columns][:2] == ["Engine", "Version"]
    assert [row[:2] for row in rows(page.tests[0].tables[0])][:2] == [
        *(["LevelDB", "1.0"], ["LevelDB", "0.9"]),
    ]
    view = engine_chart(more, "by-value")
    assert [line.label for line in view.panels[0].series][:2] == ["LevelDB 0.9", "LevelDB 1.0"]
    columns = engine_chart(more, "columns", "leveldb")
    assert [line.label for line in columns.series] == [
        *("Write rate, LevelDB 0.9 local", "Write rate, LevelDB 0.9 interleave"),
        *("Write rate, LevelDB 1.0 local", "Write rate, LevelDB 1.0 interleave"),
    ]


def test_families_and_their_steps_are_found_by_name(data: ReportData) -> None:
    load, scaling = families(data.workload)
    assert (load.parameter, load.steps) == ("", ("load",))
    assert (scaling.parameter, tuple(scaling.members)) == ("THREADS", THREADS)
    one = find_family(data.workload, "readwhilewriting-8", "x")
    assert (one.parameter, one.steps) == ("", ("readwhilewriting-8",))
    view = engine_chart(data, "by-version", "lmdb", step="readwhilewriting-8")
    assert [point.y for point in view.series[1].points] == [41000]
    with pytest.raises(
        ConfigurationError, match="A table of step 'x' names the step 'x'"
    ) as caught:
        find_family(data.workload, "x", "A table of step 'x'")
    assert caught.value.hint == "its steps are load, readwhilewriting"


def test_a_form_that_does_not_fit_the_unit_is_one_line(data: ReportData) -> None:
    column = ColumnDefinition(metric="wall_s", format="size")
    tables = [TableDefinition(step="load", columns=[column])]
    changed = data.workload.page.model_copy(update={"tables": tables})
    workload = data.workload.model_copy(update={"page": changed})
    with pytest.raises(ConfigurationError) as caught:
        build_page(replace(data, workload=workload))
    assert caught.value.message == (
        "A table of step 'load' shows 'Wall' as size, but its unit is s."
    )
    assert caught.value.hint == "size is for numbers in bytes or KiB"


def test_without_a_page_a_family_is_one_test(data: ReportData) -> None:
    bare = data.workload.page.model_copy(update={"tables": [], "charts": []})
    workload = data.workload.model_copy(update={"page": bare})
    page = build_page(replace(data, workload=workload, cells=data.cells[:2]))
    assert len(page.tests) == 2
    (view,) = page.tests[1].tables
    assert [column.title for column in view.columns][:3] == ["Version", "Opts", "Threads"]
    assert len(view.rows) == 14


def test_every_form_of_the_page_shows_every_engine(with_gaps: ReportData, tmp_path: Path) -> None:
    page = with_gaps.workload.page.model_copy(update={"charts": []})
    workload = with_gaps.workload.model_copy(update={"page": page})
    written = write_page(replace(with_gaps, workload=workload), tmp_path)
    for name, heading in (("html", r"<h3 id=[^>]+>(.+)</h3>"), ("markdown", "### (.+)")):
        text = written.pages[name].read_text(encoding="utf-8")
        found = re.findall(heading, text)
        assert [title for title in found if title in TITLES.values()] == list(TITLES.values())
        for figure in ("09:24.39", "8:07:38.24", "8544139", "20.50", "skipped", "all"):
            assert figure in text, (name, figure)
    wiki = written.pages["wiki"].read_text(encoding="utf-8")
    assert "  - [LevelDB](#leveldb)" in wiki
    assert "| 64 | interleave | 10:46.10 | 1:51:27.29 | 8:07:38.24 | 5563 |" in wiki


def test_titles_of_engines_are_their_names_where_nothing_says_them() -> None:
    assert "rocksdb" in [row.cells[0].text for row in build_page(small_data()).provenance.rows]
