"""What a sweep asks for by version, resolved against what the engines' sources have."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from benchrunner.errors import BenchrunnerError, ConfigurationError, NothingSelectedError
from benchrunner.model import SourceRef
from benchrunner.sources import Listing, find_version, list_versions, system
from benchrunner.versions import Version, parse_selection, select

if TYPE_CHECKING:
    from benchrunner.definitions import Engine, Sweep
    from benchrunner.session import Session
    from benchrunner.versions import Selector

Skipped = list[tuple[str, str]]


def select_versions(session: Session, sweep: Sweep) -> tuple[dict[str, list[SourceRef]], Skipped]:
    """Versions of every engine of a sweep, and what was left out with the reason.

    Raises:
        ConfigurationError: A version that no source has.
        NothingSelectedError: A range without versions.
        SourceError: A version that only a source out of reach can have.
    """
    refs: dict[str, list[SourceRef]] = {}
    skipped: Skipped = []
    here = any(not session.catalog.host(host).address for host in sweep.hosts)
    for name, words in sweep.engines.items():
        engine = session.catalog.engine(name)
        refs[name], gaps = _resolve(session, engine, words, sweep.sources, here=here)
        skipped += gaps
    return refs, skipped


def _resolve(
    session: Session, engine: Engine, words: list[str], kinds: list[str], *, here: bool
) -> tuple[list[SourceRef], Skipped]:
    """The same; what is installed on other hosts only is asked for its version there, later."""
    installed = next((s.binary for s in engine.source if s.kind == system.WORD), None)
    if here or installed is None or system.WORD not in words or shutil.which(installed):
        return resolve(session, engine, words, kinds)
    there = SourceRef(engine.name, system.WORD, "system", installed)
    others = [word for word in words if word != system.WORD]
    refs, skipped = resolve(session, engine, others, kinds) if others else ([], [])
    return [*refs, there], skipped


def resolve(
    session: Session, engine: Engine, words: list[str], kinds: list[str]
) -> tuple[list[SourceRef], Skipped]:
    """The versions of one engine that the words select.

    Sources are asked to list only when a word needs a list, and no further than to the last exact
    version that was asked for; branches, commits and paths are looked up one by one, and only
    where a source answers: an offline machine waits for a far repository once at most.
    """
    selectors = parse_selection(words)
    if not selectors:
        raise ConfigurationError(
            f"no version of {engine.name} was asked for", f"benchrunner versions {engine.name}"
        )
    listing = _listing(engine, selectors, kinds)
    listed = {ref.version for ref in listing.refs} | {ref.ref for ref in listing.refs}
    found = {}
    for selector in selectors:
        unknown = selector.kind == "exact" and str(selector.first) not in listed
        if selector.kind == "name" or unknown:
            cache = session.settings.cache
            ref = find_version(engine, selector.text, cache, kinds, listing.unreachable)
            if ref is not None:
                found[selector.text] = ref
    try:
        refs, skipped = select(engine.name, selectors, listing.refs, found)
    except (ConfigurationError, NothingSelectedError) as error:
        raise _with_notes(error, listing.notes) from None
    return refs, [(what, _and_notes(why, listing.notes)) for what, why in skipped]


def _listing(engine: Engine, selectors: list[Selector], kinds: list[str]) -> Listing:
    if all(selector.kind == "name" for selector in selectors):
        return Listing()
    if any(selector.kind in ("range", "newest") for selector in selectors):
        return list_versions(engine, kinds)
    exact = {selector.first for selector in selectors if selector.first is not None}
    return list_versions(engine, kinds, exact)


def _with_notes(error: BenchrunnerError, notes: tuple[str, ...]) -> BenchrunnerError:
    """The same error, saying which source might have had it."""
    return type(error)(_and_notes(error.message, notes), error.hint)


def _and_notes(text: str, notes: tuple[str, ...]) -> str:
    return f"{text} ({'; '.join(notes)})" if notes else text


def newest_first(refs: list[SourceRef]) -> list[SourceRef]:
    """Listed versions for people: releases from new to old, then names."""
    return sorted(
        refs, key=lambda ref: (Version.parse(ref.version) or Version(())).numbers, reverse=True
    )
