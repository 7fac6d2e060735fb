"""Builds of a tiny real engine: what is recorded, cached, refused, and survives interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from source_support import git, tiny_engine, tiny_repository, tiny_tree

from benchrunner.build import Workshop, build, cache_key, recipe_env, refused, this_machine
from benchrunner.building.keep import look_at
from benchrunner.catalog import Catalog
from benchrunner.errors import BuildError
from benchrunner.model import Artifact, SourceRef
from benchrunner.sources import find_version
from benchrunner.toolchain import Toolchain, find_toolchain, missing_packages

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchrunner.definitions import Engine

pytestmark = pytest.mark.native
HERE = Path(__file__).parent
DEADLINE_S = 20.0


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "CCACHE_BASEDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "ccache"))


class Site:
    """A tree of the tiny engine, a cache, and a mark of every file that was really compiled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tree = tiny_tree(folder / "tiny")
        self.cache = folder / "cache"
        self.mark = folder / "compiled"
        self.notes: list[str] = []
        self.progress: list[tuple[int, int | None]] = []

    def engine(self, **recipe: Any) -> Engine:
        env = {"BUILD_MARK": str(self.mark), "DEBUG_LEVEL": "0", **recipe.pop("env", {})}
        return tiny_engine({"kind": "path"}, env=env, **recipe)

    def ref(self) -> SourceRef:
        found = find_version(self.engine(), str(self.tree), self.cache)
        assert found is not None
        return found

    def workshop(self, **changes: Any) -> Workshop:
        usual = Workshop(
            self.cache,
            2,
            lambda done, total: self.progress.append((done, total)),
            self.notes.append,
        )
        return replace(usual, **changes)

    def build(self, engine: Engine | None = None, **changes: Any) -> Artifact:
        return build(engine or self.engine(), self.ref(), self.workshop(**changes))

    @property
    def compiled(self) -> int:
        return len(self.mark.read_text().split()) if self.mark.exists() else 0


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def until(condition: Callable[[], object]) -> None:
    limit = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < limit, "it did not happen"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


# ---------------------------------------------------------------- what a build leaves


def test_a_build_records_what_shaped_it(site: Site) -> None:
    artifact = site.build()
    assert (artifact.state, artifact.reason) == ("built", "")
    assert (artifact.engine, artifact.version, artifact.source) == ("tiny", "1.2.3", "path")
    assert set(artifact.binaries) == set(artifact.sha256) == {"tiny_bench"}
    done = subprocess.run(
        artifact.binaries["tiny_bench"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "tiny_bench version 1.2.3\n"
    assert artifact.features == {"zstd", "lz4"}
    assert artifact.known_flags is not None
    assert {"num", "use_direct_reads"} <= artifact.known_flags
    assert artifact.compiler == find_toolchain().version
    assert artifact.build_flags["PLATFORM_CXXFLAGS"] == "-DZSTD -DLZ4"
    assert artifact.build_flags["DEBUG_LEVEL"] == "0"
    assert "OTHER" not in artifact.build_flags
    assert "  CC       main.o" in Path(artifact.log).read_text()
    assert sorted(path.name for path in Path(artifact.directory).iterdir()) == [
        "artifact.json", "build.log", "make_config.mk", "tiny_bench",
    ]  # fmt: skip
    assert list((site.cache / "builds").iterdir()) == []


def test_progress_counts_the_files_that_make_says_it_will_build(site: Site) -> None:
    site.build()
    assert site.progress == [(1, 3), (2, 3), (3, 3)]


def test_progress_without_a_total_or_a_rule(site: Site) -> None:
    script = ["sh", "-c", "make tiny_bench"]
    site.build(site.engine(commands=[script]))
    assert site.progress == [(1, None), (2, None), (3, None)]
    site.build(site.engine(count=""))
    assert len(site.progress) == 3


def test_a_build_can_be_nice(site: Site) -> None:
    say = ["sh", "-c", "nice > niceness && make tiny_bench"]
    artifact = site.build(site.engine(commands=[say], keep=["tiny_bench", "niceness"]), nice=7)
    assert int((Path(artifact.directory) / "niceness").read_text()) >= 7


# ---------------------------------------------------------------- the cache


def test_the_second_build_builds_nothing(site: Site) -> None:
    first = site.build()
    assert site.compiled == 2
    assert site.build() == first
    assert site.compiled == 2
    assert site.notes == []


def test_the_cache_can_move(site: Site) -> None:
    first = site.build()
    site.cache.rename(site.folder / "moved")
    site.cache = site.folder / "moved"
    again = site.build()
    assert site.compiled == 2
    assert again.binaries["tiny_bench"].startswith(str(site.cache))
    assert again.sha256 == first.sha256


@pytest.mark.parametrize("damage", ["changed", "lost"])
def test_a_binary_that_is_not_what_was_built_is_built_again(site: Site, damage: str) -> None:
    first = site.build()
    binary = Path(first.binaries["tiny_bench"])
    if damage == "lost":
        binary.unlink()
    else:
        binary.write_bytes(b"something else")
    assert site.build().sha256 == first.sha256
    assert site.compiled == 4
    assert site.notes == [f"tiny 1.2.3: {binary} is not what was built; building it again"]


def test_another_content_recipe_or_flag_is_another_build(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key(engine: Engine | None = None) -> str:
        return cache_key(engine or site.engine(), site.ref(), find_toolchain())

    keys = [key(), key(site.engine(env={"EXTRA_CFLAGS": "-O1"})), key(site.engine(keep=["x"]))]
    monkeypatch.setenv("CXXFLAGS", "-O3")
    keys.append(key())
    monkeypatch.setenv("CXXFLAGS", "")
    monkeypatch.setenv("MAKEFLAGS", "-j9")
    assert key() == keys[0], "what does not reach the build does not name it"
    assert key(site.engine(needs={"debian": ["make"]})) == keys[0]
    (site.tree / "main.c").write_text("int main(void) { return 0; }\n")
    keys.append(key())
    assert len(set(keys)) == 5


def test_one_commit_is_built_once_whatever_it_is_called(site: Site) -> None:
    repository, commits = tiny_repository(site.folder / "upstream")
    engine = tiny_engine(
        {"kind": "git", "url": str(repository)}, env={"BUILD_MARK": str(site.mark)}
    )
    built = []
    for name in ("v1.0.0", commits["1.0.0"]):
        ref = find_version(engine, name, site.cache)
        assert ref is not None
        built.append(build(engine, ref, site.workshop()))
    assert {artifact.commit for artifact in built} == {commits["1.0.0"]}
    assert {artifact.state for artifact in built} == {"built"}
    assert site.compiled == 2
    assert git(repository, "status", "--porcelain") == ""


# ---------------------------------------------------------------- what does not work


def test_a_failed_build_is_a_result_with_the_end_of_its_log(site: Site) -> None:
    whole = (site.tree / "main.c").read_text()
    (site.tree / "main.c").write_text("int main(void) { return missing; }\n")
    artifact = site.build()
    first, *tail = artifact.reason.splitlines()
    assert artifact.state == "failed"
    assert first.startswith("make of tiny 1.2.3 failed with status 2: main.c:1:")
    assert "error: 'missing' undeclared" in first
    assert 1 <= len(tail) <= 15
    assert "'missing' undeclared" in artifact.reason
    assert "'missing' undeclared" in Path(artifact.log).read_text()
    assert (site.cache / "artifacts-failed") in Path(artifact.log).parents
    stored = json.loads((Path(artifact.directory) / "artifact.json").read_text())
    assert (stored["id"], stored["state"]) == (artifact.id, "failed")
    assert list((site.cache / "builds").iterdir()) == []
    (site.tree / "main.c").write_text(whole)
    assert site.build().state == "built"


def test_a_failure_is_tried_again(site: Site) -> None:
    needed = site.folder / "needed"
    recipe = [["sh", "-c", f"test -e {needed} && make tiny_bench"]]
    before = site.build(site.engine(commands=recipe))
    needed.touch()
    after = site.build(site.engine(commands=recipe))
    assert (before.state, after.state) == ("failed", "built")
    assert before.id != after.id


@pytest.mark.parametrize(
    ("env", "reason"),
    [
        ({"DEBUG_LEVEL": "1"}, "a debug build"),
        ({"EXTRA_CFLAGS": "-DDEBUG"}, "assertions are enabled"),
    ],
)
def test_a_debug_build_is_refused(site: Site, env: dict[str, str], reason: str) -> None:
    artifact = site.build(site.engine(env=env))
    assert artifact.state == "refused"
    assert artifact.reason == f"the build of tiny 1.2.3 is refused: {reason}"
    assert Path(artifact.log).is_file()
    assert not list((site.cache / "artifacts").glob("*/artifact.json"))


def test_a_build_that_makes_nothing_is_a_failure(site: Site) -> None:
    artifact = site.build(site.engine(commands=[["true"]], config_file=""))
    assert (artifact.state, artifact.reason) == (
        "failed",
        "the build of tiny 1.2.3 made no tiny_bench",
    )


def test_what_is_not_installed_is_named_with_the_command(site: Site) -> None:
    artifact = site.build(site.engine(needs={"debian": ["make", "libtiny-of-no-one-dev"]}))
    assert artifact.state == "failed"
    assert artifact.reason == (
        "tiny 1.2.3 cannot be built without libtiny-of-no-one-dev; "
        "try: apt-get install -y libtiny-of-no-one-dev"
    )
    assert site.compiled == 0


def test_a_program_of_the_recipe_that_is_not_there(site: Site) -> None:
    artifact = site.build(site.engine(commands=[["no-such-make"]]))
    assert artifact.state == "failed"
    assert "no-such-make" in artifact.reason


def test_a_source_that_cannot_be_had_is_a_failed_build(site: Site) -> None:
    gone = SourceRef("tiny", "1.2.3", "path", str(site.folder / "gone"))
    artifact = build(site.engine(), gone, site.workshop())
    expected = (
        f"the source tree {site.folder / 'gone'} is not there any more; try: name another path"
    )
    assert (artifact.state, artifact.reason) == ("failed", expected)


def test_a_cache_that_cannot_be_written_is_a_failed_build(site: Site) -> None:
    site.cache.write_text("a file, not a folder")
    artifact = site.build()
    assert artifact.state == "failed"
    assert str(site.cache) in artifact.reason


def test_a_build_that_takes_too_long_is_ended_with_its_children(site: Site) -> None:
    pid = site.folder / "pid"
    endless = ["sh", "-c", f"sleep 600 & echo $! > {pid}; echo begun; wait"]
    artifact = site.build(site.engine(commands=[endless]), limit_s=0.5)
    assert artifact.state == "failed"
    assert artifact.reason == "sh did not end within 0.5 s\nbegun"
    until(lambda: is_gone(int(pid.read_text())))


# ---------------------------------------------------------------- several processes, killed ones

BUILDER = """\
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_build import Site
site = Site.__new__(Site)
site.__dict__.update(folder=Path(sys.argv[2]), tree=Path(sys.argv[2]) / "tiny",
    cache=Path(sys.argv[2]) / "cache", mark=Path(sys.argv[2]) / "compiled", notes=[], progress=[])
artifact = site.build(site.engine(commands=[["sh", "-c", sys.argv[3]]]))
print(artifact.id, artifact.state, *site.notes)
"""


def builder(site: Site, script: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", BUILDER, str(HERE), str(site.folder), script]
    return subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
    )  # fmt: skip


def waiting(site: Site) -> str:
    """A recipe that says that it has begun, and goes on when it is let."""
    begun, go = site.folder / "begun", site.folder / "go"
    return f"echo $$ > {begun}.new; mv {begun}.new {begun}; " + (
        f"while [ ! -e {go} ]; do sleep 0.05; done; make tiny_bench"
    )


def test_two_processes_build_once_and_the_other_waits(site: Site) -> None:
    first = builder(site, waiting(site))
    until((site.folder / "begun").exists)
    second = builder(site, waiting(site))
    until(lambda: _waits_for_lock(second.pid))
    (site.folder / "go").touch()
    outputs = [process.communicate(timeout=60)[0].strip() for process in (first, second)]
    assert outputs[1] == (f"{outputs[0]} tiny 1.2.3: another process builds it; waiting for that")
    assert outputs[0].endswith(" built")
    assert site.compiled == 2


def _waits_for_lock(pid: int) -> bool:
    waiters = (line for line in Path("/proc/locks").read_text().splitlines() if "->" in line)
    return any(line.split()[5] == str(pid) for line in waiters)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_builder_that_is_ended_half_way_leaves_nothing_that_matters(
    site: Site, number: signal.Signals
) -> None:
    process = builder(site, waiting(site))
    begun = site.folder / "begun"
    until(begun.exists)
    make = int(begun.read_text())
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode != 0
    until(lambda: is_gone(make))
    assert not list((site.cache / "artifacts").glob("*/artifact.json"))
    (site.folder / "go").touch()
    artifact = site.build(site.engine(commands=[["sh", "-c", waiting(site)]]))
    assert artifact.state == "built"
    assert list((site.cache / "builds").iterdir()) == []
    assert not list((site.cache / "artifacts").glob("*.part"))


# ---------------------------------------------------------------- installed programs


def test_an_installed_program_is_an_artifact_as_it_is(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = site.build(site.engine(env={"EXTRA_CFLAGS": "-DNDEBUG"}))
    monkeypatch.setenv("PATH", f"{built.directory}:{os.environ['PATH']}")
    engine = tiny_engine({"kind": "system", "binary": "tiny_bench", "debian": "tiny-tools"})
    ref = find_version(engine, "system", site.cache)
    assert ref is not None
    artifact = build(engine, ref, site.workshop())
    assert (artifact.state, artifact.version, artifact.source) == ("built", "1.2.3", "system")
    assert artifact.sha256 == built.sha256
    assert artifact.binaries == built.binaries
    assert artifact.known_flags == built.known_flags
    assert artifact.features == frozenset()


def test_an_installed_program_that_went_is_a_failed_build(site: Site) -> None:
    engine = tiny_engine({"kind": "system", "binary": "tiny_bench", "debian": "tiny-tools"})
    artifact = build(
        engine, SourceRef("tiny", "1.2.3", "system", "/no/tiny_bench"), site.workshop()
    )
    assert artifact.state == "failed"
    assert artifact.reason == "/no/tiny_bench is not installed; try: apt-get install -y tiny-tools"


def test_assertions_are_seen_in_the_file(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.touch(0o755)
    for content, expected in (
        (b"", False), (b"\0release", False), (b"\0WARNING: Assertions are enabled; slow", True),
    ):  # fmt: skip
        program.write_bytes(content)
        assert look_at(this_machine(tmp_path), [str(program)]) == [("program", expected)]


# ---------------------------------------------------------------- compression, toolchain

WITH_ZSTD = Artifact(
    "id", "rocksdb", "7.2.2", "crate", "c", "built", directory="/cache/id",
    features=frozenset({"zstd", "gflags"}),
)  # fmt: skip


@pytest.mark.parametrize("compression", ["zstd", "none", ""])
def test_a_build_with_the_compression_that_is_asked_for_passes(compression: str) -> None:
    assert refused(WITH_ZSTD, compression) is WITH_ZSTD


@pytest.mark.parametrize(
    ("compression", "package"),
    [("lz4", "liblz4-dev"), ("lz4hc", "liblz4-dev"), ("bzip2", "libbz2-dev"),
     ("zlib", "zlib1g-dev"), ("snappy", "libsnappy-dev")],
)  # fmt: skip
def test_a_build_without_the_compression_is_refused(compression: str, package: str) -> None:
    artifact = refused(WITH_ZSTD, compression)
    assert artifact.state == "refused"
    assert artifact.reason == (
        f"it was built without {compression} (it has gflags, zstd); "
        f"install {package} and remove /cache/id"
    )


def test_what_is_installed_or_failed_is_not_refused() -> None:
    for other in (replace(WITH_ZSTD, source="system"), replace(WITH_ZSTD, state="failed")):
        assert refused(other, "lz4") is other


def test_a_compiler_that_is_not_there_is_a_failed_build(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-g++")
    with pytest.raises(BuildError, match="the compiler no-such-g\\+\\+ is not installed"):
        find_toolchain()
    artifact = site.build()
    expected = "the compiler no-such-g++ is not installed; try: apt-get install -y g++"
    assert (artifact.state, artifact.reason) == ("failed", expected)


def test_packages_that_are_missing() -> None:
    assert missing_packages([]) == []
    assert missing_packages(["no-such-package-at-all", "dpkg"]) == ["no-such-package-at-all"]


@pytest.mark.parametrize(
    ("version", "major", "flags"),
    [
        ("7.2.2", 12, "-g0"),
        ("7.2.2", 13, "-g0 -include cstdint"),
        ("10.2.1", 14, "-g0 -include cstdint"),
        ("10.4.2", 14, "-g0"),
        ("main", 14, "-g0"),
    ],
)
def test_old_trees_get_what_new_compilers_want(version: str, major: int, flags: str) -> None:
    rocksdb = Catalog(working_directory=Path("/"), search_path=()).engine("rocksdb")
    toolchain = Toolchain("gcc", "g++", "g++ 1", "x86_64", major, "cpu", ccache=False)
    assert recipe_env(rocksdb, version, toolchain)["EXTRA_CXXFLAGS"] == flags
    assert "EXTRA_CXXFLAGS" not in recipe_env(tiny_engine(), version, toolchain)
