"""RocksDB in memory: the page's flags in every version, its writer, what was not in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from command_support import HERE, SHIPPED, Subject
from plan_support import Known, refs
from report_data import ok_step, shipped_metrics, small_data, small_trial
from test_derive import PROCESS, ROOT, derived, made

from benchrunner.command import build_command
from benchrunner.definitions import Check, ColumnDefinition, Sweep, TableDefinition
from benchrunner.derive import DeriveContext
from benchrunner.errors import ConfigurationError
from benchrunner.in_memory import not_in_memory
from benchrunner.model import Measurement, StepState
from benchrunner.params import effective
from benchrunner.parse import parse_output
from benchrunner.parse.compaction import StatsDump
from benchrunner.plan import make_plan
from benchrunner.report.build import build_page
from benchrunner.report.footnotes import Footnotes
from benchrunner.report.input import Cell, StepView
from benchrunner.report.tables import build_tables
from benchrunner.report.view import DASH
from benchrunner.unfolding import unfolded

if TYPE_CHECKING:
    from benchrunner.model import Command, FlagNote
    from benchrunner.report.input import TrialView

NAME = "rocksdb-in-memory"
WORKLOAD = SHIPPED.workload(NAME)
VERSIONS = ("6.11.4", "7.2.2", "11.8.1")
PAGE = (
    "num_levels=6 key_size=20 prefix_size=20 keys_per_prefix=0 value_size=100 "
    "cache_size=17179869184 cache_numshardbits=6 compression_type=none compression_ratio=1 "
    "min_level_to_compress=-1 disable_seek_compaction=1 hard_rate_limit=2 "
    "write_buffer_size=134217728 max_write_buffer_number=2 level0_file_num_compaction_trigger=8 "
    "target_file_size_base=134217728 max_bytes_for_level_base=1073741824 disable_wal=0 sync=0 "
    "disable_data_sync=1 verify_checksum=1 delete_obsolete_files_period_micros=314572800 "
    "max_grandparent_overlap_factor=10 max_background_compactions=4 max_background_flushes=0 "
    "level0_slowdown_writes_trigger=16 level0_stop_writes_trigger=24 statistics=0 "
    "stats_per_interval=0 stats_interval=1048576 histogram=0 use_plain_table=1 open_files=-1 "
    "mmap_read=1 mmap_write=0 memtablerep=prefix_hash bloom_bits=10 bloom_locality=1 perf_level=0"
)
"""Flags of all commands of the page; those of test 2 have another prefix."""
READ = "duration=7200 use_existing_db=1 num=524288000 threads=32"
LOAD = "benchmarks=filluniquerandom use_existing_db=0 num=524288000 threads=1"
ADDED = {"db", "wal_dir", "benchmarks", "seed", "hash_bucket_count", "cache_type",
         "allow_concurrent_memtable_write", "compaction_readahead_size"}  # fmt: skip
"""What is ours: places, the statistics at the end, and defaults that moved."""


def command(version: str, step: str, variant: str = "None", scale: str = "published") -> Command:
    sweep = Sweep(name="x", workloads=[NAME], scale=scale, variants=[variant])
    (trial,) = make_plan(sweep, Known(WORKLOAD), refs(version)).trials
    subject = Subject(unfolded(WORKLOAD, trial.job))
    definition = next(one for one in WORKLOAD.steps if one.name == step)
    return build_command(definition, subject, trial.job, None, HERE)


def of_page(text: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in text.split())


def as_page(asked: str) -> str:
    return {"true": "1", "false": "0"}.get(asked, asked)


def notes(command: Command, action: str) -> dict[str, FlagNote]:
    return {one.flag: one for one in command.flags if one.action == action}


# ---------------------------------------------------------------- flags


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("step", "more"),
    [
        ("point-80k", f"{READ} writes_per_second=81920"),
        ("point-10k", f"{READ} writes_per_second=10240"),
        ("prefix-80k", f"{READ} writes_per_second=81920 prefix_size=12 keys_per_prefix=10"),
        ("prefix-10k", f"{READ} writes_per_second=10240 prefix_size=12 keys_per_prefix=10"),
        *((f"point-{rate}-load", LOAD) for rate in ("80k", "10k")),
        *(
            (f"prefix-{rate}-load", f"{LOAD} prefix_size=12 keys_per_prefix=10")
            for rate in ("80k", "10k")
        ),
    ],
)
def test_every_flag_of_the_page_is_asked_for(version: str, step: str, more: str) -> None:
    wanted = of_page(PAGE) | of_page(more)
    asked = {one.flag: as_page(one.asked) for one in command(version, step).flags}
    assert {flag: asked.get(flag) for flag in wanted} == wanted
    assert set(asked) - set(wanted) <= ADDED


@pytest.mark.parametrize(
    ("version", "dropped"),
    [
        ("6.11.4", {"disable_data_sync", "max_grandparent_overlap_factor", "cache_type"}),
        ("7.2.2", {"hard_rate_limit", "disable_data_sync", "max_grandparent_overlap_factor",
                   "cache_type"}),
        ("11.8.1", {"hard_rate_limit", "disable_data_sync", "max_grandparent_overlap_factor"}),
    ],
)  # fmt: skip
def test_what_a_version_does_not_know_is_dropped_with_a_reason(
    version: str, dropped: set[str]
) -> None:
    made_for = command(version, "point-80k")
    assert set(notes(made_for, "dropped")) == dropped
    assert all(note.reason for note in notes(made_for, "dropped").values())
    (translated,) = notes(made_for, "translated").values()
    assert (translated.flag, translated.asked) == ("writes_per_second", "81920")
    assert translated.given == "--benchmark_write_rate_limit=9830400"  # of 120 bytes each
    assert translated.given in made_for.argv
    assert "--allow_concurrent_memtable_write=false" in made_for.argv


def test_jemalloc_comes_by_preload() -> None:
    assert command("7.2.2", "point-80k", "jemalloc").env["LD_PRELOAD"] == "libjemalloc.so.2"
    assert "LD_PRELOAD" not in command("7.2.2", "point-80k").env


def test_every_scale_keeps_its_memtables_larger_than_their_buckets() -> None:
    for scale in WORKLOAD.scale:
        command("7.2.2", "point-80k", scale=scale)
    sweep = Sweep(name="x", workloads=[NAME], scale="smoke", set={"WRITE_BUFFER_SIZE": "512KiB"})
    with pytest.raises(ConfigurationError) as caught:
        make_plan(sweep, Known(WORKLOAD), refs("7.2.2"))
    assert caught.value.message == (
        "rocksdb-in-memory cannot run with HASH_BUCKET_COUNT=65536, WRITE_BUFFER_SIZE=524288: the "
        "buckets of a prefix_hash memtable take 8 bytes each out of the write buffer, and one that "
        "they fill is written out with every key"
    )
    assert caught.value.hint == "choose WRITE_BUFFER_SIZE >= 16 * HASH_BUCKET_COUNT"


def test_a_check_holds_of_a_job_s_own_parameters() -> None:
    checked = WORKLOAD.model_copy(update={"check": [Check(that="DURATION > 5", why="too short")]})
    with pytest.raises(ConfigurationError, match="DURATION=4: too short"):
        make_plan(Sweep(name="x", workloads=[NAME], scale="smoke"), Known(checked), refs("7.2.2"))


def test_one_sweep_has_its_databases_in_one_place() -> None:
    sweep = Sweep(name="x", workloads=[NAME, "rocksdb-flash"], scale="smoke")
    with pytest.raises(ConfigurationError) as caught:
        make_plan(sweep, Known(WORKLOAD), refs("7.2.2"))
    assert caught.value.message == (
        "databases of rocksdb-in-memory lie in memory, those of rocksdb-flash do not"
    )


# ---------------------------------------------------------------- what the writer did

LIMITED = DeriveContext(
    key_bytes=20, value_bytes=100, duration_s=10.0, writer_bytes_per_s=1_228_800.0
)
WRITTEN = made(None, {**PROCESS, "write_count": 80_000.0})


def test_the_writer_s_rate_is_what_the_database_counted() -> None:
    found = derived(WRITTEN, made("readwhilewriting", {"elapsed_s": 16.0}), context=LIMITED)
    assert found["write_rate"] == 5000.0
    assert found["write_rate_asked"] == 10240.0
    assert found["write_rate_pct"] == pytest.approx(48.828125)


def test_without_a_printed_time_operations_or_the_asked_time_tell() -> None:
    read = {"ops_per_sec": 500.0, "asked_count": 20.0}
    timed = {"latency_count": 10_000.0, "mean_us": 2.0, "usec_per_op": 2.0}
    assert derived(WRITTEN, made("readwhilewriting", {**read, **timed}), context=LIMITED)[
        "write_rate"
    ] == 4000.0  # fmt: skip
    asked = derived(WRITTEN, made("readwhilewriting", read), context=LIMITED)
    assert asked["write_rate"] == 8000.0  # of one thread's 20 keys nothing follows
    assert "write_rate" not in derived(WRITTEN, made("readwhilewriting", read))


def test_nobody_s_writes_are_no_rate_of_a_writer() -> None:
    read = made("readrandom", {"elapsed_s": 16.0})
    assert "write_rate" not in derived(WRITTEN, read, context=LIMITED)
    two = made("readwhilewriting", {"elapsed_s": 16.0}, run=2)
    both = derived(WRITTEN, made("readwhilewriting", {"elapsed_s": 1.0}), two, context=LIMITED)
    assert "write_rate" not in both
    assert "write_rate" not in derived(made(None, PROCESS), made("readwhilewriting", {}))


def test_a_printed_rate_is_not_derived_again() -> None:
    parts = made("readwhilewriting", {"elapsed_s": 16.0})
    parts += made("readwhilewriting", {"ops_per_sec": 5120.0}, "writer")
    found = derived(WRITTEN, parts, context=LIMITED)
    assert (found["write_rate"], found["write_rate_pct"]) == (5120.0, 50.0)


@pytest.mark.parametrize("version", ["6.11.4", "6.28.2", "7.2.2", "7.8.3", "11.8.1"])
def test_real_outputs_of_every_generation_tell(version: str) -> None:
    case = ROOT / f"{version}-readwhilewriting"
    parsed = parse_output("db_bench", case / "stdout", case / "stderr")
    limit = 2 * 2**20 / 420  # 2 MiB/s of keys and values of 420 bytes
    context = DeriveContext(key_bytes=20, value_bytes=400, writer_bytes_per_s=2.0 * 2**20)
    found = derived([*parsed.measurements], made(None, PROCESS), context=context)
    assert found["write_rate_asked"] == pytest.approx(limit)
    assert 0.94 * limit <= found["write_rate"] <= 1.01 * limit


def dump(writes: str, wal: str) -> float | None:
    lines = [
        f"Cumulative writes: {writes}, 9 commit groups, 1.0 writes per commit group, "
        "ingest: 0.10 GB, 9.00 MB/s",
        f"Cumulative WAL: {wal}, written: 0.10 GB, 9.00 MB/s",
    ]
    found = StatsDump()
    for line in lines:
        found.add(line)
    return found.values().get("write_count")


@pytest.mark.parametrize(
    ("writes", "wal", "expected"),
    [
        ("26K writes, 26K keys", "26K writes, 0 syncs, 26354.00 writes per sync", 26354),
        ("312 writes, 312 keys", "312 writes, 4 syncs, 62.40 writes per sync", 312),
        ("26K writes, 26K keys", "26K writes, 3 syncs, 6588.50 writes per sync", 26000),
        ("26K writes, 26K keys", "11K writes, 0 syncs, 11000.00 writes per sync", 26000),
        ("12M writes, 12M keys", "12M writes, 3 syncs, 3000000.00 writes per sync", None),
        ("0 writes, 50K keys", "0 writes, 0 syncs, 0.00 writes per sync", None),
        ("0 writes, 0 keys", "0 writes, 0 syncs, 0.00 writes per sync", 0),
        ("many writes, 0 keys", "0 writes, 0 syncs, 0.00 writes per sync", None),
    ],
)
def test_writes_are_exact_where_nothing_was_synced(
    writes: str, wal: str, expected: float | None
) -> None:
    assert dump(writes, wal) == expected


# ---------------------------------------------------------------- what was not in memory


def process(**values: float) -> list[Measurement]:
    return [Measurement(None, 1, None, metric, value) for metric, value in values.items()]


def test_a_fault_or_a_byte_from_a_device_is_marked() -> None:
    load, read = WORKLOAD.steps[:2]
    evidence = [
        [taint.evidence for taint in not_in_memory(WORKLOAD, read, process(**values))]
        for values in (
            {"faults_major": 0.0, "read_bytes": 0.0},
            {"faults_major": 1.0, "read_bytes": 0.0},
            {"faults_major": 2.0, "read_bytes": 4096.0},
            {"read_bytes": 1048576.0},
            {},
        )
    ]
    assert evidence == [
        [],
        ["1 page fault waited for a device"],
        ["4.0 KiB were read from a device and 2 page faults waited for a device"],
        ["1.0 MiB were read from a device"],
        [],
    ]
    assert not_in_memory(WORKLOAD, load, process(faults_major=1.0)) == ()
    flash = SHIPPED.workload("rocksdb-flash")
    assert not_in_memory(flash, flash.steps[2], process(faults_major=1.0)) == ()


# ---------------------------------------------------------------- the page


def test_found_stands_before_what_was_asked_for() -> None:
    data = small_data()
    values = {"found_count": 1026765999.0, "asked_count": 1026766000.0}
    missing = ok_step("fillrandom", found_count=7.0)
    cells = (
        cell("7.2", small_trial("t1", {"fill": ok_step("fillrandom", **values)})),
        cell("7.1", small_trial("t2", {"fill": missing})),
        cell("7.0", small_trial("t3", {"fill": ok_step("fillrandom")})),
    )
    column = ColumnDefinition(metric="found_count", of="asked_count")
    table = TableDefinition(step="fill", columns=[column])
    own = replace(data, cells=cells, metrics=shipped_metrics())
    anchors = dict.fromkeys(own.metrics, "anchor")
    (placed,) = build_tables(own, table, "name", Footnotes(), anchors)
    assert [row.cells[2].text for row in placed.view.rows] == [
        "1026765999 of 1026766000", "7", DASH,
    ]  # fmt: skip


def test_a_test_shows_the_command_of_its_own_load() -> None:
    steps = {
        step.name: StepView(StepState.OK, argv=("db_bench", f"--step={step.name}"))
        for step in WORKLOAD.steps
    }
    params = effective(WORKLOAD, "smoke", {})
    page = build_page(
        replace(
            small_data(), workload=WORKLOAD, params=params, metrics=shipped_metrics(), appendix=(),
            cells=(cell("7.2.2", small_trial("t1", steps)),),
        )
    )  # fmt: skip
    assert [test.title for test in page.tests] == [
        "Test 1. Point Lookup, 81,920 writes/s",
        "Test 1. Point Lookup, 10,240 writes/s",
        "Test 2. Prefix Range Query, 81,920 writes/s",
        "Test 2. Prefix Range Query, 10,240 writes/s",
    ]
    assert [[command.text for command in test.commands] for test in page.tests] == [
        [f"db_bench --step={name}", f"db_bench --step={name}-load"]
        for name in ("point-80k", "point-10k", "prefix-80k", "prefix-10k")
    ]


def cell(version: str, trial: TrialView) -> Cell:
    return Cell("rocksdb", version, "None", "here", trials=(trial,))
