"""Versions that are installed: a binary on PATH, as it is. Nothing is fetched or built."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.binaries import Ask, ask_here, printed_version
from benchrunner.errors import SourceError
from benchrunner.model import SourceRef
from benchrunner.sources.tree import Tree

if TYPE_CHECKING:
    from benchrunner.definitions import Source

WORD = "system"
"""How a selection asks for the installed binary, and its version when it does not tell."""


def available(engine: str, source: Source) -> list[SourceRef]:
    """The installed binary with the version that it prints.

    Raises:
        SourceError: It is not installed.
    """
    binary = shutil.which(source.binary)
    if binary is None:
        raise SourceError(f"{source.binary} is not installed", remedy(source))
    return [SourceRef(engine, installed_version(binary, source), "system", binary)]


def find(engine: str, source: Source, text: str, cache: Path) -> SourceRef | None:
    """``system`` itself.

    Raises:
        SourceError: It is asked for and not installed.
    """
    del cache
    return available(engine, source)[0] if text == WORD else None


def installed_version(binary: str, source: Source, ask: Ask = ask_here) -> str:
    """The first version number that the binary prints; ``system`` when it prints none."""
    return printed_version(binary, source.version_argv, ask) or WORD


def remedy(source: Source) -> str:
    """The command that installs the binary."""
    return f"apt-get install -y {source.debian or source.binary}"


def fetch(source: Source, ref: SourceRef, into: Path, cache: Path) -> Tree:
    """The folder of the binary: nothing to fetch."""
    del source, into, cache
    return Tree(Path(ref.ref).parent, ref.version)


def lacks() -> str:
    """Nothing is needed to use what is installed."""
    return ""
