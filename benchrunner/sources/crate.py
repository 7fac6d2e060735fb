"""Upstream trees packed in Rust crates, fetched by cargo itself into a CARGO_HOME of our own."""

from __future__ import annotations

import json
import os
import re
import shutil
from typing import TYPE_CHECKING

from benchrunner.errors import SourceError
from benchrunner.model import SourceRef
from benchrunner.processes import tool_output
from benchrunner.sources.tree import Tree, tree_version

if TYPE_CHECKING:
    from pathlib import Path

    from benchrunner.definitions import Source

_CRATE = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)@(\d[A-Za-z0-9.+-]*)")
_TIMEOUT_S = 300.0


def available(engine: str, source: Source) -> list[SourceRef]:
    """The versions that the engine's table names; neither cargo nor network is needed to list."""
    return [SourceRef(engine, v, "crate", crate) for v, crate in source.versions.items()]


def find(engine: str, source: Source, text: str, cache: Path) -> SourceRef | None:
    """Any ``crate@number``, also one that is not in the table."""
    del cache
    match = _CRATE.fullmatch(text)
    if match is None:
        return None
    known = {crate: version for version, crate in source.versions.items()}
    _, plus, inside = match[2].partition("+")
    return SourceRef(engine, known.get(text, inside if plus else text), "crate", text)


def fetch(source: Source, ref: SourceRef, into: Path, cache: Path) -> Tree:
    """Unpacks one crate, none of its dependencies, and copies its tree.

    Raises:
        SourceError: No cargo, no such crate, or no such folder in it.
    """
    if _CRATE.fullmatch(ref.ref) is None:
        raise SourceError(f"{ref.ref!r} does not name a crate", "NAME@NUMBER")
    home = (cache / "cargo").absolute()
    home.mkdir(parents=True, exist_ok=True)
    package = unpacked(home, ref.ref)
    if package is None:
        _download(home, ref.ref)
        package = unpacked(home, ref.ref)
    if package is None or not (package / source.path).is_dir():
        raise SourceError(
            f"crate {ref.ref} has no folder {source.path!r}",
            f"benchrunner versions {ref.engine} lists crates that hold its tree",
        )
    shutil.copytree(package / source.path, into, symlinks=True)
    return Tree(into, tree_version(into, source.version_file, ref.version), _commit(package))


def lacks() -> str:
    """What this machine lacks to fetch a crate."""
    return "" if shutil.which("cargo") else "cargo is not installed: nothing can be fetched"


def _download(home: Path, crate: str) -> None:
    """``cargo info`` downloads and unpacks one package and none of its dependencies."""
    env = {**os.environ, "CARGO_HOME": str(home), "CARGO_TERM_COLOR": "never", "LC_ALL": "C"}
    try:
        tool_output(["cargo", "info", crate], _TIMEOUT_S, env=env, cwd=home)
    except SourceError as error:
        if "no such" in error.message and "`info`" in error.message:
            raise SourceError(
                "this cargo is too old to fetch one crate (it has no `cargo info`)",
                "install cargo 1.82 or newer, with rustup for example",
            ) from None
        raise


def unpacked(home: Path, crate: str) -> Path | None:
    """Where cargo unpacked a crate, if it has done so completely."""
    name, _, number = crate.partition("@")
    found = sorted((home / "registry" / "src").glob(f"*/{name}-{number}"))
    return next((path for path in found if (path / ".cargo-ok").is_file()), None)


def _commit(package: Path) -> str | None:
    """The commit that the crate was packed from: of the crate's repository, so marked as such."""
    info = package / ".cargo_vcs_info.json"
    if not info.is_file():
        return None
    sha = json.loads(info.read_text()).get("git", {}).get("sha1")
    return f"crate:{sha}" if sha else None
