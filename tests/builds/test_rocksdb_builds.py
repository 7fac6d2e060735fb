"""RocksDB from its crates, built and run for real. Slow: only ``make test-builds`` comes here.

``BENCHRUNNER_CACHE`` names a cache to keep between runs; without it everything is compiled anew.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchrunner.build import Workshop, build, refused
from benchrunner.catalog import Catalog
from benchrunner.sources import list_versions

if TYPE_CHECKING:
    from benchrunner.model import Artifact

VERSIONS = ("6.11.4", "7.2.2")
ENGINE = Catalog(working_directory=Path("/"), search_path=()).engine("rocksdb")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kept = os.environ.get("BENCHRUNNER_CACHE")
    return Path(kept) if kept else tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session", params=VERSIONS)
def artifact(request: pytest.FixtureRequest, cache: Path) -> Artifact:
    refs = {ref.version: ref for ref in list_versions(ENGINE, ["crate"]).refs}
    return build(ENGINE, refs[request.param], Workshop(cache, os.cpu_count() or 1))


def test_it_is_a_release_build_with_what_the_page_needs(artifact: Artifact) -> None:
    assert artifact.state == "built", artifact.reason
    assert artifact.version in artifact.ref
    assert refused(artifact, "zstd").state == "built"
    assert {"zstd", "lz4", "snappy", "gflags"} <= artifact.features
    assert "assertions" not in artifact.features
    assert "-march=native" in artifact.build_flags["PLATFORM_CXXFLAGS"]


def test_its_flags_are_those_of_its_version(artifact: Artifact) -> None:
    assert artifact.known_flags is not None
    assert {"benchmarks", "num", "use_direct_reads", "seed"} <= artifact.known_flags
    assert ("hard_rate_limit" in artifact.known_flags) is (artifact.version == "6.11.4")


def test_a_second_call_builds_nothing(artifact: Artifact, cache: Path) -> None:
    refs = {ref.version: ref for ref in list_versions(ENGINE, ["crate"]).refs}
    nothing_done: list[object] = []
    workshop = Workshop(cache, 1, lambda *progress: nothing_done.append(progress))
    assert build(ENGINE, refs[artifact.version], workshop) == artifact
    assert nothing_done == []


def test_db_bench_runs(artifact: Artifact, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            artifact.binaries["db_bench"], f"--db={tmp_path}", "--benchmarks=fillrandom,readrandom",
            "--num=10000", "--compression_type=zstd", "--seed=1",
        ],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "readrandom" in done.stdout
    assert "Assertions are enabled" not in done.stdout + done.stderr
