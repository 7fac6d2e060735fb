"""Laws of the db_bench parser, and the forms that the stored cases do not contain."""

from __future__ import annotations

import io
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from benchrunner.errors import OutputNotRecognisedError
from benchrunner.model import Measurement
from benchrunner.parse.db_bench import parse_db_bench
from benchrunner.parse.figure import Figure, printed, sharp
from benchrunner.parse.text import MAX_LINE_CHARACTERS, Lines

if TYPE_CHECKING:
    from benchrunner.model import Parsed

ROOT = Path(__file__).parent / "cases" / "db_bench"
TRUNCATED = [
    "6.11.4-overwrite",
    "6.28.2-fillrandom",
    "7.2.2-combined",
    "7.2.2-repeats",
    "7.8.3-several",
    "7.8.3-warmup",
    "11.8.1-ci",
    "11.8.1-overwrite",
]
Key = tuple[str | None, int, str | None, str]


@cache
def text(case: str, stream: str = "stdout") -> str:
    return (ROOT / case / stream).read_text()


def values(parsed: Parsed) -> dict[Key, float]:
    return {found[:4]: found.value for found in parsed.measurements}


@cache
def whole(case: str) -> dict[Key, float]:
    return values(parse_db_bench(io.StringIO(text(case)), io.StringIO(text(case, "stderr"))))


def parse_prefix(case: str, size: int) -> dict[Key, float]:
    try:
        prefix = io.StringIO(text(case)[:size])
        return values(parse_db_bench(prefix, io.StringIO(text(case, "stderr"))))
    except OutputNotRecognisedError:
        return {}


@settings(max_examples=400, deadline=None)
@given(data=st.data(), case=st.sampled_from(TRUNCATED))
def test_a_cut_log_never_gives_a_wrong_number(data: st.DataObject, case: str) -> None:
    size = data.draw(st.integers(0, len(text(case))))
    assert parse_prefix(case, size).items() <= whole(case).items()


@pytest.mark.parametrize("case", ["11.8.1-ci", "6.11.4-repeats"])
def test_a_log_cut_at_any_byte_never_gives_a_wrong_number(case: str) -> None:
    for size in range(len(text(case)) + 1):
        if "micros/op" in text(case)[max(0, size - 120) : size + 120]:
            assert parse_prefix(case, size).items() <= whole(case).items()


def test_statistics_cut_at_any_byte_never_give_a_wrong_number() -> None:
    full = text("11.8.1-overwrite")
    for size in range(full.index("** Compaction"), len(full) + 1, 3):
        assert parse_prefix("11.8.1-overwrite", size).items() <= whole("11.8.1-overwrite").items()


@settings(max_examples=100, deadline=None)
@given(data=st.data(), case=st.sampled_from(TRUNCATED))
def test_a_cut_stderr_never_changes_what_stdout_says(data: st.DataObject, case: str) -> None:
    errors = text(case, "stderr")
    cut = errors[: data.draw(st.integers(0, len(errors)))]
    found = values(parse_db_bench(io.StringIO(text(case)), io.StringIO(cut)))
    assert {key: v for key, v in found.items() if key[2] != "interval"}.items() <= (
        whole(case).items()
    )


UNRELATED = st.sampled_from(
    [
        "",
        "Initializing RocksDB Options from command-line flags",
        "thread 7 says hello: 1 of 2",
        "(       3,       4 ]     1108   0.341%  99.000% ",
        "L0 is not a row: 1.0 2.0 3.0",
        "    0.0     1.0",
        "... finished 1000 ops                              ",
        "num-running-compactions: 2",
        "Block cache LRUCache@0x55d6 capacity: 4.00 MB",
        "2026/01/01-00:00:00 a line of another program",
        "\u00b5s \u00b1 \u2026",
    ]
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.data_too_large])
@given(data=st.data(), case=st.sampled_from(TRUNCATED))
def test_unrelated_lines_between_change_nothing(data: st.DataObject, case: str) -> None:
    lines = text(case).split("\n")
    places = data.draw(st.lists(st.integers(0, len(lines) - 1), max_size=20))
    for place in sorted(places, reverse=True):
        lines.insert(place, data.draw(UNRELATED))
    parsed = parse_db_bench(io.StringIO("\n".join(lines)), io.StringIO(text(case, "stderr")))
    assert values(parsed) == whole(case)


WORDS = st.sampled_from(
    [
        *("readrandom   : ", " 467.4", " micros/op ", "136915", " ops/sec", ";", " inf", "-nan"),
        *(" MB/s", "(1 of 2 found)", "\n", "\r", "Microseconds per read:\n", "Count: ", "Min: "),
        "Percentiles: P50: 1 P75: 2 P99: 3 P99.9: 4 P99.99: 5\n",
        "** Compaction Stats [default] **\n",
        *("Level    Files   Size\n", " Sum ", "  L0 ", "1.0 KB", "Uptime(secs): 1.0 total\n"),
        *("Cumulative compaction: ", "9" * 400, " GB write, "),
        "Cumulative stall: 1:2:3 H:M:S, x percent\n",
        "Stalls(count): 3 level0_slowdown, ",
        *("Write Stall (count): total-stops: 1\n", "x [AVG 3 runs] : "),
        *("Warming up benchmark by running 999999999 times\n", " ... thread 0: (1,1) ops and "),
        "(1.0,1.0) ops/second in (0.000001,9999999.0) seconds\n",
        *("==== DB: x ===\n", "\x00", "\ud800"),
    ]
)


@settings(max_examples=300, deadline=None)
@given(pieces=st.lists(st.one_of(WORDS, st.text(max_size=30)), max_size=40))
@example(pieces=["x : 1 micros/op \u0663 ops/sec; 1_0 MB/s\n"])
def test_arbitrary_text_raises_nothing_else(pieces: list[str]) -> None:
    try:
        parsed = parse_db_bench(pieces, pieces)
    except OutputNotRecognisedError:
        return
    assert all(found.value == found.value for found in parsed.measurements)


@settings(max_examples=50, deadline=None)
@given(data=st.data(), case=st.sampled_from(TRUNCATED))
def test_the_size_of_the_pieces_does_not_matter(data: st.DataObject, case: str) -> None:
    full = text(case)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(full)), max_size=10)))
    pieces = [full[a:b] for a, b in zip([0, *cuts], [*cuts, len(full)], strict=True)]
    assert values(parse_db_bench(pieces, [text(case, "stderr")])) == whole(case)


def test_one_log_and_two_streams_say_the_same() -> None:
    """stdout and stderr of 7.2.2's overwrite as one log: header, intervals, result, statistics."""
    out, err = text("7.2.2-overwrite"), text("7.2.2-overwrite", "stderr")
    assert values(parse_db_bench([err, out])) == whole("7.2.2-overwrite")


def test_windows_line_ends_change_nothing() -> None:
    out = text("7.8.3-several").replace("\n", "\r\n")
    assert values(parse_db_bench([out])) == whole("7.8.3-several")


# ---------------------------------------------------------------- single forms


def test_percentiles_of_file_reads_are_not_taken_for_the_benchmarks() -> None:
    reads = (
        "** Level 0 read latency histogram (micros):\n"
        "Count: 9 Average: 9.0000  StdDev: 9.00\nMin: 9  Median: 9.0000  Max: 9\n"
        "Percentiles: P50: 9.00 P75: 9.00 P99: 9.00 P99.9: 9.00 P99.99: 9.00\n"
    )
    out = text("7.2.2-readrandom")
    assert values(parse_db_bench([out, reads])) == values(parse_db_bench([out]))


def test_quotient_without_meaning_is_missing() -> None:
    """6.11.4 prints W-Amp 13572270.0 after a compact that flushed nothing."""
    assert "13572270.0" in text("6.11.4-compact")
    assert not [key for key in whole("6.11.4-compact") if key[3].startswith("w_amp")]


def test_a_rate_that_is_no_number_is_missing() -> None:
    line = "waitforcompaction :       0.000 micros/op -9223372036854775808 ops/sec;    inf MB/s\n"
    assert values(parse_db_bench([line])) == {("waitforcompaction", 1, None, "usec_per_op"): 0.0}


def test_our_driver_says_how_large_sqlite_s_file_is() -> None:
    text = (
        "Engine:     sqlite 3.40.1\nKeys:       8 bytes each\nEntries:    100\n"
        "fillseq      :       2.000 micros/op 500000 ops/sec 0.000 seconds 100 operations;\n"
        "sqlite: pages 250, page size 4096\n"
    )
    found = {m.metric: m for m in parse_db_bench([text]).measurements}
    assert found["file_size_bytes"] == Measurement(None, 1, None, "file_size_bytes", 1_024_000.0)
    cut = {m.metric for m in parse_db_bench([text[:-3]]).measurements}
    assert "file_size_bytes" not in cut


def test_an_unterminated_result_line_gives_what_is_complete() -> None:
    line = "readrandom   :     467.400 micros/op 136915 ops/sec;   34.7 MB"
    metrics = {key[3] for key in values(parse_db_bench([line]))}
    assert metrics == {"usec_per_op", "ops_per_sec"}


@pytest.mark.parametrize(
    ("line", "taint", "remedy"),
    [
        (
            "WARNING: Assertions are enabled; benchmarks unnecessarily slow",
            "assertions-enabled",
            "build with DEBUG_LEVEL=0 (-DNDEBUG) and run again",
        ),
        (
            "WARNING: Optimization is disabled: benchmarks unnecessarily slow",
            "optimization-disabled",
            "build with DEBUG_LEVEL=0 (-O2) and run again",
        ),
        *(
            (
                f"WARNING: {what}",
                "compression-missing",
                "install the compression library's development package, rebuild and run again",
            )
            for what in (
                "Snappy compression is not enabled",
                "zstd compression is not available",
                "Snappy compression is not effective",
                "lz4 compression is not effective or declined",
                "using Snappy compression in place of zstd (unsupported?)",
            )
        ),
    ],
)
def test_warnings_are_taints(line: str, taint: str, remedy: str) -> None:
    parsed = parse_db_bench([f"x : 1.0 micros/op 1 ops/sec;\n{line}\n"])
    assert [(t.name, t.evidence, t.remedy) for t in parsed.taints] == [(taint, line, remedy)]


def test_other_warnings_are_none() -> None:
    parsed = parse_db_bench(["x : 1.0 micros/op 1 ops/sec;\nWARNING: the moon is full\n"])
    assert parsed.taints == ()


@pytest.mark.parametrize("output", ["", "\n", "bash: db_bench: command not found\n", "{}", "\x00"])
def test_other_text_is_not_recognised(output: str) -> None:
    with pytest.raises(OutputNotRecognisedError) as caught:
        parse_db_bench([output])
    assert str(caught.value) == (
        "the text is not db_bench's output: it has no result line (name : N micros/op), no RocksDB "
        "header and no statistics\n"
        "  try: check that the file is complete and that the tool's name is right"
    )


def test_a_log_that_ends_after_the_header_has_no_benchmark() -> None:
    head = text("6.11.4-readrandom").split("DB path")[0]
    parsed = parse_db_bench([head], [text("6.11.4-compact", "stderr")])
    assert parsed.measurements == ()
    assert parsed.problems == (
        "no benchmark finished: there is no result line (... micros/op ...)",
    )
    assert parsed.facts["version"] == "6.11"


def test_errors_and_skipped_benchmarks_are_problems() -> None:
    out = "fillseq      : skipped (--use_existing_db is true)\nreadseq : 1.0 micros/op 9 ops/sec;\n"
    err = "put error: IO error: No space left on device\nput error: IO error: again\n"
    assert parse_db_bench([out], [err]).problems == (
        "fillseq was skipped by db_bench: --use_existing_db is true",
        "db_bench reports 2 error(s): put error: IO error: No space left on device",
    )


def test_an_unknown_flag_is_a_problem() -> None:
    parsed = parse_db_bench([], ["ERROR: unknown command line flag 'hard_rate_limit'\n"])
    assert parsed.problems == (
        "db_bench reports 1 error(s): ERROR: unknown command line flag 'hard_rate_limit'",
    )


def test_several_databases_have_no_common_statistics() -> None:
    out = text("7.2.2-overwrite")
    head, statistics = out.split("** Compaction Stats", 1)
    dump = f"\n==== DB: 0 ===\n** Compaction Stats{statistics}"
    found = values(parse_db_bench([head, dump, dump]))
    assert {key[0] for key in found} == {"overwrite"}


def test_several_column_families_have_no_common_amplification() -> None:
    out = text("7.2.2-overwrite")
    extra = "** Compaction Stats [other] **\nLevel    Files   Size     Score W-Amp\n"
    before, after = out.split("Uptime(secs)", 1)
    found = values(parse_db_bench([before, extra, "Uptime(secs)", after]))
    assert (None, 1, None, "w_amp_lsm") not in found
    assert found[None, 1, None, "stall_time_s"] == 1.017


def test_every_statistics_dump_is_a_run_of_its_own() -> None:
    out = text("7.2.2-overwrite")
    found = values(parse_db_bench([out, text("6.11.4-overwrite")]))
    assert found[None, 1, None, "w_amp_lsm"] == 3.8
    assert found[None, 2, None, "w_amp_lsm"] == 3.7


def test_a_table_with_no_dump_around_it_is_no_statistics() -> None:
    """Lines of a dump and of histograms whose beginning is missing mean nothing."""
    dump = text("7.2.2-overwrite").split("** Compaction Stats [default] **\n")[-1]
    histogram = text("7.2.2-readrandom").split("Microseconds per read:")[1].split("\n\n")[0]
    parsed = parse_db_bench([histogram, "\n", dump, "put error: x\nFlush failed: IO error\n"])
    assert parsed.measurements == ()
    assert parsed.problems == ("db_bench reports 2 error(s): put error: x",)


def test_damaged_statistics_leave_their_values_out() -> None:
    out = text("7.2.2-overwrite")
    for damage in (
        ("Cumulative stall: ", "Cumulative stall: ?"),
        ("Cumulative stall: 00:00:", "Cumulative stall: 1:2:3:4:"),
        ("Uptime(secs): ", "Uptime(secs): ?"),
    ):
        metrics = {key[3] for key in values(parse_db_bench([out.replace(*damage)]))}
        assert not {"stall_time_s", "uptime_s"} <= metrics
        assert "w_amp_lsm" in metrics
    for start, metric in (
        ("Flush(GB): ", "flush_gb"),
        ("AddFile(GB): ", "addfile_gb"),
        ("Cumulative compaction: ", "compaction_write_gb"),
        ("Cumulative WAL: ", "wal_gb"),
        ("Cumulative writes: ", "w_amp_user"),
        ("Stalls(count): ", "stall_count"),
    ):
        damaged = re.sub(rf"^{re.escape(start)}.*$", f"{start}?", out, flags=re.M)
        assert metric not in {key[3] for key in values(parse_db_bench([damaged]))}
    damaged = re.sub(r"^( Sum +\S+ +\S+) MB", r"\1 XB", out, flags=re.M)
    assert "lsm_size_bytes" not in {key[3] for key in values(parse_db_bench([damaged]))}


def test_blob_bytes_are_left_to_the_columns() -> None:
    """The rate of a row includes blob files, its Write column does not: they are not mixed."""
    out = text("7.2.2-overwrite").replace("       0.0       0.0\n", "       0.0       0.1\n")
    found = values(parse_db_bench([out]))
    assert (None, 1, None, "w_amp_sum_over_l0") not in found
    assert found[None, 1, None, "w_amp_lsm"] == 3.8


@pytest.mark.parametrize(
    ("phase", "operation"),
    [
        ("seekrandomwhilewriting", "seek"),
        ("readwhilewriting", "read"),
        ("overwrite", "write"),
        ("updaterandom", "update"),
        ("uncompress", ""),
        ("randomtransaction", "op"),
    ],
)
def test_the_principal_operation_has_no_role(phase: str, operation: str) -> None:
    block = (
        "Count: 2 Average: 5.0000  StdDev: 1.00\nMin: 1  Median: 5.0000  Max: 9\n"
        "Percentiles: P50: {0}.00 P75: 6.00 P99: 7.00 P99.9: 8.00 P99.99: 9.00\n"
    )
    out = f"{phase} : 1.0 micros/op 9 ops/sec;\nMicroseconds per other:\n{block.format(1)}"
    out += f"Microseconds per {operation}:\n{block.format(2)}"
    found = values(parse_db_bench([out]))
    assert found[phase, 1, None, "p50_us"] == 2.0
    assert found[phase, 1, operation, "p50_us"] == 2.0
    assert found[phase, 1, "other", "p50_us"] == 1.0


# ---------------------------------------------------------------- over time, lines, figures


def interval(thread: int, done: int, span: float, at: float) -> str:
    return (
        f"2022/03/01-10:00:00  ... thread {thread}: ({done},{done}) ops and "
        f"({done / span:.1f},{done / at:.1f}) ops/second in ({span:.6f},{at:.6f}) seconds\n"
    )


def test_interval_lines_of_all_threads_add_up() -> None:
    lines = [
        interval(thread, 6000, 60.0, at) for at in (60.0, 120.0, 180.0) for thread in range(64)
    ]
    parsed = parse_db_bench(["x : 1.0 micros/op 1 ops/sec;\n"], lines)
    assert parsed.series["ops_per_sec"] == ((60.0, 6400.0), (120.0, 6400.0), (180.0, 6400.0))


def test_the_next_phase_is_a_curve_of_its_own() -> None:
    lines = [interval(0, 100, 1.0, at) for at in (1.0, 2.0)]
    lines += [interval(0, 50, 1.0, at) for at in (1.0, 2.0)]
    parsed = parse_db_bench(["x : 1.0 micros/op 1 ops/sec;\n"], lines)
    assert parsed.series["ops_per_sec"] == ((1.0, 100.0), (2.0, 100.0))
    assert parsed.series["ops_per_sec.2"] == ((1.0, 50.0), (2.0, 50.0))


def test_damaged_interval_lines_are_left_out() -> None:
    lines = [interval(0, 100, 0.5, 1e9), interval(1, 100, 9.0, 1.0)]
    parsed = parse_db_bench(["x : 1.0 micros/op 1 ops/sec;\n"], lines)
    assert parsed.series == {}


def test_a_line_without_end_takes_no_memory() -> None:
    lines = Lines(["a\n", *(["x" * 1000] * 1000), "y\nb\nc"])
    assert list(lines) == ["a", "b"]
    assert lines.rest == "c"
    assert MAX_LINE_CHARACTERS < 1_000_000


def test_figures_know_their_rounding() -> None:
    tenth = printed("0.10")
    assert tenth == Figure(0.1, 0.005)
    assert sharp(tenth) == 0.1
    assert sharp(printed("0.0")) is None
    assert printed("x") is None
    assert printed("7") == Figure(7.0, 0.0)
    assert Figure(1.0, 0.0).over(Figure(0.004, 0.005)) is None


def interval_line(thread: int, done: int, at: float) -> str:
    return (
        f"2026/11/21-10:00:00  ... thread {thread}: ({done},{done}) ops and ({done}.0,{done}.0) "
        f"ops/second in (1.000000,{at:.6f}) seconds\n"
    )


@pytest.mark.parametrize(
    ("benchmark", "expected"), [("readwhilewriting", 300.0), ("readrandom", 5300.0)]
)
def test_the_writer_of_a_while_writing_benchmark_is_not_in_its_curve(
    benchmark: str, expected: float
) -> None:
    stderr = "".join(
        interval_line(thread, done, float(second))
        for second in (1, 2, 3)
        for thread, done in ((0, 5000), (1, 100), (2, 200))
    )
    stdout = f"{benchmark} : 10.000 micros/op 300 ops/sec 3.0 seconds 900 operations;\n"
    series = parse_db_bench([stdout], [stderr]).series["ops_per_sec"]
    assert [value for _, value in series] == pytest.approx([expected] * len(series))
    assert len(series) == 3
