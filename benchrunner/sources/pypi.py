"""Upstream trees in Python source distributions, fetched by ``pip download``: nothing installed."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from typing import TYPE_CHECKING

from benchrunner.errors import SourceError
from benchrunner.model import SourceRef
from benchrunner.processes import tool_output
from benchrunner.sources.packages import DOWNLOAD_S, listed, unpacked, version_of

if TYPE_CHECKING:
    from pathlib import Path

    from benchrunner.definitions import Source
    from benchrunner.sources.tree import Tree

_PACKAGE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==(\d[A-Za-z0-9.+!-]*)")


def available(engine: str, source: Source) -> list[SourceRef]:
    """The versions that the engine's table names; neither pip nor network is needed to list."""
    return listed(engine, source, "pypi")


def find(engine: str, source: Source, text: str, cache: Path) -> SourceRef | None:
    """Any ``name==number``, also one that is not in the table."""
    del cache
    match = _PACKAGE.fullmatch(text)
    if match is None:
        return None
    return SourceRef(engine, version_of(source, text, match[2]), "pypi", text)


def fetch(source: Source, ref: SourceRef, into: Path, cache: Path) -> Tree:
    """Unpacks one source distribution.

    pip asks a distribution for its metadata, which can run its build backend; packages that this
    wants are the only ones that may come as binaries.

    Raises:
        SourceError: No pip, no such distribution, or no such folder in it.
    """
    match = _PACKAGE.fullmatch(ref.ref)
    if match is None:
        raise SourceError(f"{ref.ref!r} does not name a source distribution", "NAME==NUMBER")
    if lacks():
        raise SourceError("pip is not installed", "apt-get install -y python3-pip")
    own = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]

    def download(part: Path) -> None:
        argv = [*own, "--no-deps", f"--no-binary={match[1]}", f"--dest={part}", ref.ref]
        tool_output(argv, DOWNLOAD_S, env={**os.environ, "LC_ALL": "C"}, cwd=part)

    return unpacked(source, ref, cache / "pypi", "*.tar.*", download, into)


def lacks() -> str:
    """What this machine lacks to fetch a distribution."""
    if importlib.util.find_spec("pip") is not None:
        return ""
    return "pip is not installed: nothing can be fetched"
