"""Programs of our own, in ``native``: one version, which the recipe puts into an empty tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchrunner.model import SourceRef
from benchrunner.sources.tree import Tree

if TYPE_CHECKING:
    from pathlib import Path

    from benchrunner.definitions import Source

WORD = "own"
"""Its version, and how a selection asks for it."""


def available(engine: str, source: Source) -> list[SourceRef]:
    """The one there is; what it consists of is hashed by the build."""
    del source
    return [SourceRef(engine, WORD, "native", f"native/{engine}")]


def find(engine: str, source: Source, text: str, cache: Path) -> SourceRef | None:
    """``own`` itself."""
    del cache
    return available(engine, source)[0] if text == WORD else None


def fetch(source: Source, ref: SourceRef, into: Path, cache: Path) -> Tree:
    """An empty tree, into which the recipe's native folders are put."""
    del source, cache
    into.mkdir(parents=True)
    return Tree(into, ref.version)


def lacks() -> str:
    """Nothing is needed: it came with this program."""
    return ""
