"""TokuDB from MariaDB's source package: our driver against it. Slow; see test_rocksdb_builds."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kvbench_support import Driver

from benchrunner.build import Workshop, build
from benchrunner.catalog import Catalog
from benchrunner.parse.db_bench import parse_db_bench
from benchrunner.parse.validity import StepContext, find_problems
from benchrunner.sources import list_versions

if TYPE_CHECKING:
    from collections.abc import Callable

ENGINE = Catalog(working_directory=Path("/"), search_path=()).engine("tokudb")
BENCHMARKS = (
    "fillseq,fillbatch,fillsync,filluniquerandom,overwrite,readseq,readreverse,readrandom,"
    "readmissing,multireadrandom,seekrandom,readwhilewriting,deleterandom,flush,compact,stats"
)


@pytest.fixture(scope="session")
def kvbench(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    kept = os.environ.get("BENCHRUNNER_CACHE")
    cache = Path(kept) if kept else tmp_path_factory.mktemp("cache")
    (ref,) = list_versions(ENGINE, ["apt"]).refs
    artifact = build(ENGINE, ref, Workshop(cache, os.cpu_count() or 1))
    assert artifact.state == "built", artifact.reason
    return Driver(Path(artifact.binaries["kvbench"]))


def test_every_workload_is_read_by_the_parser(kvbench: Driver, tmp_path: Path) -> None:
    ran = kvbench.good(
        "tokudb", tmp_path / "db", BENCHMARKS, "--num=3000", "--batch_size=10", "--threads=2"
    )
    parsed = parse_db_bench([ran.stdout])
    assert parsed.problems == ()
    assert find_problems(parsed.measurements, StepContext(threads=2)) == ()
    assert ran.phase("readseq")["operations"] == 2 * 3000
    assert ran.phase("readreverse")["operations"] == 2 * 3000
    assert ran.phase("readrandom")["found_count"] == 2 * 3000


@pytest.mark.parametrize("sync", ["true", "false"])
@pytest.mark.parametrize("compression", ["none", "snappy", "quicklz", "zlib", "lzma"])
def test_a_database_is_there_when_opened_again(
    kvbench: Driver, tmp_path: Path, sync: str, compression: str
) -> None:
    db, options = tmp_path / "db", [f"--sync={sync}", f"--engine_opt=compression={compression}"]
    kvbench.good("tokudb", db, "fillrandbatch,filluniquerandom", "--num=400", *options)
    again = kvbench.good("tokudb", db, "readrandom", "--use_existing_db", "--num=400", *options)
    assert again.phase("readrandom")["found_count"] == 400
    fresh = kvbench.good("tokudb", db, "readseq", "--num=400", *options)
    assert fresh.phase("readseq")["operations"] == 0


def test_compression_is_off_unless_asked_for(kvbench: Driver, tmp_path: Path) -> None:
    def size(*options: str) -> int:
        db = tmp_path / "-".join(["db", *options]).replace("=", "-")
        words = [word for option in options for word in ("--engine_opt", option)]
        kvbench.good("tokudb", db, "fillseq", "--num=40000", "--compression_ratio=0.1", *words)
        return sum(path.stat().st_blocks * 512 for path in db.glob("data*.tokudb"))

    assert size() > 3 * size("compression=zlib")


def test_writers_that_wait_for_each_other_try_again(kvbench: Driver, tmp_path: Path) -> None:
    arguments = ["--num=200", "--writes=2000", "--threads=8", "--batch_size=50"]
    ran = kvbench.good("tokudb", tmp_path / "db", "fillrandbatch,readseq", *arguments)
    assert ran.phase("fillrandbatch")["operations"] == 8 * 2000


def test_synced_writes_survive_the_end_of_the_process(kvbench: Driver, tmp_path: Path) -> None:
    db, log = tmp_path / "db", tmp_path / "log"
    base = ["--engine=tokudb", f"--db={db}", "--num=200000", "--sync=true", "--verify"]
    with log.open("wb") as output:
        writer = subprocess.Popen(
            [str(kvbench.program), *base, "--benchmarks=fillsync,overwrite"], stdout=output
        )
        while b"fillsync" not in log.read_bytes() and writer.poll() is None:
            time.sleep(0.05)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    arguments = [*base, "--use_existing_db", "--benchmarks=readseq", "--json"]
    ran = kvbench(*arguments)
    assert ran.code == 0, ran
    written = len(set(_keys(kvbench, "fillsync", "--num=200000")))
    assert ran.phases[0]["operations"] >= written
    assert "recovery done" in ran.stderr


def _keys(kvbench: Driver, benchmark: str, *arguments: str) -> list[str]:
    dumped = kvbench(f"--benchmarks={benchmark}", "--dump_keys=1000", *arguments)
    return [line.split()[2] for line in dumped.stdout.splitlines()]


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda _data: b"no database" * 1000, "open error: tokudb: "),
        (  # behind the headers, met by an assertion: the library aborts
            lambda data: data[:8192] + bytes(byte ^ 1 for byte in data[8192:]),
            "database error: tokudb: the library gave up, see above\n",
        ),
    ],
)
def test_a_damaged_database_is_an_error(
    kvbench: Driver, tmp_path: Path, damage: Callable[[bytes], bytes], complaint: str
) -> None:
    db = tmp_path / "db"
    kvbench.good("tokudb", db, "fillseq", "--num=2000")
    (data,) = db.glob("data*.tokudb")
    data.write_bytes(damage(data.read_bytes()))
    ran = kvbench("--engine=tokudb", f"--db={db}", "--benchmarks=readseq", "--use_existing_db")
    assert ran.code == 1
    assert complaint in ran.stderr
    assert parse_db_bench([ran.stdout], [ran.stderr]).problems


def test_a_bad_setting_gets_one_line(kvbench: Driver, tmp_path: Path) -> None:
    base = ["--benchmarks=fillseq", "--engine=tokudb", f"--db={tmp_path / 'db'}"]
    ran = kvbench(*base, "--engine_opt=compression=brotli")
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr == (
        "kvbench: --engine_opt compression=brotli is none of none, snappy, quicklz, zlib, lzma\n"
    )
