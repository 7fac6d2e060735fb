"""A version's source as one file that can be sent: the same tree gives the same bytes.

Packed once for each source and kept in the cache here, under the hash of what is in it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import shutil
import tarfile
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from benchrunner.processes import exclusive
from benchrunner.sources import fetch, identity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchrunner.definitions import Engine
    from benchrunner.model import SourceRef

_GZIP_LEVEL = 1
_GZIP_FORMAT = 31
"""zlib's word for a gzip header, which then has no name and no time in it."""
_MTIME = 946_684_800
"""One time for all files: none is newer than another, so make regenerates nothing."""
_LEFT_OUT = ".git"
"""A clone's objects stay here; the commit is in the artifact's record."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A packed source tree in the cache here."""

    content: str
    """SHA-256 over the unpacked archive: names, modes and contents."""
    version: str
    commit: str | None

    @property
    def name(self) -> str:
        """File name, the same in every cache."""
        return f"{self.content}.tar.gz"


def packed_source(engine: Engine, ref: SourceRef, cache: Path) -> Packed:
    """The packed tree of a version; fetched and packed if the cache has it not.

    Raises:
        SourceError: The source cannot be had.
    """
    folder = (cache / "sources").absolute()
    known = hashlib.sha256(json.dumps([engine.name, *identity(engine, ref)]).encode()).hexdigest()
    entry = folder / f"{known[:16]}.json"
    with exclusive(entry.with_suffix(".lock")):
        if _is_certain(ref) and entry.is_file():
            packed = Packed(**json.loads(entry.read_text()))
            if (folder / packed.name).is_file():
                return packed
        packed = _pack_version(engine, ref, folder, cache)
        part = entry.with_suffix(".part")
        part.write_text(json.dumps(asdict(packed)))
        part.replace(entry)
    return packed


def _is_certain(ref: SourceRef) -> bool:
    """Whether a reference names one content for ever; trees and tarballs do by their hash."""
    return ref.kind in ("crate", "git", "apt", "npm", "pypi") or bool(ref.note)


def _pack_version(engine: Engine, ref: SourceRef, folder: Path, cache: Path) -> Packed:
    work = folder / f"work-{secrets.token_hex(4)}"
    part = folder / f"{work.name}.part"
    try:
        tree = fetch(engine, ref, work, cache)
        with part.open("wb") as file:
            content = pack(tree.path, file)
        packed = Packed(content, tree.version, tree.commit)
        part.replace(folder / packed.name)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        part.unlink(missing_ok=True)
    return packed


def pack(tree: Path, file: BinaryIO) -> str:
    """Writes a folder as .tar.gz; returns the SHA-256 of what is inside the compression."""
    stream = _HashedGzip(file)
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        for path in _members(tree):
            info = archive.gettarinfo(path, arcname=str(path.relative_to(tree)))
            if info.islnk():  # a second name of a file: packed as a file of its own
                info.type, info.size = tarfile.REGTYPE, path.stat().st_size
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mtime = _MTIME
            info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
            if info.isreg():
                with path.open("rb") as content:
                    archive.addfile(info, content)
            else:
                archive.addfile(info)
    return stream.finish()


def _members(tree: Path) -> Iterator[Path]:
    """Folders, files and links of a tree, always in the same order."""
    for where, folders, files in os.walk(tree):
        folders[:] = sorted(name for name in folders if name != _LEFT_OUT)
        yield from (Path(where, name) for name in sorted([*folders, *files]) if name != _LEFT_OUT)


class _HashedGzip(io.RawIOBase):
    """Compresses what is written to it, and hashes it before that."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self._digest = hashlib.sha256()
        self._gzip = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_FORMAT)

    def write(self, data: Any, /) -> int:
        """Takes the next part."""
        self._digest.update(data)
        self._file.write(self._gzip.compress(data))
        return len(data)

    def finish(self) -> str:
        """Ends the compressed stream; returns the hash."""
        self._file.write(self._gzip.flush())
        return self._digest.hexdigest()
