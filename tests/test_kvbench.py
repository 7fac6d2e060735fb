"""kvbench, `native/kvbench`: every engine that is installed here, read by the real parser."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from kvbench_support import Driver, Ran, build

from benchrunner.parse.db_bench import parse_db_bench
from benchrunner.parse.validity import StepContext, find_problems

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.native, pytest.mark.slow]

ENGINES = ["null", "lmdb", "leveldb", "sqlite", "rocksdb", "berkeleydb", "wiredtiger"]
STORING = [name for name in ENGINES if name != "null"]
FILLS = ["fillseq", "fillrandom", "filluniquerandom", "fillbatch", "fillseqbatch", "fillrandbatch"]
TIMED = [
    *FILLS, "fillsync", "overwrite", "readseq", "readreverse", "readrandom", "readmissing",
    "multireadrandom", "seekrandom", "readwhilewriting", "deleterandom", "flush", "compact",
]  # fmt: skip
PERCENTILES = ["min_us", "p50_us", "p75_us", "p99_us", "p99_9_us", "p99_99_us", "max_us"]


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Driver]:
    return build(tmp_path_factory.mktemp("kvbench"))


@pytest.fixture(scope="session")
def kvbench(builds: dict[str, Driver]) -> Driver:
    return builds["plain"]


@pytest.fixture
def engine(request: pytest.FixtureRequest, kvbench: Driver) -> str:
    """One of the engines; skipped where its library is not installed."""
    name: str = request.param
    if name not in kvbench.engines:
        pytest.skip(f"this machine has no development files of {name}")
    return name


def keys_of(kvbench: Driver, benchmarks: str, *arguments: str) -> list[list[str]]:
    """Phase, thread, number and key of every line."""
    ran = kvbench(f"--benchmarks={benchmarks}", "--dump_keys=6000", *arguments)
    assert (ran.code, ran.stderr) == (0, ""), ran
    return [line.split() for line in ran.stdout.splitlines()]


# ---------------------------------------------------------------- keys


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_keys_are_the_same_for_every_engine(kvbench: Driver, engine: str, tmp_path: Path) -> None:
    arguments = ["--num=50", "--threads=2", "--seed=7"]
    mine = keys_of(kvbench, "fillrandom,readwhilewriting", f"--engine={engine}", *arguments)
    assert mine == keys_of(kvbench, "fillrandom,readwhilewriting", *arguments)
    if engine == "null":
        return
    asked = [int(line[2]) for line in keys_of(kvbench, "fillrandom,readrandom", *arguments)]
    written, read = set(asked[:100]), asked[100:]
    ran = kvbench.good(engine, tmp_path / "db", "fillrandom,readseq,readrandom", *arguments)
    assert ran.phase("readrandom")["found_count"] == sum(number in written for number in read)
    assert ran.phase("readseq")["operations"] == 2 * len(written)


def test_keys_are_those_of_db_bench(kvbench: Driver) -> None:
    lines = keys_of(kvbench, "fillseq", "--num=258", "--key_size=10")
    assert lines[257] == ["fillseq", "0", "257", "0000000000000101" + "3030"]
    short = keys_of(kvbench, "fillseq", "--num=258", "--key_size=2")
    assert short[257][3] == "0101"
    decimal = keys_of(kvbench, "fillseq", "--num=258", "--key_size=16", "--decimal_keys")
    assert bytes.fromhex(decimal[257][3]) == b"0000000000000257", "LevelDB's db_bench: %016d"


@pytest.mark.parametrize("engine", STORING, indirect=True)
def test_decimal_keys_are_read_again(kvbench: Driver, engine: str, tmp_path: Path) -> None:
    phases = "fillrandom,readseq,readreverse,readrandom,readmissing,seekrandom,multireadrandom"
    ran = kvbench.good(
        engine, tmp_path / "db", phases, "--num=500", "--decimal_keys", "--verify", "--seek_nexts=5"
    )
    binary = kvbench.good(engine, tmp_path / "db2", phases, "--num=500", "--verify")
    for phase in phases.split(","):
        assert ran.phase(phase)["operations"] == binary.phase(phase)["operations"], phase
    assert ran.phase("readrandom")["found_count"] == binary.phase("readrandom")["found_count"]
    assert ran.phase("readmissing")["found_count"] == 0


def test_keys_depend_on_seed_and_phase_and_thread_and_run_only(kvbench: Driver) -> None:
    def numbers(benchmarks: str, *arguments: str) -> list[list[str]]:
        return keys_of(kvbench, benchmarks, "--num=30", *arguments)

    once = numbers("readrandom")
    assert numbers("fillseq,readrandom")[30:] == once
    assert numbers("readrandom", "--seed=2") != once
    assert numbers("readrandom", "--threads=2")[:30] == once
    twice = numbers("readrandom,readrandom")
    assert twice[:30] == once
    assert twice[30:] != once


@pytest.mark.parametrize("num", [1, 2, 3, 255, 256, 257, 5000])
@pytest.mark.parametrize("threads", [1, 3])
def test_unique_random_keys_are_all_keys_once(kvbench: Driver, num: int, threads: int) -> None:
    lines = keys_of(kvbench, "filluniquerandom", f"--num={num}", f"--threads={threads}")
    assert sorted(int(line[2]) for line in lines) == list(range(num))
    if num > 100:
        assert [int(line[2]) for line in lines] != list(range(num))


# ---------------------------------------------------------------- results


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_every_workload_is_read_by_the_parser(kvbench: Driver, engine: str, tmp_path: Path) -> None:
    arguments = ["--num=2000", "--batch_size=1", "--seek_nexts=2", "--threads=2"]
    ran = kvbench.good(engine, tmp_path / "db", ",".join([*TIMED, "stats"]), *arguments)
    parsed = parse_db_bench([ran.stdout])
    assert parsed.problems == ()
    assert find_problems(parsed.measurements, StepContext(threads=2)) == ()
    read = {(one.phase, one.role, one.metric): one.value for one in parsed.measurements}
    for name in [*TIMED, "readwhilewriting.writer"]:
        exact = ran.phase(name)
        phase, _, part = name.partition(".")
        role = part or ("reader" if phase == "readwhilewriting" else None)
        assert read[phase, role, "operations"] == exact["operations"]
        assert read[phase, role, "elapsed_s"] == pytest.approx(exact["elapsed_s"], abs=0.00051)
        if exact["latency"] is not None:
            roles = [one for other, one, metric in read if (other, metric) == (phase, "p99_us")]
            assert roles, f"no histogram of {name} was read"
            p99_us = read[phase, role if role in roles else roles[0], "p99_us"]
            assert p99_us == pytest.approx(exact["latency"]["p99_us"], abs=0.00051)
    assert read["readrandom", None, "asked_count"] == 4000
    assert ran.stdout.rstrip().splitlines()[-1], "stats says something"


def test_a_saved_log_is_read_from_the_command_line(kvbench: Driver, tmp_path: Path) -> None:
    ran = kvbench.good("null", tmp_path, "readrandom", "--num=5000")
    log = tmp_path / "log"
    log.write_text(ran.stdout, encoding="utf-8")
    command = [sys.executable, "-m", "benchrunner", "read", "db_bench", str(log), "--json"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert '"phase": "readrandom"' in text
    assert '"metric": "p99_99_us"' in text
    assert isinstance(json.loads(text), list | dict)


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_histograms_hold_every_operation_and_rise(
    kvbench: Driver, engine: str, tmp_path: Path
) -> None:
    ran = kvbench.good(engine, tmp_path / "db", "filluniquerandom,readrandom", "--num=3000")
    for phase in ran.phases:
        latency = phase["latency"]
        assert latency["latency_count"] == phase["operations"] == 3000
        assert sum(count for _, _, count in latency["buckets_ns"]) == 3000
        assert all(low < high for low, high, _ in latency["buckets_ns"])
        assert all(a[1] <= b[0] for a, b in pairwise(latency["buckets_ns"]))
        assert all(latency[a] <= latency[b] for a, b in pairwise(PERCENTILES))
        assert phase["ops_per_sec"] == pytest.approx(3000 / phase["elapsed_s"])


def test_readers_and_writer_are_reported_apart(kvbench: Driver, tmp_path: Path) -> None:
    arguments = ["--num=1000", "--threads=3", "--reads=20000"]
    ran = kvbench.good("lmdb", tmp_path / "db", "fillseq,readwhilewriting", *arguments)
    readers, writer = ran.phase("readwhilewriting"), ran.phase("readwhilewriting.writer")
    assert (readers["role"], readers["operation"], readers["threads"]) == ("reader", "read", 3)
    assert (writer["role"], writer["operation"], writer["threads"]) == ("writer", "write", 1)
    assert readers["operations"] == readers["found_count"] == 60000
    assert writer["operations"] > 0


def test_the_cost_of_the_driver_is_printed(kvbench: Driver, tmp_path: Path) -> None:
    ran = kvbench.good("lmdb", tmp_path / "db", "fillseq", "--num=10")
    assert "ns per write," in ran.stdout
    assert ran.objects[0]["driver_ns_per_read"] > 0
    ran = kvbench.good("lmdb", tmp_path / "db", "fillseq", "--num=10", "--driver_cost=false")
    assert ran.objects[0]["driver_ns_per_read"] is None
    assert "Driver:" not in ran.stdout


def test_duration_ends_a_phase(kvbench: Driver, tmp_path: Path) -> None:
    arguments = ["--num=100", "--duration=1", "--threads=2"]
    ran = kvbench.good("lmdb", tmp_path / "db", "fillseq,readwhilewriting", *arguments)
    assert ran.phase("fillseq")["operations"] == 200
    assert 1.0 <= ran.phase("readwhilewriting")["elapsed_s"] < 10.0
    assert ran.phase("readwhilewriting")["operations"] > 200


def test_interval_lines_are_read(kvbench: Driver) -> None:
    arguments = ["--num=100", "--duration=2", "--stats_interval_seconds=1"]
    ran = kvbench("--benchmarks=readrandom", *arguments)
    parsed = parse_db_bench([ran.stdout], [ran.stderr])
    assert parsed.problems == ()
    assert parsed.series["ops_per_sec"], ran.stderr


@pytest.mark.parametrize("threads", [1, 2])
def test_the_write_rate_is_kept(kvbench: Driver, tmp_path: Path, threads: int) -> None:
    pair_bytes = 116
    ran = kvbench.good(
        "lmdb", tmp_path / "db", "fillseq,overwrite", "--num=100", "--duration=2",
        f"--benchmark_write_rate_limit={1000 * pair_bytes}", f"--threads={threads}",
    )  # fmt: skip
    overwrite = ran.phase("overwrite")
    assert 1000 <= overwrite["operations"] <= 2400
    # Waiting is no part of an operation.
    assert overwrite["latency"]["mean_us"] < 0.9 * overwrite["usec_per_op"]


# ---------------------------------------------------------------- databases


@pytest.mark.parametrize("engine", STORING, indirect=True)
@pytest.mark.parametrize("sync", ["true", "false"])
def test_a_database_is_there_when_opened_again(
    kvbench: Driver, engine: str, tmp_path: Path, sync: str
) -> None:
    db = tmp_path / "db"
    arguments = ["--num=300", f"--sync={sync}"]
    kvbench.good(engine, db, "fillrandbatch,filluniquerandom", *arguments)
    again = kvbench.good(engine, db, "readrandom,readseq", "--use_existing_db", *arguments)
    assert again.phase("readrandom")["found_count"] == 300
    assert again.phase("readseq")["operations"] == 300
    skipped = kvbench.good(engine, db, "fillseq", "--use_existing_db", *arguments)
    assert "fillseq : skipped (--use_existing_db is true)" in skipped.stdout
    fresh = kvbench.good(engine, db, "readseq", *arguments)
    assert fresh.phase("readseq")["operations"] == 0


@pytest.mark.parametrize("engine", STORING, indirect=True)
def test_deleted_keys_are_gone(kvbench: Driver, engine: str, tmp_path: Path) -> None:
    ran = kvbench.good(engine, tmp_path / "db", "fillseq,deleterandom,readseq", "--num=500")
    deleted = {line[2] for line in keys_of(kvbench, "deleterandom", "--num=500")}
    assert ran.phase("readseq")["operations"] == 500 - len(deleted)


@pytest.mark.parametrize("benchmark_name", ["readrandom", "multireadrandom", "readseq"])
@pytest.mark.parametrize("change", ["v = zeroblob(100)", "v = substr(v, 1, 99)", "other key's"])
def test_verify_finds_a_wrong_value(
    kvbench: Driver, tmp_path: Path, benchmark_name: str, change: str
) -> None:
    if "sqlite" not in kvbench.engines:
        pytest.skip("this machine has no development files of sqlite")
    db = tmp_path / "db"
    kvbench.good("sqlite", db, "fillseq", "--num=20")
    if change == "other key's":
        change = "v = (SELECT o.v FROM kv AS o WHERE o.k > kv.k LIMIT 1)"
    with sqlite3.connect(db / "data.sqlite") as connection:
        connection.execute(f"UPDATE kv SET {change} WHERE k = (SELECT min(k) FROM kv)")  # noqa: S608
    connection.close()
    base = ["--engine=sqlite", f"--db={db}", "--num=20", "--reads=500", "--use_existing_db"]
    ran = kvbench(*base, f"--benchmarks={benchmark_name}", "--verify")
    assert ran.code == 3
    assert f"verify error: {benchmark_name}: key number 0 has a value of " in ran.stderr
    assert f"{benchmark_name} " not in ran.stdout
    problems = parse_db_bench([ran.stdout], [ran.stderr]).problems
    assert problems[0].startswith("db_bench reports 1 error(s): verify error:")
    assert kvbench(*base, f"--benchmarks={benchmark_name}").code == 0


def test_verify_finds_a_flipped_bit_in_a_file(kvbench: Driver, tmp_path: Path) -> None:
    db = tmp_path / "db"
    kvbench.good("lmdb", db, "fillbatch", "--num=50")
    data = bytearray((db / "data.mdb").read_bytes())
    at = data.rindex((17).to_bytes(8, "big") + b"0" * 8) + 16 + 90
    data[at] ^= 1
    (db / "data.mdb").write_bytes(data)
    ran = kvbench(
        "--engine=lmdb", f"--db={db}", "--num=50", "--benchmarks=readseq", "--verify",
        "--use_existing_db",
    )  # fmt: skip
    assert (ran.code, "key number 17 has a value of 100 bytes" in ran.stderr) == (3, True)


def test_more_readers_than_lmdb_has_by_itself(kvbench: Driver, tmp_path: Path) -> None:
    arguments = ["--num=100", "--threads=200"]
    ran = kvbench.good("lmdb", tmp_path / "db", "fillbatch,readrandom", *arguments)
    assert ran.phase("readrandom")["found_count"] == 20000


def test_a_full_map_ends_the_run(kvbench: Driver, tmp_path: Path) -> None:
    ran = kvbench(
        "--engine=lmdb", f"--db={tmp_path / 'db'}", "--benchmarks=fillseq", "--threads=2",
        "--engine_opt", "map_size=64k",
    )  # fmt: skip
    assert ran.code == 1
    assert ran.stderr.startswith("put error: lmdb: MDB_MAP_FULL: ")
    assert ran.stderr.endswith("try a larger --engine_opt map_size\n")


@pytest.mark.parametrize("engine", STORING, indirect=True)
def test_a_damaged_database_is_an_error(kvbench: Driver, engine: str, tmp_path: Path) -> None:
    db = tmp_path / "db"
    kvbench.good(engine, db, "fillseq,compact", "--num=2000")
    for file in db.iterdir():
        if file.name != "KVBENCH":
            file.write_bytes(b"no database" * 1000)
    ran = kvbench(f"--engine={engine}", f"--db={db}", "--benchmarks=readseq", "--use_existing_db")
    assert ran.code == 1
    assert " error: " in ran.stderr


def test_a_folder_of_others_is_left_alone(kvbench: Driver, tmp_path: Path) -> None:
    (tmp_path / "thesis").write_text("words", encoding="utf-8")
    ran = kvbench("--engine=lmdb", f"--db={tmp_path}", "--benchmarks=fillseq")
    assert ran.code == 2
    assert ran.stderr == (
        f"kvbench: {tmp_path} is neither empty nor made by this program; it is left as it is\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["thesis"]


def test_a_database_of_another_engine_or_shape_is_refused(kvbench: Driver, tmp_path: Path) -> None:
    db = tmp_path / "db"
    base = ["--benchmarks=readseq", f"--db={db}", "--use_existing_db"]
    ran = kvbench("--engine=lmdb", *base)
    assert (ran.code, "there is no database in" in ran.stderr) == (2, True)
    kvbench.good("lmdb", db, "fillseq", "--num=10")
    ran = kvbench("--engine=lmdb", "--key_size=20", *base)
    assert ran.code == 2
    assert "is no database of engine lmdb with keys of 20 bytes made by this program" in ran.stderr
    ran = kvbench("--engine=lmdb", "--decimal_keys", *base)
    assert ran.code == 2
    assert "no database of engine lmdb with decimal keys of 16 bytes made by this" in ran.stderr


# ---------------------------------------------------------------- the command line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bogus=1"], "unknown option --bogus; try --help"),
        (["fillseq"], "unexpected argument 'fillseq'; options begin with --"),
        ([], "--benchmarks is missing; try --benchmarks=fillrandom,readrandom"),
        (["--benchmarks=fly"], "unknown benchmark 'fly'; --help lists those there are"),
        (["--benchmarks=stats", "--engine=ink", "--db=x"], "unknown engine 'ink'; this build has "),
        (["--benchmarks=fillseq", "--engine=lmdb"], "--db is missing: the directory of the data"),
        (["--num=-1"], "--num takes a whole number (with k, m or g if you like), not '-1'"),
        (["--num=99999999999999999999"], "--num takes a whole number"),
        (["--num=9999999999g"], "--num takes a whole number"),
        (["--num="], "--num takes a whole number"),
        (["--num"], "--num takes a whole number"),
        (["--benchmarks=fillseq", "--num=0"], "--num must be at least 1"),
        (["--benchmarks=fillseq", "--threads=0"], "--threads must be from 1 to 4096"),
        (
            ["--benchmarks=fillseq", "--key_size=1", "--num=257"],
            "--key_size=1 is too small for --num=257 different keys",
        ),
        (
            ["--benchmarks=fillseq", "--key_size=3", "--num=1001", "--decimal_keys"],
            "--key_size=3 is too small for --num=1001 different keys",
        ),
        (["--sync=maybe"], "--sync takes true, false, 1 or 0, not 'maybe'"),
        (["--compression_ratio=2"], "--compression_ratio takes a number from 0 to 1, not '2'"),
        (
            ["--benchmarks=fillseq", "--verify", "--value_size=15"],
            "--verify needs values of 16 bytes or more, not --value_size=15",
        ),
        (["--engine_opt", "x"], "--engine_opt takes name=value, not 'x'"),
        (
            ["--benchmarks=fillseq", "--engine_opt", "x=1"],
            "engine null has no option 'x'; --help lists those it has",
        ),
    ],
)
def test_bad_arguments_get_one_line(kvbench: Driver, arguments: list[str], message: str) -> None:
    ran = kvbench(*arguments)
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("kvbench: " + message)
    assert ran.stderr.count("\n") == 1


def test_large_values_of_sqlite_fit_in_pages_with_integer_keys(
    kvbench: Driver, tmp_path: Path
) -> None:
    """The source's file of a million rows of 1000 bytes has 1,026,584,576 bytes."""
    if "sqlite" not in kvbench.engines:
        pytest.skip("the library of sqlite is not installed")
    rows = ["--num=2000", "--key_size=8", "--value_size=1000", "--batch_size=100"]
    integer = "--engine_opt=keys=integer"
    everything = (
        "fillseqbatch,stats,readseq,readreverse,readrandom,readmissing,seekrandom,overwrite,"
        "readwhilewriting,deleterandom"
    )
    ran = kvbench.good("sqlite", tmp_path / "db", everything, *rows, integer)
    found = {m.metric: m.value for m in parse_db_bench([ran.stdout]).measurements}
    assert 2000 * 1024 < found["file_size_bytes"] < 2000 * 1040
    reads = {one["phase"]: (one["found_count"], one["asked_count"]) for one in ran.phases}
    assert reads["readrandom"] == (2000, 2000)
    assert reads["readmissing"] == (0, 2000)
    assert reads["seekrandom"] == (2000, 2000)
    refused = kvbench(
        "--engine=sqlite", f"--db={tmp_path / 'new'}", "--benchmarks=fillseq", integer
    )  # fmt: skip
    assert (refused.code, refused.stderr) == (
        2, "kvbench: keys=integer needs --key_size=8, not 16\n",
    )  # fmt: skip
    assert not (tmp_path / "new").exists()


def test_a_bad_engine_setting_gets_one_line(kvbench: Driver, tmp_path: Path) -> None:
    base = ["--benchmarks=fillseq", "--engine=lmdb", f"--db={tmp_path / 'db'}"]
    ran = kvbench(*base, "--engine_opt=writemap=often")
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr == ("kvbench: --engine_opt writemap takes true, false, 1 or 0, not 'often'\n")


def test_help_lists_everything(kvbench: Driver) -> None:
    ran = kvbench("--help")
    assert ran.code == 0
    for word in [*TIMED, *kvbench.engines, "--benchmark_write_rate_limit", "map_size=0"]:
        assert word in ran.stdout


# ---------------------------------------------------------------- sanitized builds


def passes(ran: Ran) -> bool:
    return ran.code == 0 and "ERROR" not in ran.stderr and "WARNING" not in ran.stderr


@pytest.mark.parametrize("engine", ["null", "lmdb", "leveldb", "sqlite"], indirect=True)
def test_no_bad_memory_access(builds: dict[str, Driver], engine: str, tmp_path: Path) -> None:
    ran = builds["asan"].good(
        engine, tmp_path / "db", ",".join([*TIMED, "stats"]), "--num=1000", "--threads=2"
    )
    assert passes(ran), ran.stderr


@pytest.mark.parametrize("engine", ["null", "lmdb"], indirect=True)
def test_no_data_race(builds: dict[str, Driver], engine: str, tmp_path: Path) -> None:
    ran = builds["tsan"].good(
        engine, tmp_path / "db", "fillbatch,readwhilewriting,overwrite", "--num=3000", "--threads=3"
    )
    assert passes(ran), ran.stderr


def test_a_failing_thread_races_with_none(builds: dict[str, Driver], tmp_path: Path) -> None:
    ran = builds["tsan"](
        "--engine=lmdb", f"--db={tmp_path / 'db'}", "--benchmarks=fillseq", "--threads=3",
        "--num=100k", "--engine_opt=map_size=64k",
    )  # fmt: skip
    assert (ran.code, "ThreadSanitizer" in ran.stderr) == (1, False), ran.stderr
