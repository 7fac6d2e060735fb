"""Upstream trees packed in Rust crates, fetched by cargo itself into a CARGO_HOME of our own."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.errors import SourceError
from benchrunner.model import SourceRef
from benchrunner.sources.tree import Tree, tool_output, tree_version

if TYPE_CHECKING:
    from benchrunner.definitions import Source

_TIMEOUT_S = 300.0


def available(engine: str, source: Source) -> list[SourceRef]:
    """The versions that the engine's table names; no network is needed to list them."""
    return [SourceRef(engine, v, "crate", crate) for v, crate in source.versions.items()]


def find(engine: str, source: Source, text: str, cache: Path) -> SourceRef | None:
    """Any ``crate@number``, also one that is not in the table."""
    del cache
    if "@" not in text or "/" in text:
        return None
    known = {crate: version for version, crate in source.versions.items()}
    return SourceRef(engine, known.get(text, text), "crate", text)


def fetch(source: Source, ref: SourceRef, into: Path, cache: Path) -> Tree:
    """Unpacks one crate, none of its dependencies, and copies its tree.

    Raises:
        SourceError: No cargo, no such crate, or no such folder in it.
    """
    home = cache / "cargo"
    home.mkdir(parents=True, exist_ok=True)
    package = unpacked(home, ref.ref)
    if package is None:
        env = {**os.environ, "CARGO_HOME": str(home), "CARGO_TERM_COLOR": "never"}
        tool_output(["cargo", "info", ref.ref], _TIMEOUT_S, env=env, cwd=home)
        package = unpacked(home, ref.ref)
    if package is None or not (package / source.path).is_dir():
        raise SourceError(
            f"crate {ref.ref} has no folder {source.path!r}",
            f"benchrunner versions {ref.engine} lists crates that hold its tree",
        )
    shutil.copytree(package / source.path, into, symlinks=True)
    return Tree(into, tree_version(into, source.version_file, ref.version), _commit(package))


def unpacked(home: Path, crate: str) -> Path | None:
    """Where cargo unpacked a crate, if it has."""
    name, _, number = crate.partition("@")
    found = sorted((home / "registry" / "src").glob(f"*/{name}-{number}"))
    return found[0] if found and (found[0] / "Cargo.toml").is_file() else None


def _commit(package: Path) -> str | None:
    """The commit that the crate was packed from: of the crate's repository, so marked as such."""
    info = package / ".cargo_vcs_info.json"
    if not info.is_file():
        return None
    sha = json.loads(info.read_text()).get("git", {}).get("sha1")
    return f"crate:{sha}" if sha else None
