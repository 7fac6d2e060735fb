"""Packed sources: the same tree gives the same bytes, and they unpack as they were."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from source_support import tiny_engine, tiny_repository, tiny_tree

from benchrunner.building.packing import pack, packed_source
from benchrunner.model import SourceRef
from benchrunner.sources import find_version

NAMES = st.text("abcXYZ09._ -", min_size=1, max_size=8).filter(lambda n: n not in (".", ".."))
TREES = st.dictionaries(st.tuples(NAMES, NAMES), st.tuples(st.binary(max_size=600), st.booleans()))


def written(folder: Path, files: dict[tuple[str, str], tuple[bytes, bool]]) -> Path:
    folder.mkdir()
    for (where, name), (content, executable) in files.items():
        (folder / where).mkdir(exist_ok=True)
        path = folder / where / name
        path.write_bytes(content)
        path.chmod(0o750 if executable else 0o600)
    return folder


def packed(tree: Path) -> tuple[str, bytes]:
    file = io.BytesIO()
    return pack(tree, file), file.getvalue()


@given(TREES)
def test_two_copies_of_a_tree_are_packed_alike_and_unpack_as_they_were(
    files: dict[tuple[str, str], tuple[bytes, bool]],
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        one = written(folder / "one", files)
        other = written(folder / "other", dict(reversed(files.items())))
        for path in other.rglob("*"):
            os.utime(path, (1, 1))
        content, stream = packed(one)
        assert packed(other) == (content, stream)
        out = folder / "out"
        out.mkdir()
        subprocess.run(["tar", "-xz", "-C", str(out)], input=stream, check=True)
        for (where, name), (text, executable) in files.items():
            assert (out / where / name).read_bytes() == text
            assert os.access(out / where / name, os.X_OK) is executable


def test_links_stay_links_and_second_names_are_files(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "file").write_text("text")
    (tree / "again").hardlink_to(tree / "file")
    (tree / "link").symlink_to("file")
    (tree / "folder").symlink_to("sub")
    (tree / ".git").mkdir()
    _, stream = packed(tree)
    out = tmp_path / "out"
    out.mkdir()
    subprocess.run(["tar", "-xz", "-C", str(out)], input=stream, check=True)
    assert (out / "link").readlink() == Path("file")
    assert (out / "folder").readlink() == Path("sub")
    assert (out / "again").read_text() == (out / "file").read_text() == "text"
    assert not (out / ".git").exists()


def test_a_change_of_content_name_or_mode_is_another_source(tmp_path: Path) -> None:
    tree = tiny_tree(tmp_path / "tree")
    seen = {packed(tree)[0]}
    (tree / "main.c").chmod(0o755)
    seen.add(packed(tree)[0])
    (tree / "main.c").rename(tree / "other.c")
    seen.add(packed(tree)[0])
    (tree / "other.c").write_text("")
    seen.add(packed(tree)[0])
    assert len(seen) == 4


def test_a_commit_is_fetched_and_packed_once(tmp_path: Path) -> None:
    repository, commits = tiny_repository(tmp_path / "upstream")
    engine = tiny_engine({"kind": "git", "url": str(repository)})
    cache = tmp_path / "cache"
    ref = find_version(engine, "v1.0.0", cache)
    assert ref is not None
    first = packed_source(engine, ref, cache)
    shutil.rmtree(cache / "git")
    shutil.rmtree(repository)
    assert packed_source(engine, ref, cache) == first
    assert (first.version, first.commit) == ("1.0.0", commits["1.0.0"])
    assert [path.name for path in (cache / "sources").glob("*.tar.gz")] == [first.name]


def test_a_tree_of_unknown_content_is_packed_each_time(tmp_path: Path) -> None:
    tree = tiny_tree(tmp_path / "tree")
    engine = tiny_engine({"kind": "path"})
    ref = SourceRef("tiny", "1.2.3", "path", str(tree))
    first = packed_source(engine, ref, tmp_path / "cache")
    (tree / "NOTES").write_text("changed")
    assert packed_source(engine, ref, tmp_path / "cache") != first
    assert not list((tmp_path / "cache" / "sources").glob("work-*"))
