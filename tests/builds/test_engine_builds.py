"""Every engine from its real source, with our driver: built and run. Slow: ``make test-builds``.

``BENCHRUNNER_CACHE`` names a cache to keep between runs; without it everything is compiled anew.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from benchrunner.build import Workshop, build
from benchrunner.catalog import Catalog
from benchrunner.sources import list_versions

CATALOG = Catalog(working_directory=Path("/"), search_path=())
SMALL = ["cache_size=16m"]
LSM = ["type=lsm", "cache_size=64m"]
"""WiredTiger wants a cache of at least three of the tree's chunks."""
PFX = [
    "table=plain", "memtable=prefix_hash", "bloom_bits=10", "write_buffer_size=128m",
    "options=allow_mmap_reads=true;max_open_files=-1;num_levels=6;bloom_locality=1",
]  # fmt: skip
BUILDS = [
    ("leveldb", "apt", "1.23", "leveldb", SMALL),
    ("leveldb", "crate", "1.22", "leveldb", SMALL),
    ("leveldb", "npm", "1.20", "leveldb", SMALL),
    ("leveldb", "system", "", "leveldb", SMALL),
    ("basho-leveldb", "npm", "1.9", "leveldb", SMALL),
    ("basho-leveldb", "npm", "2.0.33", "leveldb", SMALL),
    ("hyperleveldb", "npm", "1.0.2", "leveldb", SMALL),
    ("lmdb", "apt", "0.9.24", "lmdb", []),
    ("lmdb", "crate", "0.9.24", "lmdb", []),
    ("lmdb", "crate", "0.9.70", "lmdb", []),
    ("lmdb", "system", "", "lmdb", []),
    ("berkeleydb", "apt", "5.3.28", "berkeleydb", SMALL),
    ("berkeleydb", "system", "", "berkeleydb", SMALL),
    ("wiredtiger-btree", "pypi", "11.3.1", "wiredtiger", ["type=file", *SMALL]),
    ("wiredtiger-lsm", "pypi", "11.3.1", "wiredtiger", LSM),
    ("wiredtiger-lsm", "pypi", "11.2.0", "wiredtiger", LSM),
    ("wiredtiger-lsm", "system", "", "wiredtiger", LSM),
    ("sqlite", "apt", "3.40.1", "sqlite", SMALL),
    ("sqlite", "system", "", "sqlite", SMALL),
    ("rocksdb", "crate", "7.2.2", "rocksdb", SMALL),
    ("rocksdb-pfx", "crate", "7.2.2", "rocksdb", PFX),
    ("rocksdb", "system", "", "rocksdb", SMALL),
]
HAS_DB_BENCH = ("leveldb", "basho-leveldb", "hyperleveldb", "rocksdb", "rocksdb-pfx")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kept = os.environ.get("BENCHRUNNER_CACHE")
    return Path(kept) if kept else tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize(
    ("name", "kind", "version", "word", "settings"),
    BUILDS,
    ids=[f"{name}-{version or kind}-{kind}" for name, kind, version, *_ in BUILDS],
)
def test_an_engine_is_built_and_runs(
    name: str, kind: str, version: str, word: str, settings: list[str], cache: Path, tmp_path: Path
) -> None:
    engine = CATALOG.engine(name)
    refs = [r for r in list_versions(engine, [kind]).refs if not version or r.version == version]
    artifact = build(engine, refs[0], Workshop(cache, None, driver="kvbench"))
    assert artifact.state == "built", artifact.reason
    assert next(iter(artifact.binaries)) == "kvbench"
    assert ("db_bench" in artifact.binaries) == (name in HAS_DB_BENCH and kind != "system")
    given = [f"--engine_opt={setting}" for setting in settings]
    done = subprocess.run(
        [
            artifact.binaries["kvbench"], f"--engine={word}", f"--db={tmp_path / 'db'}",
            "--num=100000", "--benchmarks=fillrandom,readrandom,readwhilewriting", "--verify",
            *given,
        ],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "readwhilewriting.writer" in done.stdout
