"""A source tree in a tarball on this machine."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.errors import SourceError
from benchrunner.model import SourceRef
from benchrunner.sources.tree import Tree, tree_version

if TYPE_CHECKING:
    from benchrunner.definitions import Source

SUFFIXES = (".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar")


def available(engine: str, source: Source) -> list[SourceRef]:
    """The tarballs that the engine's table names and that are there."""
    return [
        SourceRef(engine, version, "archive", str(Path(name).expanduser().absolute()))
        for version, name in source.versions.items()
        if Path(name).expanduser().is_file()
    ]


def find(engine: str, source: Source, text: str, cache: Path) -> SourceRef | None:
    """Any tarball by its path."""
    del source, cache
    return find_local(engine, text)


def find_local(engine: str, text: str) -> SourceRef | None:
    """A tarball, when the text is the path of one."""
    archive = Path(text).expanduser().absolute()
    if not text.endswith(SUFFIXES) or not archive.is_file():
        return None
    name = next(archive.name.removesuffix(end) for end in SUFFIXES if archive.name.endswith(end))
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return SourceRef(engine, name, "archive", str(archive), note=f"content {digest[:12]}")


def fetch(source: Source, ref: SourceRef, into: Path, cache: Path) -> Tree:
    """The unpacked tree; members that would leave it are refused.

    Raises:
        SourceError: It is no tarball, is damaged, or holds paths outside itself.
    """
    del cache
    into.mkdir(parents=True)
    try:
        with tarfile.open(ref.ref) as archive:
            archive.extractall(into, filter="data")
    except (tarfile.TarError, OSError, EOFError) as error:
        raise SourceError(f"{ref.ref} cannot be unpacked: {error}", "check the file") from error
    entries = list(into.iterdir())
    tree = entries[0] if len(entries) == 1 and entries[0].is_dir() else into
    tree = tree / source.path if source.path else tree
    if not tree.is_dir():
        raise SourceError(f"{ref.ref} has no folder {source.path!r}", "check the engine's path")
    return Tree(tree, tree_version(tree, source.version_file, ref.version))
