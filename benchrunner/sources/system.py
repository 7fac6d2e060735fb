"""Versions that are installed: a binary on PATH as it is, or a library to compile a driver against.

Nothing is fetched.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.binaries import Ask, ask_here, printed_version
from benchrunner.errors import SourceError
from benchrunner.model import SourceRef
from benchrunner.sources.apt import upstream
from benchrunner.sources.tree import Tree

if TYPE_CHECKING:
    from benchrunner.definitions import Source

_QUERY = "${db:Status-Abbrev}|${Version}\n"
WORD = "system"
"""How a selection asks for the installed binary, and its version when it does not tell."""


def available(engine: str, source: Source) -> list[SourceRef]:
    """The installed binary with the version that it prints, else the installed library.

    Raises:
        SourceError: Neither is installed.
    """
    binary = shutil.which(source.binary) if source.binary else None
    if binary is not None:
        return [SourceRef(engine, installed_version(binary, source), "system", binary)]
    if source.development:
        ref = development_ref(engine, source)
        if ref is not None:
            return [ref]
    raise SourceError(f"{source.binary or source.development} is not installed", remedy(source))


def development_ref(engine: str, source: Source, ask: Ask = ask_here) -> SourceRef | None:
    """The installed library with its header files; ``None`` when it is not installed."""
    printed = ask(["dpkg-query", "-W", "-f", _QUERY, source.development])
    for line in (printed[0] if printed else "").splitlines():
        state, _, number = line.partition("|")
        if state.startswith("ii"):
            package = f"{source.development}={number}"
            return SourceRef(engine, upstream(number), "system", package)
    return None


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
    """The command that installs the binary, or the library."""
    package = source.debian or source.binary or source.development
    return f"apt-get install -y {package}"


def fetch(source: Source, ref: SourceRef, into: Path, cache: Path) -> Tree:
    """The folder of a binary; of a library an empty tree, where a driver is compiled against it."""
    del source, cache
    if ref.ref.startswith("/"):
        return Tree(Path(ref.ref).parent, ref.version)
    into.mkdir(parents=True)
    return Tree(into, ref.version)


def lacks() -> str:
    """Nothing is needed to use what is installed."""
    return ""
