"""Versions: what ``6.10..7.2,8.1.1,system`` selects from what the sources have. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import TYPE_CHECKING, Literal

from benchrunner.errors import ConfigurationError, NothingSelectedError
from benchrunner.suggest import did_you_mean, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchrunner.model import SourceRef

_NUMBERED = re.compile(r"v?(\d+(?:\.\d+){0,3})")
_SHA = re.compile(r"[0-9a-f]{7,40}")


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A release number; 6.9 comes before 6.10.

    >>> Version.parse("6.9.0") < Version.parse("6.10.4")
    True
    """

    numbers: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Version | None:
        """The version that a text is; ``None`` for branches, commits, paths and ``system``."""
        match = _NUMBERED.fullmatch(text)
        return cls(tuple(int(part) for part in match[1].split("."))) if match else None

    @property
    def minor(self) -> tuple[int, ...]:
        """Major and minor number."""
        return self.numbers[:2]

    def __lt__(self, other: Version) -> bool:
        return self.numbers < other.numbers

    def __str__(self) -> str:
        return ".".join(str(number) for number in self.numbers)


@dataclass(frozen=True, slots=True)
class Selector:
    """One word of a selection."""

    kind: Literal["exact", "minor", "range", "name"]
    text: str
    first: Version | None = None
    last: Version | None = None


def parse_selection(words: Iterable[str]) -> list[Selector]:
    """What was asked for, word by word.

    >>> [s.kind for s in parse_selection(["6.10..7.2", "7.1", "7.2.2", "system"])]
    ['range', 'minor', 'exact', 'name']

    Raises:
        ConfigurationError: A range without two versions, or the wrong way round.
    """
    return [_selector(word.strip()) for word in words if word.strip()]


def _selector(word: str) -> Selector:
    if ".." in word and not word.startswith((".", "/")):
        head, _, tail = word.partition("..")
        first, last = Version.parse(head), Version.parse(tail)
        if first is None or last is None:
            raise ConfigurationError(f"version range {word!r} needs two versions", "6.10..7.2")
        if last.minor < first.minor:
            raise ConfigurationError(
                f"version range {word!r} runs backwards", f"{last}..{first}"
            )
        return Selector("range", word, first, last)
    version = Version.parse(word)
    if version is None:
        return Selector("name", word)
    return Selector("exact" if len(version.numbers) > 2 else "minor", word, version, version)


def select(
    engine: str, selectors: Sequence[Selector], available: Sequence[SourceRef]
) -> tuple[list[SourceRef], list[tuple[str, str]]]:
    """The versions that a selection takes, oldest first within a range, none twice.

    Args:
        engine: for messages.
        selectors: what was asked for.
        available: what the sources have, the preferred source of a version first.

    Returns:
        The versions, and (what, why) for minors of a range that no source has.

    Raises:
        ConfigurationError: An exact version or name that no source has.
        NothingSelectedError: A range that selects nothing.
    """
    by_version = _preferred(available)
    chosen: dict[str, SourceRef] = {}
    skipped: list[tuple[str, str]] = []
    for selector in selectors:
        if selector.kind == "range":
            found = _in_range(selector, by_version)
            if not found:
                raise NothingSelectedError(
                    f"{engine} {selector.text}: no source has a version in this range",
                    f"benchrunner versions {engine}",
                )
            skipped += _gaps(engine, selector, found)
        else:
            found = [_one(engine, selector, by_version, available)]
        chosen.update((f"{ref.kind} {ref.ref}", ref) for ref in found)
    return list(chosen.values()), skipped


def _preferred(available: Sequence[SourceRef]) -> dict[Version, SourceRef]:
    """Released versions, each from the first source that has it; ``system`` only by name."""
    found: dict[Version, SourceRef] = {}
    for ref in available:
        version = Version.parse(ref.version)
        if version is not None and ref.kind != "system":
            found.setdefault(version, ref)
    return found


def _in_range(selector: Selector, by_version: dict[Version, SourceRef]) -> list[SourceRef]:
    """The newest patch of each minor between two versions; a bound with a patch number binds it."""
    first, last = selector.first, selector.last
    assert first is not None  # noqa: S101
    assert last is not None  # noqa: S101
    newest: dict[tuple[int, ...], Version] = {}
    for version in by_version:
        if first.minor <= version.minor <= last.minor and version >= first:
            within = len(last.numbers) < 3 or version <= last
            if within and version > newest.get(version.minor, Version((-1,))):
                newest[version.minor] = version
    return [by_version[version] for version in sorted(newest.values())]


def _gaps(
    engine: str, selector: Selector, found: Sequence[SourceRef]
) -> list[tuple[str, str]]:
    have = ", ".join(ref.version for ref in found)
    return [(f"{engine} {selector.text}", f"other minors of the range: no source has them ({have} run)")]


def _one(
    engine: str,
    selector: Selector,
    by_version: dict[Version, SourceRef],
    available: Sequence[SourceRef],
) -> SourceRef:
    named = [ref for ref in available if selector.text in (ref.kind, ref.ref, ref.version)]
    if selector.kind == "name" and named:
        return named[0]
    if selector.kind == "minor" and selector.first is not None:
        patches = sorted(v for v in by_version if v.minor == selector.first.minor)
        if patches:
            return by_version[patches[-1]]
    if selector.kind == "exact" and selector.first in by_version:
        return by_version[selector.first]
    if named:
        return named[0]
    known = [str(version) for version in by_version]
    raise ConfigurationError(
        f"no source has {engine} {selector.text!r}{did_you_mean(selector.text, known)}",
        f"benchrunner versions {engine}" + ("" if known else "; " + listed(known)),
    )


def looks_like_commit(text: str) -> bool:
    """Whether a word can be the name of a commit.

    >>> looks_like_commit("66559b4087"), looks_like_commit("main")
    (True, False)
    """
    return _SHA.fullmatch(text) is not None
