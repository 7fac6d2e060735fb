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
from benchrunner.model import Parsed
from benchrunner.parse import PARSERS, parse_output
from benchrunner.parse.rules import parse_rules

ROOT = Path(__file__).parent / "cases"
CASE = ROOT / "redis-benchmark" / "7.0-two-tests"
TOOLS = ROOT.parents[1] / "benchrunner" / "tools"


def shipped(tool: str) -> list[Output]:
    rules = tomllib.loads((TOOLS / f"{tool}.toml").read_text())["output"]
    return [Output.model_validate(rule) for rule in rules]


RULES = shipped("redis-benchmark")
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
        parse_rules(["Could not connect to Redis at 127.0.0.1:6379\n"], [TIMES])
    assert str(caught.value) == (
        "none of the tool's 1 output rules found a value in the text\n"
        "  try: compare the patterns in the tool's TOML file with the stored stdout"
    )


@pytest.mark.parametrize(
    ("how", "text", "value"),
    [
        ("size", "5.94MB", round(5.94 * 2**20)),
        ("size", "12.5 GiB", 12.5 * 2**30),
        ("count", "114K", 114_000.0),
        ("count", "15k", 15_000.0),
        ("bits", "15.1Gbit/s", 15.1e9),
        ("bits", "940 Mbits/sec", 940e6),
        ("duration", "~2.5us", 2.5e-6),
        ("duration", "21.095\u00b5s", 21.095e-6),
        ("duration", "660\u03bcs", 660e-6),
        ("duration", "1.02m", 61.2),
        ("size", "5.94 parsecs", None),
        ("bits", "15.1", None),
        ("size", "9" * 400, None),
    ],
)
def test_values_with_units_and_prefixes(how: str, text: str, value: float | None) -> None:
    rules = [
        Output.model_validate({"pattern": "is (?P<block_bytes>.*);", "read": {"block_bytes": how}}),
        Output(pattern="(?P<ops_per_sec>1) to"),
    ]
    found = {m.metric: m.value for m in parse_rules([f"1 to is {text};\n"], rules).measurements}
    assert found.get("block_bytes") == (None if value is None else pytest.approx(value))


def test_a_scaled_value_is_as_it_was_printed() -> None:
    rule = Output(
        pattern="99% (?P<p99_ms>.*);", read={"p99_ms": "duration"}, scale={"p99_ms": 1000.0}
    )
    assert [m.value for m in parse_rules(["99% 9.97ms;\n"], [rule]).measurements] == [9.97]


def test_a_carriage_return_ends_a_line() -> None:
    text = (
        "\r 1-XXH32: 16384 ->  412 it/s ( 6.1 MB/s) \r 1#XXH32: 16384 ->  413 it/s ( 6.4 MB/s) \n"
    )
    found = parse_rules([], shipped("xxhsum"), [text]).measurements
    assert [m[:] for m in found] == [
        ("XXH32", 1, None, "block_bytes", 16384.0),
        ("XXH32", 1, None, "hash_mb_per_sec", 6.4),
    ]


def test_a_problem_is_said_once_whatever_else_is_there() -> None:
    line = "  Non-2xx or 3xx responses: 7\n"
    parsed = parse_rules([line, "Requests/sec:  5.0\n", line], shipped("wrk"))
    assert parsed.problems == ("Non-2xx or 3xx responses: 7",)
    assert [m.metric for m in parsed.measurements] == ["ops_per_sec"]


def test_a_problem_alone_does_not_list_what_is_missing_too() -> None:
    parsed = parse_rules(["FATAL: Invalid value for --threads: 0."], shipped("sysbench"))
    assert parsed == Parsed((), problems=("FATAL: Invalid value for --threads: 0.",))


def test_a_last_line_without_its_end_counts_where_more_follows_the_figure() -> None:
    rule = Output(pattern=r"(?P<mb_per_sec>\d+)MB")
    assert parse_rules(["12MB/s"], [rule]).measurements[0].value == 12.0
    with pytest.raises(OutputNotRecognisedError):
        parse_rules(["12MB"], [rule])


def rules_alone() -> list[Path]:
    return [
        case.parent
        for case in sorted(ROOT.glob("*/*/stdout"))
        if (path := TOOLS / f"{case.parent.parent.name}.toml").exists()
        and "output" in tomllib.loads(path.read_text())
    ]


@pytest.mark.parametrize("case", rules_alone(), ids=lambda case: f"{case.parent.name}/{case.name}")
def test_no_cut_of_a_real_output_gives_a_wrong_number(case: Path) -> None:
    rules = shipped(case.parent.name)
    text = ((case / "stdout").read_bytes() or (case / "stderr").read_bytes()).decode()
    whole = set(parse_rules([text], rules).measurements)
    for size in range(0, len(text), max(1, len(text) // 25)):
        try:
            part = parse_rules([text[:size]], rules).measurements
        except OutputNotRecognisedError:
            continue
        assert set(part) <= whole


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
        "there is no parser 'sysbench'\n"
        "  try: use one of: db_bench, fio, hostbench, iperf3, openssl, rules"
    )


def test_every_parser_has_a_version() -> None:
    assert {name: parser.version for name, parser in PARSERS.items()} == {
        "db_bench": 4,
        "fio": 2,
        "hostbench": 1,
        "iperf3": 1,
        "openssl": 1,
        "rules": 2,
    }
