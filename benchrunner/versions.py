"""Versions: what ``6.10..7.2,8.1.1,system`` selects from what the sources have.

Pure, but that a relative path means what it means in the working directory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from benchrunner.errors import ConfigurationError, NothingSelectedError
from benchrunner.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchrunner.model import SourceRef

_NUMBERED = re.compile(r"v?(\d+(?:\.\d+){0,3})(?:\+[0-9a-f]+)?")
_BY_NAME_ONLY = ("system", "path")
"""Sources whose versions stand for themselves, never for the release of the same number."""
_SHA = re.compile(r"[0-9a-f]{7,40}")


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A release number; 6.9 comes before 6.10. What follows a ``+`` says which tree, not when.

    >>> Version.parse("6.9.0") < Version.parse("6.10.4+1a2b3c4")
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

    kind: Literal["exact", "newest", "range", "name"]
    text: str
    first: Version | None = None
    last: Version | None = None


def parse_selection(words: Iterable[str]) -> list[Selector]:
    """What was asked for, word by word.

    >>> [s.kind for s in parse_selection(["6.10..7.2", "7.1", "7.2.2", "system", "../rocksdb"])]
    ['range', 'newest', 'exact', 'name', 'name']

    Raises:
        ConfigurationError: A range without two versions, or the wrong way round.
    """
    return [_selector(word.strip()) for word in words if word.strip()]


def _selector(word: str) -> Selector:
    if ".." in word and "/" not in word:
        head, _, tail = word.partition("..")
        first, last = Version.parse(head), Version.parse(tail)
        if first is None or last is None:
            raise ConfigurationError(
                f"version range {word!r} needs a version on each side", "6.10..7.2"
            )
        if last.minor < first.minor[: len(last.minor)]:
            raise ConfigurationError(f"version range {word!r} runs backwards", f"{last}..{first}")
        return Selector("range", word, first, last)
    version = Version.parse(word)
    if version is None:
        return Selector("name", word)
    return Selector("exact" if len(version.numbers) > 2 else "newest", word, version, version)


def select(
    engine: str,
    selectors: Sequence[Selector],
    available: Sequence[SourceRef],
    found: Mapping[str, SourceRef] = MappingProxyType({}),
) -> tuple[list[SourceRef], list[tuple[str, str]]]:
    """The versions that a selection takes, oldest first within a range, none twice.

    Args:
        engine: for messages.
        selectors: what was asked for.
        available: what the sources list, the preferred source of a version first.
        found: by word, what no listing shows: ``system``, branches, commits, paths.

    Returns:
        The versions, and (what, why) for ranges with minors that no source has.

    Raises:
        ConfigurationError: An exact version or name that no source has.
        NothingSelectedError: A range that selects nothing.
    """
    by_version = _preferred(available)
    chosen: dict[str, SourceRef] = {}
    skipped: list[tuple[str, str]] = []
    for selector in selectors:
        if selector.text in found:
            taken = [found[selector.text]]
        elif selector.kind == "range":
            taken = _in_range(engine, selector, by_version)
            skipped += _gaps(engine, selector, taken, by_version)
        else:
            taken = [_one(engine, selector, by_version, available)]
        chosen.update((f"{ref.kind} {ref.ref}", ref) for ref in taken)
    return list(chosen.values()), skipped


def _preferred(available: Sequence[SourceRef]) -> dict[Version, SourceRef]:
    """Released versions, each from the first source that has it; ``system`` only by name."""
    preferred: dict[Version, SourceRef] = {}
    for ref in available:
        version = Version.parse(ref.version)
        if version is not None and ref.kind != "system":
            preferred.setdefault(version, ref)
    return preferred


def _in_range(
    engine: str, selector: Selector, by_version: Mapping[Version, SourceRef]
) -> list[SourceRef]:
    """The newest patch of each minor between two versions; a bound with a patch number binds it."""
    first, last = _bounds(selector)
    newest: dict[tuple[int, ...], Version] = {}
    for version in by_version:
        head = version.minor[: len(last.minor)]
        if version >= first and head <= last.minor:
            within = len(last.numbers) < 3 or version <= last
            if within and version > newest.get(version.minor, Version((-1,))):
                newest[version.minor] = version
    if not newest:
        raise NothingSelectedError(
            f"{engine} {selector.text}: no source has a version in this range",
            f"benchrunner versions {engine}",
        )
    return [by_version[version] for version in sorted(newest.values())]


def _bounds(selector: Selector) -> tuple[Version, Version]:
    assert selector.first is not None  # noqa: S101
    assert selector.last is not None  # noqa: S101
    return selector.first, selector.last


def _gaps(
    engine: str,
    selector: Selector,
    taken: Sequence[SourceRef],
    by_version: Mapping[Version, SourceRef],
) -> list[tuple[str, str]]:
    """The minors of a range that no source has.

    How far a major goes that is not the range's last is known only from what the sources list:
    minors after the newest listed one are not named.
    """
    first, last = _bounds(selector)
    have = {version.minor for ref in taken if (version := Version.parse(ref.version)) is not None}
    missing: list[str] = []
    for major in range(first.numbers[0], last.numbers[0] + 1):
        known = [v.numbers[1] for v in by_version if v.numbers[0] == major and len(v.numbers) > 1]
        begin, end = 0, max(known, default=-1)
        if major == first.numbers[0] and len(first.numbers) > 1:
            begin = first.numbers[1]
        if major == last.numbers[0] and len(last.numbers) > 1:
            end = last.numbers[1]
        missing += _runs(major, [n for n in range(begin, end + 1) if (major, n) not in have])
    if not missing:
        return []
    return [(f"{engine} {selector.text}", f"no source has {', '.join(missing)}")]


def _runs(major: int, minors: Sequence[int]) -> list[str]:
    """Minors of one major as texts, neighbours joined.

    >>> _runs(6, [10, 12, 13, 14, 16])
    ['6.10', '6.12 to 6.14', '6.16']
    """
    texts: list[str] = []
    start = 0
    for index, minor in enumerate(minors):
        if index + 1 < len(minors) and minors[index + 1] == minor + 1:
            continue
        head = f"{major}.{minors[start]}"
        texts.append(head if start == index else f"{head} to {major}.{minor}")
        start = index + 1
    return texts


def _one(
    engine: str,
    selector: Selector,
    by_version: Mapping[Version, SourceRef],
    available: Sequence[SourceRef],
) -> SourceRef:
    """The one version that a word names: the newest that begins with these numbers, or by name."""
    if selector.first is not None:
        numbers = selector.first.numbers
        versions = [version for version in by_version if version.numbers[: len(numbers)] == numbers]
        if versions:
            return by_version[max(versions)]
    named = [ref for ref in available if selector.text in (ref.ref, ref.version)]
    if named:
        return named[0]
    known = [str(version) for version in by_version]
    raise ConfigurationError(
        f"no source has {engine} {selector.text!r}{did_you_mean(selector.text, known)}",
        f"benchrunner versions {engine}",
    )


def looks_like_commit(text: str) -> bool:
    """Whether a word can be the name of a commit.

    >>> looks_like_commit("66559b4087"), looks_like_commit("main")
    (True, False)
    """
    return _SHA.fullmatch(text) is not None
