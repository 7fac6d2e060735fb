"""A source tree in a tarball on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.binaries import file_hash
from benchrunner.errors import SourceError
from benchrunner.model import SourceRef
from benchrunner.sources.packages import inside, unpack
from benchrunner.sources.tree import Tree, tree_version

if TYPE_CHECKING:
    from benchrunner.definitions import Source

SUFFIXES = (".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar")


def available(engine: str, source: Source) -> list[SourceRef]:
    """The tarballs that the engine's table names and that are there."""
    return [
        SourceRef(engine, version, "archive", str(archive), note=content_note(archive))
        for version, name in source.versions.items()
        if (archive := Path(name).expanduser().absolute()).is_file()
    ]


def find(engine: str, source: Source, text: str, cache: Path) -> SourceRef | None:
    """A tarball, when the text is the path of one."""
    del source, cache
    archive = Path(text).expanduser().absolute()
    if not text.endswith(SUFFIXES) or not archive.is_file():
        return None
    name = next(archive.name.removesuffix(end) for end in SUFFIXES if archive.name.endswith(end))
    return SourceRef(engine, name, "archive", str(archive), note=content_note(archive))


def fetch(source: Source, ref: SourceRef, into: Path, cache: Path) -> Tree:
    """The unpacked tree; members that would leave it are refused.

    Raises:
        SourceError: It is gone, has changed, is damaged, or holds paths outside itself.
    """
    del cache
    file = Path(ref.ref)
    if not file.is_file():
        raise SourceError(f"the archive {file} is not there any more", "name another file")
    if ref.note not in ("", content_note(file)):
        raise SourceError(
            f"the archive {file} has changed since it was selected", "start a new sweep"
        )
    tree = inside(unpack(file, into), source, str(file))
    return Tree(tree, tree_version(tree, source.version_file, ref.version))


def lacks() -> str:
    """Nothing is needed to unpack a tarball."""
    return ""


def content_note(archive: Path) -> str:
    """What tells one content of a file from another; part of the cache key."""
    return f"content {file_hash(archive)[:12]}"
