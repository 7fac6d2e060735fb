"""Charts that compare engines: what they show as data, and that the picture shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from report_data import STALE
from report_engines import TITLES, engine_chart, engines_data, gaps_of

from benchrunner.definitions import ChartDefinition
from benchrunner.errors import ConfigurationError
from benchrunner.report.charts import build_chart
from benchrunner.report.draw import draw
from benchrunner.report.looks import DASHES, MARKERS, PALETTE

if TYPE_CHECKING:
    from benchrunner.report.input import Cell, ReportData
    from benchrunner.report.view import ChartView

SVG = "{http://www.w3.org/2000/svg}"
THREADS = ("1", "2", "4", "8", "16", "32", "64")


@pytest.fixture(scope="module")
def data() -> ReportData:
    return engines_data()


@pytest.fixture(scope="module")
def with_gaps(data: ReportData) -> ReportData:
    """TokuDB could not be had, and more."""
    return gaps_of(data)


def test_all_engines_over_threads_stay_distinguishable(data: ReportData) -> None:
    view = engine_chart(data, "by-value", metric="read_rate", log=["x", "y"])
    assert [panel.title for panel in view.panels] == ["local", "interleave"]
    for panel in view.panels:
        assert [line.label for line in panel.series] == list(TITLES.values())
        looks = {
            (PALETTE[line.color % len(PALETTE)], line.dash, MARKERS[line.color])
            for line in panel.series
        }
        assert len({look[:2] for look in looks}) == len({look[2] for look in looks}) == 10
        assert max(line.dash for line in panel.series) < len(DASHES)
    lmdb = view.panels[1].series[4]
    assert [point.y for point in lmdb.points][::6] == [245876, 8544139]
    assert "interleave: LevelDB 1: 24144, 64: 86666" in view.alt
    assert view.categories == THREADS
    assert view.wide


def drawn(view: ChartView) -> ET.Element:
    return ET.fromstring(draw(view, "svg"))  # noqa: S314  # our own output


def words(root: ET.Element) -> list[str]:
    return ["".join(text.itertext()).strip() for text in root.iter(f"{SVG}text")]


def count(root: ET.Element, gid: str, tag: str) -> int:
    found = [one for one in root.iter() if one.get("id") == gid]
    return sum(1 for one in found for _ in one.iter(f"{SVG}{tag}"))


def test_panels_have_marks_for_numbers_and_ticks_for_values(with_gaps: ReportData) -> None:
    view = engine_chart(with_gaps, "by-value", log=["x", "y"])
    assert view.notes == (
        "No number: BerkeleyDB interleave (skipped); TokuDB (skipped).",
        "Hollow: a number with a footnote in the table.",
    )
    root = drawn(view)
    texts = words(root)
    for text in (*THREADS, "local", "interleave", "threads", "Write rate (ops/s)", "LMDB"):
        assert text in texts
    assert texts.count("LMDB") == 1
    assert count(root, "markers-local-LMDB-False", "use") == 7
    assert count(root, "markers-interleave-LMDB-True", "use") == 7
    width = float(root.attrib["viewBox"].split()[2])
    for element in root.iter(f"{SVG}text"):
        label = "".join(element.itertext()).strip()
        if label in TITLES.values():
            begins = float(element.attrib["transform"].partition("(")[2].split()[0])
            assert begins + 0.55 * 10.5 * len(label) < width, label


def test_columns_stand_beside_each_other_on_two_axes(data: ReportData) -> None:
    view = engine_chart(data, "columns", "leveldb", right="read_rate")
    assert view.title == "LevelDB: Write rate and Read rate by threads"
    assert [(line.label, line.color, line.dash, line.right) for line in view.series] == [
        ("Write rate, local", 0, 0, False),
        ("Write rate, interleave", 0, 1, False),
        ("Read rate, local", 1, 0, True),
        ("Read rate, interleave", 1, 1, True),
    ]
    assert [point.y for point in view.series[3].points][:2] == [24144, 32459]
    texts = words(drawn(view))
    for text in ("Write rate (ops/s)", "Read rate (ops/s)", "Read rate, interleave", "64"):
        assert text in texts
    alone = engine_chart(data, "columns", "leveldb")
    assert not alone.right_label
    assert "Read rate (ops/s)" not in words(drawn(alone))


def test_times_are_stacked_and_engines_without_any_are_left_out(with_gaps: ReportData) -> None:
    view = engine_chart(with_gaps, "stacked-times")
    assert view.metrics == ("wall_s", "cpu_user_s", "cpu_sys_s")
    assert "TokuDB" not in view.categories
    assert view.notes[0] == "No number: BerkeleyDB interleave (skipped); TokuDB (skipped)."
    assert "Wall, local: LevelDB 09:24.39" in view.alt
    last = view.series[0].points[-1]
    assert view.categories[int(last.x)] == "WiredTiger Btree"
    assert last.y == pytest.approx(455.84)
    texts = words(drawn(view))
    for text in ("LMDB", "WiredTiger LSM", "Sys, interleave", "time (min)"):
        assert text in texts


def test_short_and_long_times_have_their_unit(data: ReportData) -> None:
    def scaled(factor: float) -> ReportData:
        cells = []
        for cell in data.cells:
            (trial,) = cell.trials
            step = trial.steps["load"]
            numbers = {key: factor * value for key, value in step.measurements.items()}
            steps = {"load": replace(step, measurements=numbers)}
            cells.append(replace(cell, trials=(replace(trial, steps=steps),)))
        return replace(data, cells=tuple(cells))

    assert "time (s)" in words(drawn(engine_chart(scaled(0.01), "stacked-times")))
    assert "time (h)" in words(drawn(engine_chart(scaled(30), "stacked-times")))


@pytest.mark.parametrize("file_format", ["svg", "png"])
def test_the_same_chart_gives_the_same_bytes(data: ReportData, file_format: str) -> None:
    few = replace(data, cells=data.cells[:4])
    for kind in ("by-value", "columns", "stacked-times"):
        view = engine_chart(few, kind)
        kept = "svg" if file_format == "svg" else "png"
        assert draw(view, kept) == draw(view, kept)  # type: ignore[arg-type]


def without(cell: Cell, values: tuple[str, ...], rate: float | None = None) -> Cell:
    """A cell whose steps of these values did not run, or wrote at this rate."""
    (trial,) = cell.trials
    steps = dict(trial.steps)
    for value in values:
        name = f"readwhilewriting-{value}"
        step = steps.pop(name)
        if rate is not None:
            numbers = {**step.measurements, (None, 1, None, "write_rate"): rate}
            steps[name] = replace(step, measurements=numbers, taints=(STALE,))
    return replace(cell, trials=(replace(trial, steps=steps),))


def test_missing_values_are_named_and_zero_has_no_place_on_a_log_axis(data: ReportData) -> None:
    first, second = data.cells[:2]
    few = replace(data, cells=(without(first, ("32", "64")), without(second, ("8",), 0.0)))
    view = engine_chart(few, "by-value", log=["y"])
    assert view.notes[0] == (
        "No number: LevelDB local at 32, 64 threads (not run); LevelDB interleave at 8 threads (0)."
    )
    linear = engine_chart(few, "by-value")
    assert "interleave" not in linear.notes[0]
    assert "0" in words(drawn(linear))


def test_values_that_are_no_numbers_stand_at_their_places(data: ReportData) -> None:
    view = engine_chart(replace(data, cells=data.cells[:2]), "by-value", log=["x"])
    named = replace(view, categories=("a", "b", "c", "d", "e", "f", "g"))
    assert {"a", "g"} <= set(words(drawn(named)))


def test_narrow_rates_have_more_than_one_tick(data: ReportData) -> None:
    cells = tuple(cell for cell in data.cells if cell.engine == "rocksdb-pfx")
    texts = words(drawn(engine_chart(replace(data, cells=cells), "by-value", log=["x", "y"])))
    assert {"20,000"} <= set(texts)


@pytest.mark.parametrize(
    ("definition", "message", "hint"),
    [
        (
            {"step": "load", "kind": "by-value"},
            "A by-value chart is over the values of a step with each, which 'load' is not.",
            "name a step with each, or use by-version",
        ),
        (
            {"step": "readwhilewriting", "kind": "by-version"},
            "A chart of step 'readwhilewriting' is a by-version chart, which cannot show several "
            "values of THREADS.",
            "use by-value or columns, or name one step: readwhilewriting-1, readwhilewriting-2, "
            "readwhilewriting-4, readwhilewriting-8, readwhilewriting-16, readwhilewriting-32, "
            "readwhilewriting-64",
        ),
        (
            {"step": "readwhilewriting", "kind": "stacked-times"},
            "A chart of step 'readwhilewriting' is a stacked-times chart, which cannot show "
            "several values of THREADS.",
            "name one step: readwhilewriting-1, readwhilewriting-2, readwhilewriting-4, "
            "readwhilewriting-8, readwhilewriting-16, readwhilewriting-32, readwhilewriting-64",
        ),
    ],
)
def test_charts_that_do_not_fit_their_step_are_one_line(
    data: ReportData, definition: dict[str, str], message: str, hint: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        build_chart(data, ChartDefinition.model_validate(definition), "name")
    assert (caught.value.message, caught.value.hint) == (message, hint)
