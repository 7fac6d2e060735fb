"""Where versions come from: real repositories, tarballs, trees, programs, and one real crate."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from source_support import commit_version, git, header, tiny_engine, tiny_repository, tiny_tree

from benchrunner.binaries import linked_features, listed_flags, printed_version, probe_flags
from benchrunner.catalog import Catalog
from benchrunner.errors import SourceError
from benchrunner.processes import tool_output
from benchrunner.sources import fetch, find_version, identity, list_versions, ordered
from benchrunner.sources.git import mirror_of
from benchrunner.sources.path import content_hash
from benchrunner.sources.tree import stated_version
from benchrunner.versions import parse_selection, select

if TYPE_CHECKING:
    from benchrunner.definitions import Engine
    from benchrunner.model import SourceRef
    from benchrunner.sources.tree import Tree

GIT = {"kind": "git", "ref": ["v{version}", "rel-{version}"], "branch": "{major}.{minor}.fb"}


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Engine, Path, dict[str, str]]:
    path, commits = tiny_repository(tmp_path / "upstream")
    return tiny_engine({**GIT, "url": str(path)}), path, commits


def found(engine: Engine, text: str, cache: Path, *kinds: str) -> SourceRef:
    ref = find_version(engine, text, cache, kinds)
    assert ref is not None
    return ref


def fetched(engine: Engine, text: str, cache: Path) -> Tree:
    return fetch(engine, found(engine, text, cache), cache / f"tree {hash(text)}", cache)


def program(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


# ---------------------------------------------------------------- the table of sources


def test_sources_are_tried_as_written_or_as_asked() -> None:
    engine = tiny_engine({"kind": "crate"}, {"kind": "git"}, {"kind": "system"})
    assert [source.kind for source in ordered(engine)] == ["crate", "git", "system"]
    assert [source.kind for source in ordered(engine, ["system", "crate"])] == ["system", "crate"]
    assert ordered(engine, ["path", "archive"]) == []


def test_a_kind_that_an_engine_has_not_is_refused() -> None:
    with pytest.raises(SourceError) as caught:
        ordered(tiny_engine({"kind": "crate"}, {"kind": "system"}), ["git"])
    assert caught.value.message == "tiny has no source of kind 'git'"
    assert caught.value.hint == "--source crate,system"


def test_a_source_that_cannot_be_listed_is_a_note_beside_the_others(tmp_path: Path) -> None:
    engine = tiny_engine(
        {"kind": "git", "url": str(tmp_path / "nothing")},
        {"kind": "git"},
        {"kind": "system", "binary": "no-such-bench", "debian": "tiny-tools"},
        {"kind": "crate", "versions": {"1.0.0": "tiny-sys@1.0.0"}},
    )
    listing = list_versions(engine)
    assert [ref.ref for ref in listing.refs] == ["tiny-sys@1.0.0"]
    assert listing.notes[0].startswith("git: git ls-remote --tags failed: fatal: ")
    assert "system: no-such-bench is not installed" in listing.notes
    assert set(listing.unreachable) == {"git", "system"}


def test_rocksdb_comes_from_crates_that_are_where_they_are_said_to_be() -> None:
    engine = Catalog(working_directory=Path("/"), search_path=()).engine("rocksdb")
    listing = list_versions(engine, ["crate"])
    assert listing.notes == ()
    crates = {ref.version: ref.ref for ref in listing.refs}
    assert crates["7.2.2"] == "ckb-librocksdb-sys@7.2.2"
    assert crates["6.28.2"] == "librocksdb-sys@0.6.3+6.28.2"
    assert "ckb-librocksdb-sys@6.20.4" not in crates.values()
    for version, crate in crates.items():
        assert crate.endswith((f"@{version}", f"+{version}"))
    refs, skipped = select("rocksdb", parse_selection(["6.10..7.2"]), listing.refs)
    assert [ref.version for ref in refs] == ["6.11.6", "6.17.3", "6.20.3", "6.28.2", "7.2.2"]
    missing = "6.10, 6.12 to 6.16, 6.18 to 6.19, 6.21 to 6.27, 7.0 to 7.1"
    assert skipped == [("rocksdb 6.10..7.2", f"no source has {missing}")]


# ---------------------------------------------------------------- git


def test_tags_are_listed_with_their_commits(
    repository: tuple[Engine, Path, dict[str, str]],
) -> None:
    engine, _, commits = repository
    refs = list_versions(engine).refs
    assert {ref.version: (ref.ref, ref.note) for ref in refs} == {
        "1.0.0": ("v1.0.0", f"commit {commits['1.0.0'][:10]}"),
        "1.1.0": ("rel-1.1.0", f"commit {commits['1.1.0'][:10]}"),
    }


@pytest.mark.parametrize(
    ("text", "commit", "version"),
    [
        ("v1.0.0", "1.0.0", "1.0.0"),
        ("rel-1.1.0", "1.1.0", "1.1.0"),
        ("1.2.1", "1.2.1 first", "1.2.1"),
        ("1.2.2", "1.2.2", "1.2.2"),
        ("1.2.fb", "1.2.2", "1.2.2"),
        ("main", "main", "1.3.0"),
    ],
)
def test_a_name_leads_to_a_commit(
    repository: tuple[Engine, Path, dict[str, str]],
    cache: Path, text: str, commit: str, version: str,
) -> None:  # fmt: skip
    engine, _, commits = repository
    tree = fetched(engine, text, cache)
    assert (tree.commit, tree.version) == (commits[commit], version)
    assert git(tree.path, "rev-parse", "HEAD") == commits[commit]


@pytest.mark.parametrize("length", [7, 12, 40])
def test_a_commit_is_found_by_its_beginning(
    repository: tuple[Engine, Path, dict[str, str]], cache: Path, length: int
) -> None:
    engine, _, commits = repository
    sha = commits["1.2.1 last"]
    for _ in ("cloned", "from the clone"):
        assert found(engine, sha[:length], cache).ref == sha


def test_a_tag_that_moved_is_another_version(
    repository: tuple[Engine, Path, dict[str, str]], cache: Path
) -> None:
    engine, path, commits = repository
    before = list_versions(engine).refs[-1]
    assert fetch(engine, before, cache / "a", cache).commit == commits["1.0.0"]
    git(path, "tag", "-f", "v1.0.0", commits["main"])
    after = next(ref for ref in list_versions(engine).refs if ref.version == "1.0.0")
    assert identity(engine, after) != identity(engine, before)
    assert fetch(engine, after, cache / "b", cache).commit == commits["main"]
    assert fetch(engine, before, cache / "c", cache).commit == commits["1.0.0"]


def test_an_unknown_name_is_not_cloned_for(
    repository: tuple[Engine, Path, dict[str, str]], cache: Path
) -> None:
    engine, _, _ = repository
    for text in ("mian", "9.9.9", "1.2", "system"):
        assert find_version(engine, text, cache) is None
    assert not cache.exists()
    for text in ("1.2.9", "0123456789ab"):
        assert find_version(engine, text, cache) is None


def test_what_was_cloned_can_be_built_without_a_network(
    repository: tuple[Engine, Path, dict[str, str]], cache: Path
) -> None:
    engine, path, commits = repository
    ref = found(engine, commits["main"], cache)
    shutil.rmtree(path)
    assert fetch(engine, ref, cache / "tree", cache).commit == commits["main"]
    assert found(engine, commits["1.0.0"], cache).ref == commits["1.0.0"]
    with pytest.raises(SourceError) as caught:
        find_version(engine, "main", cache)
    expected = "tiny 'main' is not to be had: git ls-remote --tags failed: fatal: "
    assert caught.value.message.startswith(expected)


def test_a_commit_that_is_gone_is_told(
    repository: tuple[Engine, Path, dict[str, str]], cache: Path
) -> None:
    engine, path, commits = repository
    ref = found(engine, "main", cache)
    git(path, "reset", "--quiet", "--hard", commits["1.0.0"])
    git(path, "reflog", "expire", "--expire=now", "--all")
    git(path, "gc", "--quiet", "--prune=now")
    with pytest.raises(SourceError) as caught:
        fetch(engine, ref, cache / "tree", cache)
    assert caught.value.message == f"{path} has no commit {commits['main']!r} (any more)"
    assert caught.value.hint == f"git ls-remote {path}"


def test_a_clone_is_brought_up_to_date(
    repository: tuple[Engine, Path, dict[str, str]], cache: Path
) -> None:
    engine, path, _ = repository
    fetched(engine, "1.2.1", cache)
    git(path, "checkout", "--quiet", "1.2.fb")
    sha = commit_version(path, "1.2.3")
    assert fetched(engine, "1.2.3", cache).commit == sha


def test_a_half_made_clone_of_a_killed_process_is_no_obstacle(
    repository: tuple[Engine, Path, dict[str, str]], cache: Path
) -> None:
    engine, _, commits = repository
    partial = mirror_of(engine.source[0], cache).with_suffix(".partial")
    partial.mkdir(parents=True)
    (partial / "HEAD").write_text("half")
    assert fetched(engine, "1.2.1", cache).commit == commits["1.2.1 first"]
    assert not partial.exists()


def test_one_commit_is_one_build_however_it_was_asked_for(
    repository: tuple[Engine, Path, dict[str, str]], cache: Path
) -> None:
    engine, _, commits = repository
    names = ("v1.0.0", commits["1.0.0"], commits["1.0.0"][:12])
    refs = [found(engine, name, cache) for name in names]
    assert len({tuple(identity(engine, ref)) for ref in refs}) == 1


# ---------------------------------------------------------------- crates


def cargo_can_fetch_one_crate() -> bool:
    if shutil.which("cargo") is None:
        return False
    done = subprocess.run(["cargo", "info", "--help"], capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.skipif(
    not cargo_can_fetch_one_crate(),
    reason="cargo is missing, or older than 1.82: it has no `cargo info`",
)
def test_a_crate_is_fetched_by_cargo(cache: Path) -> None:
    engine = Catalog(working_directory=Path("/"), search_path=()).engine("rocksdb")
    ref = found(engine, "ckb-librocksdb-sys@7.2.2", cache)
    assert ref.version == "7.2.2"
    tree = fetch(engine, ref, cache / "tree", cache)
    assert (tree.path, tree.version) == (cache / "tree", "7.2.2")
    assert (tree.path / "tools" / "db_bench_tool.cc").is_file()
    assert tree.commit is None or tree.commit.startswith("crate:")
    wrong = engine.model_copy(
        update={"source": [engine.source[0].model_copy(update={"path": "x"})]}
    )
    with pytest.raises(SourceError, match=r"crate ckb-librocksdb-sys@7\.2\.2 has no folder 'x'"):
        fetch(wrong, ref, cache / "other", cache)


def crate_engine() -> Engine:
    return tiny_engine(
        {"kind": "crate", "path": "tiny", "versions": {"1.2.3": "tiny-sys@0.9.0+1.2.3"}}
    )


def test_a_crate_can_hold_another_version_than_its_number_says(cache: Path) -> None:
    package = cache / "cargo" / "registry" / "src" / "index-0" / "tiny-sys-1.2.4"
    tiny_tree(package / "tiny", "1.2.3")
    (package / ".cargo-ok").write_text("ok")
    (package / ".cargo_vcs_info.json").write_text('{"git": {"sha1": "abc"}}')
    ref = found(crate_engine(), "tiny-sys@1.2.4", cache)
    assert ref.version == "tiny-sys@1.2.4"
    tree = fetch(crate_engine(), ref, cache / "tree", cache)
    assert (tree.version, tree.commit) == ("1.2.3", "crate:abc")


def test_without_cargo_the_error_names_the_remedy(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    ref = list_versions(crate_engine()).refs[0]
    with pytest.raises(SourceError) as caught:
        fetch(crate_engine(), ref, cache / "tree", cache)
    assert caught.value.message == "cargo is not installed"
    assert caught.value.hint == "apt-get install -y cargo"
    assert list_versions(crate_engine()).notes == (
        "crate: cargo is not installed: nothing can be fetched",
    )


@pytest.mark.parametrize(
    ("says", "message"),
    [
        (
            "error: no such command: `info`",
            "this cargo is too old to fetch one crate (it has no `cargo info`)",
        ),
        (
            "error: could not find `tiny-sys`",
            "cargo info tiny-sys@0.9.0+1.2.3 failed: error: could not find `tiny-sys`",
        ),
    ],
)
def test_what_cargo_says_is_passed_on(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str, message: str
) -> None:
    program(tmp_path / "bin", "cargo", f"echo '{says}' >&2; exit 101")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    with pytest.raises(SourceError) as caught:
        fetch(crate_engine(), list_versions(crate_engine()).refs[0], cache / "tree", cache)
    assert caught.value.message == message


# ---------------------------------------------------------------- tarballs


def tarball(path: Path, tree: Path, inside: str = "tiny-1.2.3") -> Path:
    with tarfile.open(path, "w:gz") as archive:
        archive.add(tree, inside)
    return path


def test_a_tarball_is_known_by_its_content(tmp_path: Path, cache: Path) -> None:
    path = tarball(tmp_path / "tiny-1.2.3.tar.gz", tiny_tree(tmp_path / "t"))
    ref = found(tiny_engine(), str(path), cache)
    assert ref.kind == "archive"
    assert (ref.ref, ref.version) == (str(path), "tiny-1.2.3")
    assert ref.note.startswith("content ")
    tree = fetch(tiny_engine({"kind": "crate"}), ref, cache / "tree", cache)
    assert (tree.path, tree.version) == (cache / "tree" / "tiny-1.2.3", "1.2.3")


def test_tarballs_can_be_listed_by_the_engine(tmp_path: Path, cache: Path) -> None:
    path = tarball(tmp_path / "x.tgz", tiny_tree(tmp_path / "t" / "engine").parent)
    versions = {"1.2.3": str(path), "1.2.4": str(tmp_path / "absent.tgz")}
    engine = tiny_engine({"kind": "archive", "versions": versions, "path": "engine"})
    (ref,) = list_versions(engine).refs
    assert ref.version == "1.2.3"
    assert (
        fetch(engine, ref, cache / "tree", cache).path == cache / "tree" / "tiny-1.2.3" / "engine"
    )
    wrong = tiny_engine({"kind": "archive", "versions": versions, "path": "lost"})
    with pytest.raises(SourceError, match=r"x\.tgz has no folder 'lost'"):
        fetch(wrong, ref, cache / "other", cache)


def test_a_tarball_that_leaves_its_folder_is_refused(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "evil-1.0.tar"
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo("../../escaped")
        member.size = 4
        archive.addfile(member, io.BytesIO(b"evil"))
    with pytest.raises(SourceError, match=r"evil-1\.0\.tar cannot be unpacked: .*outside"):
        fetched(tiny_engine(), str(path), cache)
    assert not list(tmp_path.rglob("escaped"))


def test_a_damaged_tarball_is_told(tmp_path: Path, cache: Path) -> None:
    whole = tarball(tmp_path / "tiny-1.2.3.tar.gz", tiny_tree(tmp_path / "t")).read_bytes()
    for number, content in enumerate((b"no tarball", whole[:-200], whole[:60] + b"?" * 200)):
        path = tmp_path / f"damaged{number}.tar.gz"
        path.write_bytes(content)
        ref = found(tiny_engine(), str(path), cache)
        with pytest.raises(SourceError, match=f"damaged{number}.tar.gz cannot be unpacked"):
            fetch(tiny_engine(), ref, cache / f"tree{number}", cache)


def test_a_tarball_that_changed_or_went_is_told(tmp_path: Path, cache: Path) -> None:
    path = tarball(tmp_path / "tiny-1.2.3.tar.gz", tiny_tree(tmp_path / "t"))
    ref = found(tiny_engine(), str(path), cache)
    path.write_bytes(b"other")
    with pytest.raises(SourceError, match=r"tiny-1\.2\.3\.tar\.gz has changed since"):
        fetch(tiny_engine(), ref, cache / "tree", cache)
    path.unlink()
    with pytest.raises(SourceError, match="is not there any more"):
        fetch(tiny_engine(), ref, cache / "tree", cache)


# ---------------------------------------------------------------- trees


def test_a_tree_is_known_by_its_content(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tiny_tree(tmp_path / "tiny")
    content = content_hash(tree)
    monkeypatch.chdir(tmp_path)
    engine = tiny_engine({"kind": "crate"})
    for text in (str(tree), "./tiny"):
        ref = found(engine, text, cache)
        assert (ref.version, ref.ref) == ("1.2.3", str(tree))
        assert ref.note == f"content {content[:12]}"
    copy = fetch(engine, ref, cache / "tree", cache)
    assert (copy.version, copy.commit) == ("1.2.3", None)
    assert content_hash(copy.path) == content


def test_the_engine_can_name_a_tree(tmp_path: Path, cache: Path) -> None:
    tree = tiny_tree(tmp_path / "tiny")
    engine = tiny_engine({"kind": "path", "path": str(tree)}, {"kind": "path"})
    assert list_versions(engine).refs == (found(engine, str(tree), cache),)
    lost = tiny_engine({"kind": "path", "path": str(tmp_path / "lost")})
    assert list_versions(lost).notes == (f"path: there is no folder {tmp_path / 'lost'}",)


def test_what_changes_a_tree_changes_its_name(tmp_path: Path) -> None:
    tree = tiny_tree(tmp_path / "tiny")
    seen = {content_hash(tree)}

    def assert_changed() -> None:
        assert content_hash(tree) not in seen
        seen.add(content_hash(tree))

    (tree / "main.c").write_text("int main(void) { return 0; }\n")
    assert_changed()
    (tree / "main.c").rename(tree / "other.c")
    assert_changed()
    (tree / "link").symlink_to("help.c")
    assert_changed()
    (tree / "folder").symlink_to("include")
    assert_changed()


def test_objects_of_earlier_builds_are_left_behind(tmp_path: Path, cache: Path) -> None:
    tree = tiny_tree(tmp_path / "tiny")
    before = content_hash(tree)
    for name in ("main.o", "libtiny.a", "main.c.d", ".git"):
        (tree / name).write_text("built")
    assert content_hash(tree) == before
    copy = fetched(tiny_engine(), str(tree), cache).path
    assert sorted(path.name for path in copy.iterdir()) == [
        "Makefile", "help.c", "include", "main.c",
    ]  # fmt: skip


def test_a_tree_that_changed_or_went_is_told(tmp_path: Path, cache: Path) -> None:
    tree = tiny_tree(tmp_path / "tiny")
    ref = found(tiny_engine(), str(tree), cache)
    (tree / "include" / "version.h").write_text(header("1.2.4"))
    with pytest.raises(SourceError) as caught:
        fetch(tiny_engine(), ref, cache / "tree", cache)
    assert caught.value.message == f"the source tree {tree} has changed since it was selected"
    shutil.rmtree(tree)
    with pytest.raises(SourceError, match="is not there any more"):
        fetch(tiny_engine(), ref, cache / "other", cache)
    with pytest.raises(SourceError) as caught:
        find_version(tiny_engine(), str(tree), cache)
    assert caught.value.message == f"{tree} is neither a folder nor a tarball"


def test_a_repository_tells_its_commit_and_whether_files_differ(
    tmp_path: Path, cache: Path
) -> None:
    path, commits = tiny_repository(tmp_path / "upstream")
    engine = tiny_engine({"kind": "path"})
    ref = found(engine, str(path), cache)
    assert fetch(engine, ref, cache / "a", cache).commit == commits["main"]
    (path / "main.c").write_text("")
    ref = found(engine, str(path), cache)
    assert fetch(engine, ref, cache / "b", cache).commit == f"{commits['main']}-dirty"


# ---------------------------------------------------------------- programs


def test_an_installed_program_is_a_version(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = program(tmp_path / "bin", "tiny_bench", "echo tiny_bench version 1.9.2")
    monkeypatch.setenv("PATH", f"{bench.parent}:{os.environ['PATH']}")
    engine = tiny_engine({**GIT, "url": "/nothing"}, {"kind": "system", "binary": "tiny_bench"})
    ref = found(engine, "system", cache)
    assert (ref.version, ref.ref) == ("1.9.2", str(bench))
    assert fetch(engine, ref, cache / "tree", cache).path == bench.parent
    assert not cache.exists(), "nothing is cloned to find out that no branch is called system"


def test_a_program_that_is_not_installed_is_told(cache: Path) -> None:
    engine = tiny_engine({"kind": "system", "binary": "no-such-bench", "debian": "tiny-tools"})
    with pytest.raises(SourceError) as caught:
        find_version(engine, "system", cache)
    assert caught.value.message == "tiny 'system' is not to be had: no-such-bench is not installed"
    assert caught.value.hint == "apt-get install -y tiny-tools"


@pytest.mark.parametrize(
    ("script", "version"),
    [("echo v3.33", "3.33"), ("echo 7.8.3 >&2; exit 1", "7.8.3"), ("echo hello", None)],
)
def test_the_version_is_the_first_number_printed(
    tmp_path: Path, script: str, version: str | None
) -> None:
    assert printed_version(str(program(tmp_path, "x", script)), []) == version


def test_a_program_that_tells_nothing(tmp_path: Path) -> None:
    assert printed_version(str(tmp_path / "absent"), ["-v"]) is None
    assert probe_flags(str(tmp_path / "absent")) is None
    assert probe_flags(str(program(tmp_path, "x", "echo 'usage: x [-num]'"))) is None
    assert linked_features(str(tmp_path / "absent")) == frozenset()


def test_flags_are_those_that_gflags_help_lists() -> None:
    text = "x: a tool\n  Flags from ./tools/x.cc:\n    -num (Number (of) keys) type: int64\n"
    text += "    -sync (Sync) type: bool\n      -not-a-flag\n"
    assert listed_flags(text) == frozenset({"num", "sync"})


def test_a_package_client_that_hangs_ends_with_its_children(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    client = program(tmp_path, "client", f"sleep 60 & echo $! > {pid}; wait")
    with pytest.raises(SourceError) as caught:
        tool_output([str(client), "list"], 0.5)
    assert caught.value.message == f"{client} list gave no answer within 0.5 s"
    state = Path(f"/proc/{pid.read_text().strip()}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z"


def test_a_header_without_all_numbers_states_nothing() -> None:
    assert stated_version(header("1.2.3")) == "1.2.3"
    assert stated_version("#define TINY_MAJOR 1\n#define TINY_MINOR 2\n") is None
