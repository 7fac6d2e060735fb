"""Tables: order, lookup by name, missing values, footnotes, several repetitions."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_data import ROOT, ROWS, STALE, artifact, ok_step, seed_data, small_data, small_trial

from benchrunner.definitions import ColumnDefinition, Metric, TableDefinition
from benchrunner.errors import ConfigurationError
from benchrunner.model import StepState, TrialState
from benchrunner.report.build import build_page
from benchrunner.report.footnotes import Footnotes
from benchrunner.report.format import fill, median, version_key
from benchrunner.report.input import Cell, ReportData, StepView
from benchrunner.report.lookup import find_value
from benchrunner.report.numbers import number_form
from benchrunner.report.order import ordered_cells
from benchrunner.report.sections import build_lines, commands, flag_tables, provenance
from benchrunner.report.tables import build_tables

if TYPE_CHECKING:
    from benchrunner.report.input import MeasurementKey
    from benchrunner.report.view import PageView, TableView


def table(data: ReportData, definition: TableDefinition) -> tuple[TableView, Footnotes]:
    notes = Footnotes()
    anchors = dict.fromkeys(data.metrics, "anchor")
    return build_tables(data, definition, "name", notes, anchors)[0].view, notes


def texts(view: TableView) -> list[list[str]]:
    return [[cell.text for cell in row.cells[:-1]] for row in view.rows]


@pytest.fixture(scope="module")
def shipped_page() -> PageView:
    text = (ROOT / "benchrunner" / "metrics.toml").read_text(encoding="utf-8")
    metrics = {name: Metric.model_validate(values) for name, values in tomllib.loads(text).items()}
    return build_page(replace(seed_data(), metrics=metrics))


@pytest.mark.parametrize("shipped", [True, False])
@pytest.mark.parametrize("step", list(ROWS))
def test_first_table_of_each_test_prints_the_page_s_own_figures(
    step: str, shipped_page: PageView, *, shipped: bool
) -> None:
    page = shipped_page if shipped else build_page(seed_data())
    (test,) = [test for test in page.tests if test.tables[0].name == step]
    expected = [line.split() for line in ROWS[step].split("\n") if line]
    got = [row for row in texts(test.tables[0]) if row[2] != "not run"]
    assert [row[: len(line)] for row, line in zip(got, expected, strict=True)] == expected


def test_rows_are_newest_first_and_variants_in_the_workload_s_order() -> None:
    view, _ = table(small_data(), TableDefinition(step="fill", columns=["ops_per_sec"]))
    assert [row[:2] for row in texts(view)] == [
        *(["7.10<script>", "None"], ["6.10", "None"], ["6.10", "DIO"]),
        *(["6.9", "None"], ["6.9", "DIO"]),
    ]
    assert [row.first for row in view.rows] == [True, True, False, True, False]


def test_rows_can_be_ordered_by_variant_first() -> None:
    cells = ordered_cells(small_data().cells, ("variant:desc", "version"), small_data().workload)
    assert [(c.variant, c.version) for c in cells] == [
        *(("DIO", "6.9"), ("DIO", "6.10"), ("None", "6.9"), ("None", "6.10")),
        ("None", "7.10<script>"),
    ]


def test_missing_is_a_dash_and_failures_are_rows_with_footnotes() -> None:
    definition = TableDefinition(step="read", columns=["ops_per_sec", "p50_us", "w_amp_lsm"])
    view, notes = table(small_data(), definition)
    assert [row[2:] for row in texts(view)] == [
        *(["skipped", "-", "-"], ["136915", "615.5", "-"], ["failed", "-", "-"]),
        *(["136915", "615.5", "-"], ["invalid", "-", "-"]),
    ]
    marks = [row.cells[2].notes for row in view.rows]
    assert marks == [(1,), (2,), (3,), (), (4,)]
    assert all(not cell.notes for row in view.rows for cell in row.cells[3:])
    assert [row.failed for row in view.rows] == [True, False, True, False, True]
    assert [row.tainted for row in view.rows] == [False, True, False, False, False]
    assert notes.texts[1:] == [
        "cpu-steal: 4.1 % of CPU time was stolen. Remedy: Run on a host of its own.",
        "failed: db_bench was killed by signal 9.",
        "invalid: p50 615.5 is above p99 12.7.",
    ]


def test_equal_footnotes_are_shared_over_the_page() -> None:
    page = build_page(small_data())
    first, second = (test.tables[0].rows[0].cells[2] for test in page.tests)
    assert first.notes == second.notes == (1,)
    assert len(page.footnotes) == len(set(page.footnotes))


def test_several_repetitions_show_median_spread_count_and_what_failed() -> None:
    trials = [
        small_trial(f"r{n}", {"fill": ok_step("fillrandom", ops_per_sec=value)}, repetition=n)
        for n, value in ((3, 300.0), (1, 100.0), (2, 220.0))
    ]
    late = StepView(StepState.TIMEOUT, "no end after 60 s")
    trials.append(small_trial("r4", {"fill": late}, repetition=4))
    cells = (Cell("rocksdb", "7.0", "None", "here", trials=tuple(trials)),)
    data = replace(small_data(), cells=cells)
    view, notes = table(data, TableDefinition(step="fill", columns=["ops_per_sec"]))
    assert [column.title for column in view.columns] == [
        *("Version", "Opts", "n", "ops/sec", "Run"),
    ]
    assert texts(view) == [["7.0", "None", "3", "220"]]
    assert view.rows[0].cells[3].hover == "median of 3, 100 to 300"
    assert view.rows[0].cells[4].trials == (("1", "r1"), ("2", "r2"), ("3", "r3"), ("4", "r4"))
    assert notes.texts == ["one repetition of 4 timeout: no end after 60 s."]


def test_columns_take_other_steps_phases_and_roles_by_name() -> None:
    step = StepView(
        StepState.OK,
        measurements={
            ("readrandom", 1, None, "ops_per_sec"): 10.0,
            ("readrandom", 1, "writer", "ops_per_sec"): 2.0,
            ("warmup", 1, None, "ops_per_sec"): 5.0,
            (None, 1, None, "du_kib"): 7.0,
        },
    )
    killed = StepView(StepState.FAILED, "killed")
    trial = small_trial("t", {"read": step, "fill": killed})
    data = replace(small_data(), cells=(Cell("rocksdb", "7", "None", "h", trials=(trial,)),))
    definition = TableDefinition(
        step="read",
        columns=[
            "ops_per_sec",
            ColumnDefinition(metric="ops_per_sec", title="writer", role="writer"),
            ColumnDefinition(metric="ops_per_sec", title="warm", phase="warmup"),
            "du_kib",
            ColumnDefinition(metric="stall_time_s", step="fill"),
        ],
    )
    view, _ = table(data, definition)
    assert texts(view) == [["7", "None", "10", "2", "5", "7", "failed"]]
    assert [cell.notes for cell in view.rows[0].cells[2:7]] == [(), (), (), (), (1,)]


def test_axes_and_engines_that_vary_become_columns() -> None:
    trial = small_trial("t", {"fill": ok_step("fillrandom", ops_per_sec=1.0)})
    cells = tuple(
        Cell("rocksdb", "7", "None", "h", {"threads": threads}, (trial,)) for threads in (16, 4, 1)
    )
    data = replace(small_data(), cells=cells)
    view, _ = table(data, TableDefinition(step="fill", columns=["ops_per_sec"]))
    assert [column.title for column in view.columns][:3] == ["Version", "Opts", "threads"]
    assert [row[2] for row in texts(view)] == ["1", "4", "16"]


@pytest.mark.parametrize(
    ("definition", "message", "hint"),
    [
        (
            TableDefinition(step="fill", columns=["ops_per_sek"]),
            "A table of step 'fill' shows the metric 'ops_per_sek', which is not defined.",
            "did you mean 'ops_per_sec'?",
        ),
        (
            TableDefinition(step="fill", columns=["zzz"]),
            "A table of step 'fill' shows the metric 'zzz', which is not defined.",
            "define it in metrics.toml",
        ),
        (
            TableDefinition(step="fyll", columns=["ops_per_sec"]),
            "A table of step 'fyll' names the step 'fyll', which workload 'small' does not have.",
            "its steps are fill, read",
        ),
        (
            TableDefinition(step="fill", columns=["w_amp_lsm", "w_amp_sum_over_l0"]),
            "A table of step 'fill' gives the metrics 'w_amp_lsm' and 'w_amp_sum_over_l0' the same "
            "title 'W-Amp'.",
            "give one of them its own title; different definitions never look alike",
        ),
    ],
)
def test_bad_table_definitions_are_one_line(
    definition: TableDefinition, message: str, hint: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        table(small_data(), definition)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_states_of_trials_that_did_not_reach_a_step() -> None:
    planned = small_trial("a", {}, state=TrialState.PLANNED)
    ended = small_trial("b", {}, state=TrialState.OK)
    failed = small_trial("c", {}, state=TrialState.FAILED, reason="no build")
    cells = tuple(
        Cell("rocksdb", version, "None", "h", trials=trials)
        for version, trials in (("4", (planned,)), ("3", (ended,)), ("2", (failed,)), ("1", ()))
    )
    data = replace(small_data(), cells=cells)
    view, notes = table(data, TableDefinition(step="fill", columns=["ops_per_sec"]))
    assert [row[2] for row in texts(view)] == ["planned", "not run", "failed", "not run"]
    assert notes.texts == ["failed: no build."]


def test_provenance_flags_and_commands() -> None:
    data = seed_data()
    view = provenance(data.cells, {})
    assert len(view.rows) == 4
    assert [cell.text for cell in view.rows[-1].cells][1:5] == [
        *("7.2.2", "git", "v7.2.2", artifact("7.2.2").commit[:12]),  # type: ignore[index]
    ]
    assert view.rows[-1].cells[7].hover == f"db_bench {artifact('7.2.2').sha256['db_bench']}"
    (flags,) = flag_tables(data.cells, {})
    assert flags.title == "rocksdb 7.2.2"
    assert [cell.text for cell in flags.rows[0].cells][:5] == [
        *("hard_rate_limit", "3", "-", "dropped", "removed in 7.0"),
    ]
    newest = [cell for cell in data.cells if cell.version == "7.2.2"]
    shown = commands(newest, ["bulkload", "bulkload-compact"], {})
    assert [command.title for command in shown] == [
        *("7.2.2 DIO bulkload", "7.2.2 DIO bulkload-compact, 7.2.2 None bulkload-compact"),
        "7.2.2 None bulkload",
    ]
    assert shown[0].text == (
        "LD_PRELOAD='' /opt/db_bench --benchmarks=fillrandom,stats --use_direct_reads=true"
    )


def test_the_setup_names_compilers_and_sources() -> None:
    assert build_lines(seed_data(("7.2.2", "6.10.4")).cells, {}) == (
        ("Compiler", "gcc 12.2.0"),
        ("Versions of rocksdb", "6.10.4 (git v6.10.4), 7.2.2 (git v7.2.2)"),
    )
    assert build_lines((), {}) == ()


def test_a_refused_build_says_so_in_the_provenance() -> None:
    refused = replace(artifact("7.2.2"), state="refused", commit=None, sha256={}, build_flags={})
    trial = small_trial("t", {}, artifact=refused)
    view = provenance((Cell("rocksdb", "7.2.2", "None", "h", trials=(trial,)),), {})
    assert [cell.text for cell in view.rows[0].cells][2:] == [
        *("git (refused)", "v7.2.2", "-", "gcc 12.2.0", "-", "-"),
    ]
    assert view.rows[0].failed


def test_repeated_runs_in_one_output_give_their_median() -> None:
    step = StepView(
        StepState.OK,
        measurements={("p", run, None, "m"): float(run * run) for run in (1, 2, 3)},
    )
    assert find_value(step, "m", "p", None) == 4.0
    assert find_value(step, "m", "q", None) is None
    assert find_value(step, "other", "p", None) is None


def test_a_metric_that_is_there_once_is_found_where_no_phase_is_asked_for() -> None:
    once: dict[MeasurementKey, float] = {("test", 1, "read", "read_iops"): 117331.0}
    twice: dict[MeasurementKey, float] = {**once, ("other", 1, "read", "read_iops"): 1.0}
    assert find_value(StepView(StepState.OK, measurements=once), "read_iops", None, None) == 117331
    assert find_value(StepView(StepState.OK, measurements=twice), "read_iops", None, None) is None
    assert find_value(StepView(StepState.OK, measurements=once), "read_iops", "x", None) is None


def number_texts(unit: str, values: list[float], asked: str = "") -> tuple[str, list[str]]:
    metric = Metric.model_validate({"title": "T", "unit": unit, "better": "lower", "text": "x"})
    form = number_form(metric, asked, values, "A table")
    return form.title("T"), [form.text(value) for value in values]


def test_sizes_take_the_unit_that_suits_the_whole_column() -> None:
    assert number_texts("KiB", [127916, 21499600]) == ("T (GiB)", ["0.12", "20.50"])
    assert number_texts("KiB", [5120, 2097152]) == ("T (MiB)", ["5.00", "2048.00"])
    assert number_texts("KiB", [33.0, 0.0]) == ("T (KiB)", ["33.0", "0"])
    assert number_texts("bytes", [191.0, 8.0]) == ("T (bytes)", ["191", "8"])
    assert number_texts("bytes", [0.0]) == ("T (bytes)", ["0"])
    assert number_texts("KiB", []) == ("T (KiB)", [])
    assert number_texts("KiB", [127916], "exact") == ("T", ["127916"])
    assert number_texts("s", [5069.5, 9.0], "clock") == ("T", ["1:24:29.50", "00:09.00"])


@given(st.lists(st.floats(1, 1e15), min_size=1, max_size=9))
def test_a_size_keeps_two_digits_and_its_magnitude(values: list[float]) -> None:
    title, texts = number_texts("bytes", values)
    unit = title.removeprefix("T (").removesuffix(")")
    factor = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}[unit]
    for value, text in zip(values, texts, strict=True):
        assert abs(float(text) * factor - value) <= max(0.06 * value, 0.5)


def test_texts_are_filled_from_parameters_and_measurements() -> None:
    measured = {"found_ratio": (0.628, 0.634), "max_us": (), "p50_us": (1.0,)}
    assert fill("{N:size} {ON} {TEXT:size}", {"N": 1 << 24, "ON": False, "TEXT": "1GiB"}, {}) == (
        "16MiB false 1GiB"
    )
    got = fill("{N:,} {found_ratio:.0%} {found_ratio:.1%} {max_us} {{x}}", {"N": 1000}, measured)
    assert got == "1,000 63% 62.8% to 63.4% - {x}"
    for bad in ("{", "{N:q}", "{M}", "{N.real}"):
        with pytest.raises(ConfigurationError, match="has a bad placeholder"):
            fill(bad, {"N": 1000}, measured)


@given(st.lists(st.tuples(*[st.integers(0, 99)] * 3), min_size=2))
def test_versions_sort_as_their_numbers(versions: list[tuple[int, int, int]]) -> None:
    words = [".".join(map(str, version)) for version in versions]
    assert sorted(words, key=version_key) == [".".join(map(str, v)) for v in sorted(versions)]


def test_versions_with_words() -> None:
    words = ["main", "7.2.2", "7.2", "7.2-rc1", "6.10", "6.9"]
    assert sorted(words, key=version_key) == ["6.9", "6.10", "7.2-rc1", "7.2", "7.2.2", "main"]


@given(st.lists(st.floats(-1e9, 1e9), min_size=1))
def test_median_lies_in_the_middle(values: list[float]) -> None:
    middle = median(values)
    assert middle is not None
    assert sum(value < middle for value in values) <= len(values) / 2
    assert sum(value > middle for value in values) <= len(values) / 2


def test_taints_have_a_remedy_only_when_one_is_known() -> None:
    step = replace(ok_step("fillrandom", ops_per_sec=1.0), taints=(replace(STALE, remedy=""),))
    trial = small_trial("t", {"fill": step})
    data = replace(small_data(), cells=(Cell("r", "7", "None", "h", trials=(trial,)),))
    _, notes = table(data, TableDefinition(step="fill", columns=["ops_per_sec"]))
    assert notes.texts == ["cpu-steal: 4.1 % of CPU time was stolen."]
