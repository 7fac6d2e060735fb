"""A source tree on this machine, used as it is now: copied, never built in place."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchrunner.errors import SourceError
from benchrunner.model import SourceRef
from benchrunner.sources.tree import Tree, tool_output, tree_version

if TYPE_CHECKING:
    from benchrunner.definitions import Engine, Source

LEFT_OUT = shutil.ignore_patterns("*.o", "*.a", "*.d", ".git")


def available(engine: str, source: Source) -> list[SourceRef]:
    """The tree that the source names, if it names one."""
    found = find_local(engine, source.path, source.version_file) if source.path else None
    return [found] if found else []


def find(engine: str, source: Source, text: str, cache: Path) -> SourceRef | None:
    """Any tree by its path."""
    del cache
    return find_local(engine, text, source.version_file)


def find_local(engine: str, text: str, version_file: str = "") -> SourceRef | None:
    """A folder, when the text is the path of one."""
    if "/" not in text:
        return None
    tree = Path(text).expanduser().absolute()
    if not tree.is_dir():
        return None
    header = version_file or "include/rocksdb/version.h"
    version = tree_version(tree, header, tree.name)
    return SourceRef(engine, version, "path", str(tree), note=f"content {content_hash(tree)[:12]}")


def any_tree(kind: str, engine: Engine) -> Source:
    """A definition for a tree or tarball that the engine's file does not mention."""
    from benchrunner.definitions import Source

    version_file = next((s.version_file for s in engine.source if s.version_file), "")
    fields: dict[str, Any] = {"kind": kind, "version_file": version_file}
    return Source(**fields)


def fetch(source: Source, ref: SourceRef, into: Path, cache: Path) -> Tree:
    """A copy without objects of earlier builds.

    Raises:
        SourceError: The tree is gone.
    """
    del cache
    tree = Path(ref.ref)
    if not tree.is_dir():
        raise SourceError(f"the source tree {tree} is not there any more", "name another path")
    shutil.copytree(tree, into, symlinks=True, ignore=LEFT_OUT)
    return Tree(into, tree_version(into, source.version_file, ref.version), _git_state(tree))


def content_hash(tree: Path) -> str:
    """SHA-256 over names and contents of a tree's files; objects and ``.git`` left out."""
    digest = hashlib.sha256()
    for path in sorted(tree.rglob("*")):
        relative = path.relative_to(tree)
        skipped = ".git" in relative.parts or path.suffix in (".o", ".a", ".d")
        if skipped or not path.is_file() or path.is_symlink():
            continue
        with path.open("rb") as file:
            digest.update(f"{hashlib.file_digest(file, 'sha256').hexdigest()} {relative}\n".encode())
    return digest.hexdigest()


def _git_state(tree: Path) -> str | None:
    """Commit of a repository, ``-dirty`` when files differ from it."""
    if not (tree / ".git").exists():
        return None
    try:
        sha = tool_output(["git", "rev-parse", "HEAD"], 15, cwd=tree).strip()
        dirty = tool_output(["git", "status", "--porcelain"], 60, cwd=tree).strip()
    except SourceError:
        return None
    return sha + ("-dirty" if dirty else "")
