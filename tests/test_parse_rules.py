"""Tools that are TOML only, and the front door of the package."""

from __future__ import annotations

import gzip
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrunner.definitions import Output
from benchrunner.errors import ConfigurationError, OutputNotRecognisedError
from benchrunner.parse import PARSERS, parse_output
from benchrunner.parse.rules import parse_rules

ROOT = Path(__file__).parent / "cases"
CASE = ROOT / "redis-benchmark" / "7.0-two-tests"
RULES = [
    Output.model_validate(rule)
    for rule in tomllib.loads((CASE.parent / "tool.toml").read_text())["output"]
]
TEXT = (CASE / "stdout").read_text()
TIMES = Output(pattern=r"took (?P<wall_s>[\d,]+) ms", scale={"wall_s": 0.001}, require=["wall_s"])


def test_phases_have_their_values() -> None:
    found = {(m.phase, m.metric): m.value for m in parse_rules([TEXT], RULES).measurements}
    assert found["SET", "ops_per_sec"] == 79936.05
    assert found["GET", "p99_ms"] == 0.567


@given(size=st.integers(0, len(TEXT)))
def test_a_cut_output_never_gives_a_wrong_number(size: int) -> None:
    try:
        found = parse_rules([TEXT[:size]], RULES).measurements
    except OutputNotRecognisedError:
        return
    assert set(found) <= set(parse_rules([TEXT], RULES).measurements)


def test_a_required_metric_that_is_missing_is_a_problem() -> None:
    text = TEXT.replace("throughput summary: 84033.61", "throughput summary: ?")
    assert parse_rules([text], RULES).problems == ("ops_per_sec is missing in phase GET, run 1",)


def test_a_factor_and_thousands_separators() -> None:
    parsed = parse_rules(["took 12,500 ms\n"], [TIMES])
    assert [(m.phase, m.metric, m.value) for m in parsed.measurements] == [(None, "wall_s", 12.5)]
    assert parsed.problems == ()


def test_a_second_phase_of_the_same_name_is_a_second_run() -> None:
    parsed = parse_rules([TEXT, TEXT], RULES)
    assert {(m.phase, m.run) for m in parsed.measurements} == {
        ("SET", 1), ("GET", 1), ("SET", 2), ("GET", 2)
    }  # fmt: skip


def test_a_line_may_name_its_phase_and_role() -> None:
    rule = Output(pattern=r"(?P<phase>\w+) (?P<role>\w+): (?P<ops_per_sec>\d+)", require=["wall_s"])
    parsed = parse_rules([], [rule], ["mixed reader: 7\nmixed writer: 8\n"])
    assert [m[:4] for m in parsed.measurements] == [
        ("mixed", 1, "reader", "ops_per_sec"),
        ("mixed", 1, "writer", "ops_per_sec"),
    ]
    assert parsed.problems == ("wall_s is missing in phase mixed, run 1",)


def test_nothing_found_is_not_recognised() -> None:
    with pytest.raises(OutputNotRecognisedError) as caught:
        parse_rules(["Could not connect to Redis at 127.0.0.1:6379\n"], RULES)
    assert str(caught.value) == (
        "none of the tool's 3 output rules found a value in the text\n"
        "  try: compare the patterns in the tool's TOML file with the stored stdout"
    )


def test_a_wrong_expression_names_itself() -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_rules([], [Output(pattern="(?P<x")])
    assert str(caught.value).startswith("output rule '(?P<x' is not a regular expression: ")
    assert caught.value.hint == "write it as a TOML literal string, in single quotes"


# ---------------------------------------------------------------- files


def test_compressed_files_read_the_same(tmp_path: Path) -> None:
    case = ROOT / "db_bench" / "7.2.2-overwrite"
    for name in ("stdout", "stderr"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((case / name).read_bytes()))
    plain = parse_output("db_bench", case / "stdout", case / "stderr")
    assert parse_output("db_bench", tmp_path / "stdout", tmp_path / "stderr") == plain
    assert parse_output("db_bench", tmp_path / "stdout.gz", tmp_path / "stderr.gz") == plain


def test_bytes_that_are_no_text_are_not_recognised(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_bytes(bytes(range(256)) * 100)
    with pytest.raises(OutputNotRecognisedError, match="stdout: the text is not db_bench's output"):
        parse_output("db_bench", tmp_path / "stdout")


@pytest.mark.parametrize("content", [b"\x1f\x8b\x08broken", b"no gzip at all"])
def test_a_damaged_archive_says_so(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "log.gz").write_bytes(content)
    with pytest.raises(OutputNotRecognisedError, match="the compressed file is damaged") as caught:
        parse_output("fio", tmp_path / "log.gz")
    assert caught.value.hint == "fetch the run folder again, or restore the file from a copy"


def test_a_cut_archive_says_so(tmp_path: Path) -> None:
    whole = gzip.compress(TEXT.encode() * 50)
    (tmp_path / "log.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(OutputNotRecognisedError, match="the compressed file is damaged"):
        parse_output("rules", tmp_path / "log.gz", None, RULES)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(OutputNotRecognisedError, match="gone: cannot be read: No such file"):
        parse_output("fio", tmp_path / "gone")


def test_an_unknown_parser_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_output("sysbench", tmp_path)
    assert str(caught.value) == (
        "there is no parser 'sysbench'\n  try: use one of: db_bench, fio, rules"
    )


def test_every_parser_has_a_version() -> None:
    assert {name: parser.version for name, parser in PARSERS.items()} == {
        "db_bench": 2,
        "fio": 1,
        "rules": 1,
    }
