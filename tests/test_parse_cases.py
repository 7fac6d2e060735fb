"""Every folder tests/cases/TOOL/CASE is a test: real output, and what is expected of it."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchrunner.definitions import Metric, Tool
from benchrunner.parse import parse_output

if TYPE_CHECKING:
    from benchrunner.model import Parsed

CASES = sorted(path.parent for path in Path(__file__).parent.glob("cases/*/*/stdout"))
NAMES = [f"{case.parent.name}/{case.name}" for case in CASES]
DB_BENCH = [case for case in CASES if case.parent.name == "db_bench"]
TOOLS = {
    path.stem: path
    for path in (Path(__file__).parent.parent / "benchrunner" / "tools").glob("*.toml")
}
METRICS = Path(__file__).parent.parent / "benchrunner" / "metrics.toml"


def parse_case(case: Path) -> Parsed:
    """As a step of the shipped tool of that name is read."""
    if case.parent.name not in TOOLS:
        return parse_output(case.parent.name, case / "stdout", case / "stderr")
    tool = Tool.model_validate(tomllib.loads(TOOLS[case.parent.name].read_text()))
    return parse_output(tool.parser, case / "stdout", case / "stderr", tool.output)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_case_reads_as_expected(case: Path) -> None:
    expected: dict[str, Any] = json.loads((case / "expected.json").read_text())
    parsed = parse_case(case)
    assert [list(found) for found in parsed.measurements] == expected["measurements"]
    assert [taint.name for taint in parsed.taints] == expected["taints"]
    assert list(parsed.problems) == expected["problems"]
    assert {name: len(points) for name, points in parsed.series.items()} == expected["series"]
    assert expected["facts"].items() <= dict(parsed.facts).items()


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_case_says_where_it_came_from(case: Path) -> None:
    words = [line.partition(":")[0] for line in (case / "source.txt").read_text().splitlines()]
    assert words[:3] == ["binary", "command", "streams"]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_every_emitted_metric_is_defined(case: Path) -> None:
    defined = tomllib.loads(METRICS.read_text())
    assert {found.metric for found in parse_case(case).measurements} <= defined.keys()


def test_metric_definitions_are_complete() -> None:
    for name, text in tomllib.loads(METRICS.read_text()).items():
        metric = Metric.model_validate(text)
        assert metric.title, name
        assert metric.unit, name
        assert metric.text.endswith("."), name


def value(parsed: Parsed, metric: str, phase: str | None = None, run: int = 1) -> float | None:
    hits = [m.value for m in parsed.measurements if m[:4] == (phase, run, None, metric)]
    return hits[0] if hits else None


@pytest.mark.parametrize("case", DB_BENCH, ids=[case.name for case in DB_BENCH])
def test_result_lines_agree_with_a_plain_search(case: Path) -> None:
    """Independent of the parser: split on blanks, as benchmark.sh does."""
    parsed = parse_case(case)
    lines = [line for line in (case / "stdout").read_text().splitlines() if " micros/op " in line]
    warm_ups = 1 if "warmup" in case.name else 0
    seen: dict[str, int] = {}
    for line in lines[warm_ups:]:
        words = line.split()
        phase = words[0]
        seen[phase] = seen.get(phase, 0) + 1
        assert value(parsed, "usec_per_op", phase, seen[phase]) == float(words[2])
        assert value(parsed, "ops_per_sec", phase, seen[phase]) == float(words[4])
        rate = float(words[words.index("MB/s") - 1]) if "MB/s" in words else None
        assert value(parsed, "mb_per_sec", phase, seen[phase]) == rate
        found = re.search(r"\((\d+) of (\d+) found\)", line)
        assert value(parsed, "found_count", phase, seen[phase]) == (
            float(found[1]) if found else None
        )


@pytest.mark.parametrize(
    "case",
    [case for case in DB_BENCH if "Cumulative stall" in (case / "stdout").read_text()],
    ids=lambda case: case.name,
)
def test_last_statistics_agree_with_a_plain_search(case: Path) -> None:
    parsed = parse_case(case)
    text = (case / "stdout").read_text()
    stall = re.findall(r"^Cumulative stall: \d+:\d+:([\d.]+) H:M:S, ([\d.]+) percent", text, re.M)
    assert value(parsed, "stall_time_s") == float(stall[-1][0])
    assert value(parsed, "stall_pct") == float(stall[-1][1])
    rates = re.findall(r"^Cumulative compaction: .* GB write, ([\d.]+) MB/s write", text, re.M)
    assert value(parsed, "compaction_write_mb_per_sec") == float(rates[-1])
    # From the right, where no column was ever inserted but the two blob columns.
    tail = 12 if "Rblob(GB)" in text else 10
    cells = re.findall(r"^ Sum .*$", text, re.M)[-1].split()
    flushed = float(re.findall(r"^Flush\(GB\): cumulative ([\d.]+)", text, re.M)[-1])
    expected = float(cells[-tail + 1]) if flushed > 0 else None
    assert value(parsed, "w_amp_lsm") == expected


def test_the_metrics_page_is_in_step_with_the_definitions() -> None:
    """Every id in the page exists, and every W-Amp has its row."""
    defined = tomllib.loads(METRICS.read_text())
    page = (METRICS.parent.parent / "docs" / "metrics.md").read_text()
    ids = set(re.findall(r"`([a-z][a-z0-9]*(?:_[a-z0-9]+)+)`", page))
    assert ids <= defined.keys()
    rows = set(re.findall(r"^\| `(w_amp_\w+)` \|", page, re.M))
    assert rows == {name for name in defined if name.startswith("w_amp_")}
