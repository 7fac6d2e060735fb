"""Where engine versions come from: one module a kind, and the table of them.

A kind lists what it has, finds one version by name, and fetches its tree. Listing may fail (no
network, not installed): that is a note beside the other sources, not an error.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from benchrunner.errors import SourceError
from benchrunner.sources import apt, archive, crate, git, native, npm, path, pypi, system
from benchrunner.suggest import did_you_mean
from benchrunner.versions import Version, looks_like_commit

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from benchrunner.definitions import Engine, Source
    from benchrunner.model import SourceRef
    from benchrunner.sources.tree import Tree


class Kind(Protocol):
    """What a module of this package offers."""

    def available(self, engine: str, source: Source) -> list[SourceRef]:
        """Every version that can be listed cheaply. Raises SourceError when it cannot be asked."""
        ...

    def find(self, engine: str, source: Source, text: str, cache: Path) -> SourceRef | None:
        """One version by a name that a listing does not show: a branch, a commit, a path."""
        ...

    def fetch(self, source: Source, ref: SourceRef, into: Path, cache: Path) -> Tree:
        """Puts the version's source tree into an absent folder. Raises SourceError."""
        ...

    def lacks(self) -> str:
        """What this machine lacks to fetch; empty when nothing."""
        ...


KINDS: dict[str, Kind] = {
    "system": system,
    "git": git,
    "crate": crate,
    "apt": apt,
    "npm": npm,
    "pypi": pypi,
    "archive": archive,
    "path": path,
    "native": native,
}
LOCAL_KINDS = ("path", "archive")
"""Kinds that need no definition: the words of a selection name the tree or the tarball."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What the sources of an engine have, preferred source first, and what could not be asked."""

    refs: tuple[SourceRef, ...] = ()
    notes: tuple[str, ...] = ()
    """What the user should know: which source could not be asked, what is missing to fetch."""
    unreachable: tuple[str, ...] = ()
    """Kinds that could not be asked."""


def ordered(engine: Engine, kinds: Sequence[str] = ()) -> list[Source]:
    """The engine's sources in the order to be tried: ``--source`` or as written.

    Raises:
        SourceError: There is no such kind, or the engine has no source of it.
    """
    if not kinds:
        return list(engine.source)
    have = dict.fromkeys(source.kind for source in engine.source)
    for kind in kinds:
        if kind not in KINDS:
            known = f"one of {', '.join(KINDS)}"
            raise SourceError(f"there is no source kind {kind!r}{did_you_mean(kind, KINDS)}", known)
        if kind not in have and kind not in LOCAL_KINDS:
            raise SourceError(
                f"{engine.name} has no source of kind {kind!r}", f"--source {','.join(have)}"
            )
    return [source for kind in kinds for source in engine.source if source.kind == kind]


def list_versions(
    engine: Engine, kinds: Sequence[str] = (), wanted: Collection[Version] | None = None
) -> Listing:
    """Everything that the sources of an engine can list.

    Args:
        engine: whose sources.
        kinds: source kinds to ask, in order; empty: the engine's own.
        wanted: when given, later sources are not asked once these versions are listed.
    """
    refs: list[SourceRef] = []
    notes: list[str] = []
    unreachable: list[str] = []
    for source in ordered(engine, kinds):
        have = {Version.parse(ref.version) for ref in refs if ref.kind != "system"}
        if wanted is not None and have.issuperset(wanted):
            break
        try:
            refs += KINDS[source.kind].available(engine.name, source)
        except SourceError as error:
            notes.append(f"{source.kind}: {error.message}")
            unreachable.append(source.kind)
        else:
            lacks = KINDS[source.kind].lacks()
            notes += [f"{source.kind}: {lacks}"] if lacks else []
    return Listing(tuple(refs), tuple(notes), tuple(unreachable))


def find_version(
    engine: Engine,
    text: str,
    cache: Path,
    kinds: Sequence[str] = (),
    skip: Collection[str] = (),
) -> SourceRef | None:
    """A version by a name that no listing shows; paths and tarballs need no source definition.

    Args:
        engine: whose version.
        text: ``system``, a path, a tarball, a crate, a tag, a branch, a commit, a version.
        cache: where fetched things are kept.
        kinds: source kinds to ask, in order; empty: the engine's own.
        skip: kinds that are known to be out of reach.

    Raises:
        SourceError: No source that answered has it, and one could not be asked.
    """
    sources = ordered(engine, kinds)
    for kind in (kind for kind in LOCAL_KINDS if not kinds or kind in kinds):
        found = KINDS[kind].find(engine.name, _of_kind(engine, kind)[0], text, cache)
        if found is not None:
            return found
    if text.startswith(("/", "./", "../", "~/")):
        raise SourceError(f"{text} is neither a folder nor a tarball", "check the path")
    failures: list[SourceError] = []
    for source in sorted(sources, key=lambda source: text not in source.versions.values()):
        if source.kind in skip or (text == system.WORD and source.kind != "system"):
            continue
        try:
            found = KINDS[source.kind].find(engine.name, source, text, cache)
        except SourceError as error:
            failures.append(error)
            continue
        if found is not None:
            return found
    if failures:
        first = failures[0]
        raise SourceError(f"{engine.name} {text!r} is not to be had: {first.message}", first.hint)
    return None


def fetch(engine: Engine, ref: SourceRef, into: Path, cache: Path) -> Tree:
    """Puts the tree of a version into an absent folder.

    Raises:
        SourceError: It cannot be had; the message says what to try.
    """
    candidates = _of_kind(engine, ref.kind)
    named = [source for source in candidates if ref.ref in source.versions.values()]
    failure: SourceError | None = None
    for source in named or candidates:
        try:
            return KINDS[ref.kind].fetch(source, ref, into, cache)
        except SourceError as error:
            failure = failure or error
            shutil.rmtree(into, ignore_errors=True)
    raise failure or SourceError(f"{engine.name} has no source of kind {ref.kind!r}")


def identity(engine: Engine, ref: SourceRef) -> list[str]:
    """What tells the content of one reference from that of another, as far as it is known.

    A tag or branch of a repository is its commit; a tree and a tarball have their hash in the note.
    """
    if ref.kind != "git":
        return [ref.kind, ref.ref, ref.note]
    urls = [source.url for source in engine.source if source.kind == "git"]
    commit = git.commit_of(ref)
    return ["git", *urls, commit[:10] if looks_like_commit(commit) else commit]


def _of_kind(engine: Engine, kind: str) -> list[Source]:
    """The engine's sources of a kind; made up for trees and tarballs that it does not list."""
    found = [source for source in engine.source if source.kind == kind]
    if found or kind not in LOCAL_KINDS:
        return found
    from benchrunner.definitions import Source

    version_file = next((s.version_file for s in engine.source if s.version_file), "")
    fields: dict[str, Any] = {"kind": kind, "version_file": version_file}
    return [Source(**fields)]
