"""Numbers that cannot be had again are marked: repetitions in a run, and trials on a page."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from benchrunner.catalog import Catalog
from benchrunner.definitions import Steady
from benchrunner.model import Measurement, StepState, TrialState
from benchrunner.report.footnotes import Footnotes
from benchrunner.report.input import Cell, ReportData, StepView, TrialView
from benchrunner.report.lines import line_metrics, line_tables
from benchrunner.steadiness import unsteady

if TYPE_CHECKING:
    from benchrunner.report.view import RowView

CATALOG = Catalog()
NUMBERS = CATALOG.workload("host-numbers")


def spreads(**of: float) -> list[Measurement]:
    """Distance from the lowest to the highest repetition of benchmarks, in percent."""
    return [Measurement(name, 1, None, "spread_pct", value) for name, value in of.items()]


def test_repetitions_that_differ_too_much_are_a_taint() -> None:
    (taint,) = unsteady(NUMBERS, "full", spreads(a=5.9, b=6.2, c=24.0))
    assert taint.name == "unsteady"
    assert taint.evidence == (
        "2 of 3 benchmarks spread by more than ± 3 % over their repetitions, c by ± 12.0 %"
    )
    assert "hosts check HOST --noise" in taint.remedy


def test_only_the_scales_that_are_held_to_it_are_judged() -> None:
    wide = spreads(a=50.0)
    assert unsteady(NUMBERS, "smoke", wide) == ()
    assert unsteady(NUMBERS, "full", spreads(a=1.0)) == ()
    everywhere = NUMBERS.model_copy(update={"steady": Steady(within_pct=3)})
    assert unsteady(everywhere, "smoke", wide) != ()
    assert unsteady(NUMBERS.model_copy(update={"steady": None}), "full", wide) == ()


def page(scale: str, *requests_per_s: float) -> tuple[RowView, Footnotes]:
    """The line of the HTTP server, from as many trials."""
    trials = tuple(
        TrialView(
            f"t{number}", number, TrialState.OK, "", None,
            {"http": StepView(
                StepState.OK, measurements={(None, 1, None, "ops_per_sec"): value}
            )},
        )
        for number, value in enumerate(requests_per_s, start=1)
    )  # fmt: skip
    data = ReportData(
        workload=NUMBERS, params=NUMBERS.params, scale=scale, host_facts={},
        cells=(Cell("hostbench", "1.0", "None", "local", {}, trials),),
        metrics=CATALOG.metrics(), generated_at=datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    notes = Footnotes()
    (table,) = line_tables(data, "http", notes, dict.fromkeys(line_metrics(NUMBERS), ""))
    return table.rows[0], notes


@pytest.mark.parametrize(
    ("scale", "rates", "marked"),
    [
        ("full", (100.0, 107.0), True),
        ("full", (100.0, 105.0), False),
        ("full", (100.0,), False),
        ("smoke", (100.0, 200.0), False),
    ],
)
def test_trials_that_differ_too_much_are_marked_on_the_page(
    scale: str, rates: tuple[float, ...], marked: bool
) -> None:
    row, notes = page(scale, *rates)
    assert row.tainted is marked
    start = "unsteady: its trials spread by more than ± 3 %. Remedy: a quiet host"
    assert any(text.startswith(start) for text in notes.texts) is marked
    assert bool(row.cells[1].notes) is marked
