"""Where engine versions come from: one module a kind, and the table of them.

A kind lists what it has, finds one version by name, and fetches its tree. Listing may fail (no
network, no cargo): that is a note beside the other sources, not an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from benchrunner.errors import SourceError
from benchrunner.sources import archive, crate, git, path, system

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchrunner.definitions import Engine, Source
    from benchrunner.model import SourceRef
    from benchrunner.sources.tree import Tree


class Kind(Protocol):
    """What a module of this package offers."""

    def available(self, engine: str, source: Source) -> list[SourceRef]:
        """Every version that can be listed cheaply. Raises SourceError when the list cannot be had."""
        ...

    def find(self, engine: str, source: Source, text: str, cache: Path) -> SourceRef | None:
        """One version by a name that a listing does not show: a branch, a commit, a path."""
        ...

    def fetch(self, source: Source, ref: SourceRef, into: Path, cache: Path) -> Tree:
        """Puts the version's source tree into an absent folder. Raises SourceError."""
        ...


KINDS: dict[str, Kind] = {
    "system": system,
    "git": git,
    "crate": crate,
    "archive": archive,
    "path": path,
}


@dataclass(frozen=True, slots=True)
class Listing:
    """What the sources of an engine have, preferred source first, and what could not be asked."""

    refs: tuple[SourceRef, ...]
    notes: tuple[str, ...]


def ordered(engine: Engine, kinds: Sequence[str] = ()) -> list[Source]:
    """The engine's sources in the order to be tried: ``--source`` or as written.

    Raises:
        SourceError: The engine has no source of a kind that was asked for.
    """
    if not kinds:
        return list(engine.source)
    found = [source for kind in kinds for source in engine.source if source.kind == kind]
    missing = [kind for kind in kinds if kind not in {source.kind for source in found}]
    if missing and missing != ["path"] and missing != ["archive"]:
        have = ", ".join(dict.fromkeys(source.kind for source in engine.source))
        raise SourceError(f"{engine.name} has no source of kind {missing[0]!r}", f"--source {have}")
    return found


def list_versions(engine: Engine, kinds: Sequence[str] = ()) -> Listing:
    """Everything that the sources of an engine can list."""
    refs: list[SourceRef] = []
    notes: list[str] = []
    for source in ordered(engine, kinds):
        try:
            refs += KINDS[source.kind].available(engine.name, source)
        except SourceError as error:
            notes.append(f"{source.kind}: {error.message}")
    return Listing(tuple(refs), tuple(notes))


def find_version(
    engine: Engine, text: str, cache: Path, kinds: Sequence[str] = ()
) -> SourceRef | None:
    """A version by a name that no listing shows; paths and tarballs need no source definition."""
    for source in ordered(engine, kinds):
        found = KINDS[source.kind].find(engine.name, source, text, cache)
        if found is not None:
            return found
    return path.find_local(engine.name, text) or archive.find_local(engine.name, text)


def fetch(engine: Engine, ref: SourceRef, into: Path, cache: Path) -> Tree:
    """Puts the tree of a version into an absent folder.

    Raises:
        SourceError: It cannot be had; the message says what to try.
    """
    matching = [source for source in engine.source if source.kind == ref.kind]
    source = next((s for s in matching if ref.ref in s.versions.values()), None)
    if source is None:
        source = matching[0] if matching else path.any_tree(ref.kind, engine)
    return KINDS[ref.kind].fetch(source, ref, into, cache)
