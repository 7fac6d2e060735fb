"""What the package kinds (crate, apt, npm, pypi) have in common: a table, a cache, unpacking.

A table names packages by version, so that listing needs neither network nor client. A package is
downloaded once and unpacked from the cache ever after.
"""

from __future__ import annotations

import re
import shutil
import tarfile
from typing import TYPE_CHECKING

from benchrunner.errors import SourceError
from benchrunner.model import SourceRef
from benchrunner.processes import exclusive
from benchrunner.sources.tree import Tree, tree_version

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchrunner.definitions import Source
    from benchrunner.model import SourceKind

DOWNLOAD_S = 1800.0
_UNSAFE = re.compile(r"[^A-Za-z0-9.+=~-]")


def listed(engine: str, source: Source, kind: SourceKind) -> list[SourceRef]:
    """The versions of a source's table."""
    return [SourceRef(engine, version, kind, name) for version, name in source.versions.items()]


def version_of(source: Source, package: str, otherwise: str) -> str:
    """The version that the table gives a package."""
    known = {name: version for version, name in source.versions.items()}
    return known.get(package, otherwise)


def downloaded(folder: Path, package: str, download: Callable[[Path], None]) -> Path:
    """The folder with a package's files; complete or not there, whoever else asks for it.

    Args:
        folder: of the kind, in the cache.
        package: what the source calls it.
        download: fills an empty folder.
    """
    kept = folder.absolute() / "packages" / _UNSAFE.sub("_", package)
    with exclusive(kept.with_name(f"{kept.name}.lock")):
        if not kept.is_dir():
            part = kept.with_name(f"{kept.name}.part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            download(part)
            part.rename(kept)
    return kept


def unpacked(
    source: Source,
    ref: SourceRef,
    folder: Path,
    pattern: str,
    download: Callable[[Path], None],
    into: Path,
) -> Tree:
    """The engine's tree of a package that is one tarball.

    Args:
        source: of the engine.
        ref: the package.
        folder: of the kind, in the cache.
        pattern: what its one file is called.
        download: fills an empty folder with it.
        into: the folder to make.

    Raises:
        SourceError: There is no such package, it is damaged, or has no such folder.
    """
    package = downloaded(folder, ref.ref, download)
    tree = inside(unpack(only_file(package, pattern, ref.ref), into), source, ref.ref)
    return Tree(tree, tree_version(tree, source.version_file, ref.version))


def only_file(folder: Path, pattern: str, package: str) -> Path:
    """The one file of a downloaded package.

    Raises:
        SourceError: It has none, or several.
    """
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise SourceError(
            f"{package} should have one {pattern} and has {names}", f"remove {folder} and try again"
        )
    return found[0]


def unpack(file: Path, into: Path) -> Path:
    """The tree of a tarball; members that would leave it are refused.

    Raises:
        SourceError: It is damaged, or holds paths outside itself.
    """
    into.mkdir(parents=True)
    try:
        with tarfile.open(file) as archive:
            archive.extractall(into, filter="data")
    except (tarfile.TarError, OSError, EOFError) as error:
        raise SourceError(f"{file} cannot be unpacked: {error}", f"tar -tf {file}") from error
    entries = list(into.iterdir())
    return entries[0] if len(entries) == 1 and entries[0].is_dir() else into


def inside(tree: Path, source: Source, package: str) -> Path:
    """The folder of the engine's tree in a package.

    Raises:
        SourceError: There is none of that name.
    """
    found = tree / source.path if source.path else tree
    if not found.is_dir():
        raise SourceError(
            f"{package} has no folder {source.path!r}", "correct the path in the engine's source"
        )
    return found
