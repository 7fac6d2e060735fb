"""Our driver compiled against builds of a library: here, on a host, and what does not compile."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from build_host import Far
from source_support import tiny_engine, tiny_tree

from benchrunner.build import Workshop, build, cache_key, chosen
from benchrunner.building import natives
from benchrunner.building.order import first_error
from benchrunner.building.recipe import dry_commands
from benchrunner.building.system import library
from benchrunner.catalog import Catalog
from benchrunner.errors import BuildError, ConfigurationError
from benchrunner.launchers.supervisor import ensure_supervisor, supervisor_sources
from benchrunner.model import SourceRef
from benchrunner.sources import find_version
from benchrunner.toolchain import find_toolchain
from benchrunner.transports.local import LocalTransport

if TYPE_CHECKING:
    from benchrunner.definitions import Engine
    from benchrunner.model import Artifact

pytestmark = pytest.mark.native
SHIPPED = Catalog(working_directory=Path("/"), search_path=())
LINKER = "ld: x.o: undefined reference to `open_db'"
FAST = {"engine": "null", "flags": ["-O0"]}
"""The driver without a library, compiled as fast as it goes."""


@pytest.fixture(scope="module")
def supervisor(tmp_path_factory: pytest.TempPathFactory) -> str:
    cache = str(tmp_path_factory.mktemp("supervisor"))
    return ensure_supervisor(LocalTransport(), supervisor_sources(), cache)


def driven(**recipe: Any) -> Engine:
    usual = {"driver": "kvbench", "link": FAST, "env": {"BUILD_MARK": "/dev/null"}}
    return tiny_engine({"kind": "path"}, **{**usual, **recipe})


def ref_of(engine: Engine, tree: Path, cache: Path) -> SourceRef:
    ref = find_version(engine, str(tree), cache)
    assert ref is not None
    return ref


def built(engine: Engine, folder: Path, **changes: Any) -> Artifact:
    tree, cache = folder / "tiny", folder / "cache"
    if not tree.exists():
        tiny_tree(tree)
    return build(engine, ref_of(engine, tree, cache), Workshop(cache, 2, **changes))


# ---------------------------------------------------------------- what is chosen


def test_the_driver_is_built_where_it_is_wanted_or_nothing_else_is_kept() -> None:
    ref = SourceRef("tiny", "1", "path", "/tiny")
    assert chosen(driven(), ref).build.driver == ""
    assert chosen(driven(), ref, "kvbench").build.driver == "kvbench"
    assert chosen(driven(keep=[]), ref).build.driver == "kvbench"
    assert chosen(tiny_engine({"kind": "path"}), ref, "kvbench").build.driver == ""


def test_a_source_has_a_recipe_of_its_own() -> None:
    engine = SHIPPED.engine("leveldb")
    old = chosen(engine, SourceRef("leveldb", "1.20", "npm", "leveldown@6.1.1"))
    new = chosen(engine, SourceRef("leveldb", "1.23", "apt", "leveldb=1.23-4"))
    assert old.build.commands[-1][2] == "make"
    assert old.build.keep == ["out-static/db_bench"]
    assert new.build.commands[0][0] == "cmake"
    assert old.build.needs == new.build.needs


def test_what_is_installed_is_a_program_or_with_the_driver_a_library() -> None:
    ref = SourceRef("rocksdb", "7.8.3", "system", "/usr/bin/db_bench")
    engine = SHIPPED.engine("rocksdb")
    assert chosen(engine, ref).build.driver == ""
    recipe = chosen(engine, ref, "kvbench").build
    assert (recipe.driver, recipe.commands, recipe.keep) == ("kvbench", [], [])
    assert recipe.link.libraries == []


def test_the_driver_is_in_the_key_only_where_it_is_built() -> None:
    engine, ref = SHIPPED.engine("rocksdb"), SourceRef("rocksdb", "7.2.2", "crate", "x@7.2.2")
    toolchain = find_toolchain()
    bare = engine.model_copy(update={"build": engine.build.model_copy(update={"driver": ""})})
    plain = cache_key(chosen(engine, ref), ref, toolchain)
    assert plain == cache_key(bare, ref, toolchain)
    assert plain != cache_key(chosen(engine, ref, "kvbench"), ref, toolchain)


def test_rows_of_one_base_are_one_build() -> None:
    ref, toolchain = SourceRef("x", "11.3.1", "pypi", "wiredtiger==11.3.1"), find_toolchain()
    keys = {
        cache_key(chosen(SHIPPED.engine(name), ref), ref, toolchain)
        for name in ("wiredtiger", "wiredtiger-lsm", "wiredtiger-btree")
    }
    assert len(keys) == 1


def test_a_driver_for_one_engine_leaves_the_others_out() -> None:
    engine = chosen(SHIPPED.engine("lmdb"), SourceRef("lmdb", "0.9.24", "apt", "lmdb=0.9.24-1"))
    names = natives.native_files(engine)
    assert "kvbench/engine_lmdb.cc" in names
    assert "kvbench/engine_null.cc" in names
    assert "kvbench/Makefile" in names
    assert "kvbench/engine_leveldb.cc" not in names


def test_a_command_of_the_driver_names_what_it_is_linked_with() -> None:
    engine = driven(
        link={
            "engine": "lmdb",
            "include": ["include"],
            "libraries": ["x/liblmdb.a", "-lm", "/opt/lib.a", "$(shell echo -lz)"],
            "flags": ["-std=c++20"],
        }
    )
    (argv,) = natives.driver_commands(engine)
    assert argv == [
        "make", "-C", "benchrunner-native/kvbench", "-j{jobs}", "OUT=out", "CXXFLAGS=-O2 -g0",
        "ENGINES=null lmdb",
        "INCLUDES=../../include", "LINK=../../x/liblmdb.a -lm /opt/lib.a $(shell echo -lz)",
        "EXTRA=-std=c++20",
    ]  # fmt: skip


def test_an_engine_that_the_driver_does_not_know_is_named() -> None:
    with pytest.raises(ConfigurationError) as caught:
        natives.native_files(driven(link={"engine": "lmbd"}))
    assert caught.value.message == "kvbench knows no engine 'lmbd'; did you mean 'lmdb'?"
    with pytest.raises(ConfigurationError, match="there is no folder 'porting/none' in native"):
        natives.native_files(driven(native=["porting/none"]))


def test_a_total_is_promised_only_where_make_does_everything() -> None:
    assert dry_commands([["chmod", "+x", "a"], ["make", "all"]]) == [["make", "all", "-n"]]
    assert dry_commands([["cmake", "."], ["make", "driver"]]) == []


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("g++ x\nx.cc:1:10: fatal error: db.h: No such file\nmake: *** [x] Error 1\n",
         ": x.cc:1:10: fatal error: db.h: No such file"),
        (f"{LINKER}\n", f": {LINKER}"),
        ("CMake Error at CMakeLists.txt:3 (find):\n", ": CMake Error at CMakeLists.txt:3 (find):"),
        ("make: *** No rule to make target 'x'.  Stop.\n",
         ": make: *** No rule to make target 'x'.  Stop."),
        ("checking for strerror... yes\nutil/error_handler.cc\n", ""),
    ],
)  # fmt: skip
def test_the_first_error_of_a_log_is_found(log: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(log)
    assert first_error(tmp_path / "log") == expected
    assert first_error(tmp_path / "absent") == ""


# ---------------------------------------------------------------- builds


@pytest.mark.slow
def test_a_build_with_the_driver_holds_both_programs(tmp_path: Path) -> None:
    artifact = built(driven(), tmp_path, driver="kvbench")
    assert artifact.state == "built", artifact.reason
    assert list(artifact.binaries) == ["kvbench", "tiny_bench"]
    assert artifact.known_flags is not None
    assert "use_direct_reads" in artifact.known_flags, "the flags are those of the tree's program"
    asked = [artifact.binaries["kvbench"], "--version"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert [line.split()[0] for line in said.splitlines()] == ["null"]
    nothing_done: list[object] = []
    again = built(
        driven(), tmp_path, driver="kvbench",
        on_progress=lambda *progress: nothing_done.append(progress),
    )  # fmt: skip
    assert (again, nothing_done) == (artifact, [])
    assert list(built(driven(), tmp_path).binaries) == ["tiny_bench"]


@pytest.mark.slow
def test_a_host_is_sent_the_driver_beside_the_source(tmp_path: Path, supervisor: str) -> None:
    far = Far(tmp_path, supervisor)
    engine = far.engine(driver="kvbench", link=FAST)
    artifact = far.build(engine, driver="kvbench")
    assert artifact.state == "built", artifact.reason
    assert list(artifact.binaries) == ["kvbench", "tiny_bench"]
    assert artifact.binaries["kvbench"].startswith(str(far.remote))
    assert len(far.wire.sent) == 2
    failing = far.engine(driver="kvbench", link={**FAST, "flags": ["-include", "no-such.h"]})
    broken = far.build(failing, driver="kvbench")
    assert len(far.wire.sent) == 2, "everything was there already"
    assert broken.state == "failed"
    assert "no-such.h" in broken.reason.partition("\n")[0]


def test_a_driver_that_does_not_compile_names_the_first_error(tmp_path: Path) -> None:
    engine = driven(keep=[], commands=[], link={**FAST, "flags": ["-include", "no-such.h"]})
    artifact = built(engine, tmp_path)
    assert artifact.state == "failed"
    first = artifact.reason.partition("\n")[0]
    assert first.startswith("make of tiny 1.2.3 failed with status 2: ")
    assert "fatal error: no-such.h: No such file or directory" in first
    assert Path(artifact.log).is_file()


def test_a_library_that_is_not_installed_is_a_failed_build(tmp_path: Path) -> None:
    source = {"kind": "system", "development": "libtiny-dev"}
    engine = tiny_engine(source, driver="kvbench", keep=[], link=FAST)
    ref = SourceRef("tiny", "system", "system", "libtiny-dev=1")
    artifact = build(engine, ref, Workshop(tmp_path / "cache", 1))
    assert artifact.state == "failed"
    assert artifact.reason == (
        "tiny system cannot be had without libtiny-dev; try: apt-get install -y libtiny-dev"
    )


def test_an_installed_program_is_no_library(tmp_path: Path, supervisor: str) -> None:
    engine = tiny_engine({"kind": "system", "binary": "tiny_bench"}, driver="kvbench")
    ref = SourceRef("tiny", "system", "system", "/usr/bin/tiny_bench")
    found = library(engine, ref, Far(tmp_path, supervisor).site)
    assert isinstance(found, BuildError)
    assert found.message == "tiny: kvbench cannot be compiled against what is installed"
