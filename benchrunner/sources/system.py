"""Versions that are installed: a binary on PATH, as it is. Nothing is fetched or built."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.errors import SourceError
from benchrunner.model import SourceRef
from benchrunner.sources.tree import Tree

if TYPE_CHECKING:
    from benchrunner.definitions import Source

_NUMBER = re.compile(r"\d+(?:\.\d+)+")
_TIMEOUT_S = 20.0


def available(engine: str, source: Source) -> list[SourceRef]:
    """The installed binary with the version that it prints.

    Raises:
        SourceError: It is not installed.
    """
    binary = shutil.which(source.binary)
    if binary is None:
        raise SourceError(
            f"{source.binary} is not installed", f"apt-get install -y {source.debian or source.binary}"
        )
    return [SourceRef(engine, installed_version(binary, source.version_argv), "system", binary)]


def find(engine: str, source: Source, text: str, cache: Path) -> SourceRef | None:
    """``system`` itself.

    Raises:
        SourceError: It is asked for and not installed.
    """
    del cache
    return available(engine, source)[0] if text == "system" else None


def installed_version(binary: str, version_argv: list[str]) -> str:
    """The first version number that the binary prints; ``system`` when it prints none."""
    try:
        done = subprocess.run(
            [binary, *(version_argv or ["--version"])], capture_output=True, text=True,
            errors="replace", stdin=subprocess.DEVNULL, timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return "system"
    match = _NUMBER.search(done.stdout) or _NUMBER.search(done.stderr)
    return match[0] if match else "system"


def fetch(source: Source, ref: SourceRef, into: Path, cache: Path) -> Tree:
    """The folder of the binary: nothing to fetch."""
    del source, into, cache
    return Tree(Path(ref.ref).parent, ref.version)
