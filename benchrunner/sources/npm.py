"""Upstream trees packed in npm packages, fetched by ``npm pack``: nothing is installed or run."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING

from benchrunner.errors import SourceError
from benchrunner.model import SourceRef
from benchrunner.processes import tool_output
from benchrunner.sources.packages import DOWNLOAD_S, listed, unpacked, version_of

if TYPE_CHECKING:
    from pathlib import Path

    from benchrunner.definitions import Source
    from benchrunner.sources.tree import Tree

_PACKAGE = re.compile(r"((?:@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*)@(\d[A-Za-z0-9.+-]*)")


def available(engine: str, source: Source) -> list[SourceRef]:
    """The versions that the engine's table names; neither npm nor network is needed to list."""
    return listed(engine, source, "npm")


def find(engine: str, source: Source, text: str, cache: Path) -> SourceRef | None:
    """A ``name@number`` of the table; another one only where no crate can be meant."""
    del cache
    match = _PACKAGE.fullmatch(text)
    if match is None:
        return None
    return SourceRef(engine, version_of(source, text, text), "npm", text)


def fetch(source: Source, ref: SourceRef, into: Path, cache: Path) -> Tree:
    """Unpacks one package, none of its dependencies.

    Raises:
        SourceError: No npm, no such package, or no such folder in it.
    """
    if _PACKAGE.fullmatch(ref.ref) is None:
        raise SourceError(f"{ref.ref!r} does not name an npm package", "NAME@NUMBER")
    folder = (cache / "npm").absolute()

    def download(part: Path) -> None:
        env = {
            **os.environ, "LC_ALL": "C", "npm_config_cache": str(folder / "client"),
            "npm_config_update_notifier": "false", "npm_config_logs_max": "0",
            "npm_config_color": "false",
        }  # fmt: skip
        argv = ["npm", "pack", ref.ref, "--ignore-scripts", f"--pack-destination={part}"]
        tool_output(argv, DOWNLOAD_S, env=env, cwd=part)

    return unpacked(source, ref, folder, "*.tgz", download, into)


def lacks() -> str:
    """What this machine lacks to fetch a package."""
    return "" if shutil.which("npm") else "npm is not installed: nothing can be fetched"
