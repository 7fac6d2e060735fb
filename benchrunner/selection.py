"""What a sweep asks for by version, resolved against what the engines' sources have."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from benchrunner.errors import (
    BenchrunnerError,
    ConfigurationError,
    NothingSelectedError,
    SourceError,
)
from benchrunner.model import MISSING, SourceRef
from benchrunner.sources import KINDS, Listing, find_version, list_versions, ordered, system
from benchrunner.unfolding import engines_of
from benchrunner.versions import Version, parse_selection, select

if TYPE_CHECKING:
    from benchrunner.definitions import Engine, Sweep
    from benchrunner.session import Session
    from benchrunner.versions import Selector

Skipped = list[tuple[str, str]]


def select_versions(session: Session, sweep: Sweep) -> tuple[dict[str, list[SourceRef]], Skipped]:
    """Versions of every engine of a sweep, and what was left out with the reason.

    One of several engines that cannot be had here does not stop the others: it is ``MISSING``.

    Raises:
        ConfigurationError: A version that no source has.
        NothingSelectedError: A range without versions.
        SourceError: A version that only a source out of reach can have.
    """
    refs: dict[str, list[SourceRef]] = {}
    skipped: Skipped = []
    here = any(not session.catalog.host(host).address for host in sweep.hosts)
    among_others = _among_others(session, sweep)
    for name in dict.fromkeys([*among_others, *sweep.engines]):
        words = sweep.engines.get(name, [])
        engine = session.catalog.engine(name)
        kinds = _kinds(engine, sweep.sources) if name in among_others else sweep.sources
        try:
            if words:
                refs[name], gaps = _resolve(session, engine, words, kinds, here=here)
            else:
                refs[name], gaps = [_default(session, engine, kinds, here=here)], []
        except BenchrunnerError as error:
            if name not in among_others or (words and not isinstance(error, SourceError)):
                raise
            refs[name], gaps = [_missing(engine, words, error)], []
        skipped += gaps
    return refs, skipped


def _among_others(session: Session, sweep: Sweep) -> list[str]:
    """The engines that a workload of the sweep compares with others."""
    workloads = [session.catalog.workload(name) for name in sweep.workloads]
    names = [name for w in workloads if w.engines for name in engines_of(w, sweep)]
    return list(dict.fromkeys(names))


def _kinds(engine: Engine, kinds: list[str]) -> list[str]:
    """Of the source kinds asked for those that this engine has: not all engines have the same."""
    have = {source.kind for source in engine.source}
    return [kind for kind in kinds if kind in have or kind not in KINDS] or kinds


def _default(session: Session, engine: Engine, kinds: list[str], *, here: bool) -> SourceRef:
    """The version of an engine that is taken when none is named.

    Raises:
        BenchrunnerError: No source has one.
    """
    if engine.default and not kinds:
        refs, _ = _resolve(session, engine, [engine.default], kinds, here=here)
        return refs[0]
    notes: list[str] = []
    for kind in dict.fromkeys(source.kind for source in ordered(engine, kinds)):
        listing = list_versions(engine, [kind])
        if listing.refs:
            return newest_first(list(listing.refs))[0]
        notes += listing.notes
    raise SourceError(
        f"no source of {engine.name} has a version{_and_notes('', tuple(notes))}",
        f"benchrunner versions {engine.name}",
    )


def named_version(session: Session, engine: Engine, word: str) -> SourceRef:
    """One version by name; what is installed is looked for on the host, by the build.

    Raises:
        SourceError: No source has it.
    """
    for source in engine.source if word == system.WORD else ():
        if source.kind == system.WORD:
            name = source.binary or source.development
            return SourceRef(engine.name, system.WORD, "system", name)
    try:
        refs, _ = resolve(session, engine, [word], [])
    except (ConfigurationError, NothingSelectedError) as error:
        raise SourceError(error.message, error.hint) from error
    return refs[0]


def _missing(engine: Engine, words: list[str], error: BenchrunnerError) -> SourceRef:
    version = ",".join(words) or engine.default or "newest"
    why = f"{error.message}; try: {error.hint}" if error.hint else error.message
    return SourceRef(engine.name, version, MISSING, "", f"{engine.title} cannot be had: {why}")


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
