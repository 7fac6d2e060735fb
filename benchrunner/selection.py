"""What a sweep asks for by version, resolved against what the engines' sources have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchrunner.sources import find_version, list_versions
from benchrunner.versions import Version, parse_selection, select

if TYPE_CHECKING:
    from benchrunner.definitions import Engine, Sweep
    from benchrunner.model import SourceRef
    from benchrunner.session import Session

Skipped = list[tuple[str, str]]


def select_versions(
    session: Session, sweep: Sweep
) -> tuple[dict[str, list[SourceRef]], Skipped]:
    """Versions of every engine of a sweep, and what was left out with the reason.

    Raises:
        ConfigurationError: A version that no source has.
        NothingSelectedError: A range without versions.
    """
    refs: dict[str, list[SourceRef]] = {}
    skipped: Skipped = []
    for name, words in sweep.engines.items():
        engine = session.catalog.engine(name)
        refs[name], gaps = resolve(session, engine, words, sweep.sources)
        skipped += gaps
    return refs, skipped


def resolve(
    session: Session, engine: Engine, words: list[str], kinds: list[str]
) -> tuple[list[SourceRef], Skipped]:
    """The versions of one engine that the words select.

    Sources are asked to list only when a word needs a list, and for branches, commits and paths
    only when no list has them: neither is free where a repository is far away.
    """
    selectors = parse_selection(words)
    named = all(selector.kind == "name" for selector in selectors)
    available = [] if named else list(list_versions(engine, kinds).refs)
    listed = {ref.version for ref in available} | {ref.ref for ref in available}
    for selector in selectors:
        unknown = selector.kind == "exact" and str(selector.first) not in listed
        if selector.kind == "name" or unknown:
            found = find_version(engine, selector.text, session.settings.cache, kinds)
            if found is not None:
                available.insert(0, found)
    return select(engine.name, selectors, available)


def newest_first(refs: list[SourceRef]) -> list[SourceRef]:
    """Listed versions for people: releases from new to old, then names."""
    return sorted(
        refs, key=lambda ref: (Version.parse(ref.version) or Version(())).numbers, reverse=True
    )
