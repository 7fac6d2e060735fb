"""Charts: what they show as data, and that the picture shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from report_data import STALE, flash_workload, seed_data, small_data

from benchrunner.definitions import ChartDefinition
from benchrunner.errors import ConfigurationError
from benchrunner.report.charts import NEWEST_OVER_TIME, POINTS_OVER_TIME, build_chart, thinned
from benchrunner.report.draw import draw
from benchrunner.report.view import ChartView, PointView

if TYPE_CHECKING:
    from benchrunner.report.input import Cell, ReportData

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"


def chart(data: ReportData, step: str, kind: str, **changes: str) -> ChartView:
    definition = ChartDefinition.model_validate({"step": step, "kind": kind, **changes})
    view = build_chart(data, definition, "name")
    assert view is not None
    return view


def drawn(view: ChartView) -> ET.Element:
    return ET.fromstring(draw(view, "svg"))  # noqa: S314  # our own output


def labels(root: ET.Element) -> list[str]:
    return ["".join(text.itertext()).strip() for text in root.iter(f"{SVG}text")]


def markers(root: ET.Element, gid: str) -> int:
    groups = [group for group in root.iter(f"{SVG}g") if group.get("id") == gid]
    return sum(1 for group in groups for _ in group.iter(f"{SVG}use"))


def test_by_version_has_a_point_for_each_number_and_a_label_for_each_version() -> None:
    view = chart(seed_data(), "readrandom", "by-version")
    assert view.categories == ("6.10.4", "6.24.0", "6.29.1", "7.2.2")
    assert [line.label for line in view.series] == ["None", "DIO"]
    assert [point.y for point in view.series[0].points] == [138496, 130852, 145577, 136915]
    assert [point.x for point in view.series[1].points] == [1, 2, 3]
    root = drawn(view)
    texts = labels(root)
    for label in (*view.categories, "None", "DIO", "ops/sec", "readrandom: ops/sec by version"):
        assert label in texts
    assert "0" in texts
    assert markers(root, "markers-None-False") == 4
    assert markers(root, "markers-DIO-False") == 3
    assert "None 6.10.4: 138496, 7.2.2: 136915" in view.alt


def test_tainted_points_are_hollow_and_absent_ones_are_named() -> None:
    view = chart(small_data(), "read", "by-version")
    assert view.notes == (
        "No number: 7.10<script> None (skipped), 6.9 DIO (invalid), 6.10 DIO (failed).",
        "Hollow: a number with a footnote in the table.",
    )
    root = drawn(view)
    assert markers(root, "markers-None-True") == 1
    assert markers(root, "markers-None-False") == 1
    hollow = next(g for g in root.iter(f"{SVG}g") if g.get("id") == "markers-None-True")
    assert "fill: #ffffff" in ET.tostring(hollow, encoding="unicode")


def test_a_single_version_is_drawn_as_bars() -> None:
    data = seed_data(("7.2.2",))
    view = chart(data, "readrandom", "by-version")
    root = drawn(view)
    ids = {group.get("id") for group in root.iter(f"{SVG}g")} | {
        path.get("id") for path in root.iter(f"{SVG}path")
    }
    assert {"bar-None", "bar-DIO"} <= ids
    assert {"136,915", "189,236", "7.2.2", "version"} <= set(labels(root))


def test_percentiles_of_the_newest_and_the_oldest_version_on_a_log_axis() -> None:
    view = chart(seed_data(), "readrandom", "percentiles")
    assert [line.label for line in view.series] == ["6.10.4 None", "7.2.2 None", "7.2.2 DIO"]
    assert [(line.color, line.dash) for line in view.series] == [(0, 1), (0, 0), (1, 0)]
    assert [point.y for point in view.series[1].points] == [615.5, 772.8, 1270, 1801, 2840]
    texts = labels(drawn(view))
    for label in ("p50", "p75", "p99", "p99.9", "p99.99", "latency (us, log scale)", "1000"):
        assert label in texts


def test_over_time_draws_the_newest_versions_with_time_in_seconds() -> None:
    data = seed_data()
    view = chart(data, "overwrite", "over-time")
    assert len(view.series) == 7
    older = replace(data.cells[0], version="5.18.4")
    view = chart(replace(data, cells=(*data.cells, older)), "overwrite", "over-time")
    assert not [line for line in view.series if line.label.startswith("5.18.4")]
    assert view.notes == (f"The newest {NEWEST_OVER_TIME} of 5 versions are drawn.",)
    assert "time since the step began (s)" in labels(drawn(view))


@pytest.mark.parametrize("file_format", ["svg", "png"])
@pytest.mark.parametrize("kind", ["by-version", "percentiles", "over-time"])
def test_the_same_chart_gives_the_same_bytes(kind: str, file_format: str) -> None:
    view = chart(seed_data(), "readrandom", kind)
    first = draw(view, "svg" if file_format == "svg" else "png")
    assert first == draw(view, "svg" if file_format == "svg" else "png")
    assert b"<dc:date>" not in first


def test_a_curve_of_one_point_is_a_mark_and_the_caption_says_why() -> None:
    data = seed_data(("7.2.2",))
    cells = []
    for cell in data.cells:
        (trial,) = cell.trials
        step = replace(trial.steps["readrandom"], series={"ops_per_sec": ((4.0, 100.0),)})
        cells.append(replace(cell, trials=(replace(trial, steps={"readrandom": step}),)))
    view = chart(replace(data, cells=tuple(cells)), "readrandom", "over-time")
    assert view.notes == (
        "A mark without a curve: the step ended within one interval of its prints.",
    )
    assert markers(drawn(view), "line-7.2.2 None") == 1
    assert chart(data, "readrandom", "over-time").notes == ()


def test_long_curves_are_averaged_over_equal_spans() -> None:
    assert thinned([]) == ()
    assert thinned([(0.0, 1.0), (1.0, 3.0)]) == (PointView(0.0, 1.0), PointView(1.0, 3.0))
    curve = [(float(t), float(t % 2)) for t in range(2 * POINTS_OVER_TIME)]
    points = thinned(curve)
    assert len(points) == POINTS_OVER_TIME
    assert {point.y for point in points} == {0.5}
    assert len(thinned([*curve, (9e9, 1.0)])) <= POINTS_OVER_TIME


def test_what_differs_besides_version_and_series_never_shares_a_line() -> None:
    data = seed_data()
    cells = tuple(replace(cell, host=host) for host in ("a", "b") for cell in data.cells)
    view = chart(replace(data, cells=cells), "readrandom", "by-version")
    assert [line.label for line in view.series] == ["None a", "None b", "DIO a", "DIO b"]
    by_host = chart(replace(data, cells=cells), "readrandom", "by-version", series="host")
    assert len(by_host.series) == 4


def test_hosts_look_different_in_every_chart_and_no_label_is_cut_off() -> None:
    data = seed_data()
    names = ("a-host-with-a-long-name-1", "a-host-with-a-long-name-2")
    cells = tuple(replace(cell, host=host) for host in names for cell in data.cells)
    view = chart(replace(data, cells=cells), "readrandom", "percentiles")
    looks = [(line.color, line.dash) for line in view.series]
    assert len(set(looks)) == len(looks) > 4
    root = drawn(view)
    width = float(root.attrib["viewBox"].split()[2])
    for text in root.iter(f"{SVG}text"):
        label = "".join(text.itertext()).strip()
        if label in {line.label for line in view.series}:
            # A character is at most 0.7 em of 10.5 points; a transform holds where it begins.
            begins = float(text.attrib["transform"].partition("(")[2].split()[0])
            assert begins + 0.55 * 10.5 * len(label) < width, label


def test_a_chart_without_numbers_is_left_out() -> None:
    data = replace(small_data(), cells=())
    for kind in ("by-version", "percentiles", "over-time"):
        definition = ChartDefinition.model_validate({"step": "read", "kind": kind})
        assert build_chart(data, definition, "name") is None


def test_chart_errors_are_one_line() -> None:
    data = small_data()
    bad = ChartDefinition(step="read", kind="by-version", metric="p5_us")
    with pytest.raises(ConfigurationError, match="A chart of step 'read' shows the metric 'p5_us'"):
        build_chart(data, bad, "name")
    bad = ChartDefinition(step="read", kind="by-version", series="moon")
    with pytest.raises(ConfigurationError, match="draws one line for each 'moon'") as caught:
        build_chart(data, bad, "name")
    assert caught.value.hint == "use one of variant, host, engine"
    metrics = {**data.metrics, "p75_us": data.metrics["p75_us"].model_copy(update={"unit": "ms"})}
    mixed = replace(data, metrics=metrics)
    with pytest.raises(ConfigurationError, match="defined in different units: ms, us"):
        build_chart(mixed, ChartDefinition(step="read", kind="percentiles"), "name")


def test_a_tainted_bar_is_hollow_and_titles_can_be_given() -> None:
    data = seed_data(("7.2.2",))
    cells = []
    for cell in data.cells:
        trial = cell.trials[0]
        step = replace(trial.steps["readrandom"], taints=(STALE,))
        cells.append(replace(cell, trials=(replace(trial, steps={"readrandom": step}),)))
    one: Cell = cells[0]
    view = chart(replace(data, cells=(one,)), "readrandom", "by-version", title="{NUM_KEYS} keys")
    assert view.title == "900000000 keys"
    assert view.series[0].points[0].tainted
    assert b"fill: #ffffff; stroke: #0072b2" in draw(view, "svg")


def test_every_chart_of_the_shipped_page_can_be_made() -> None:
    data = seed_data()
    for definition in flash_workload().page.charts:
        assert build_chart(data, definition, "name") is not None
