"""A source tree on this machine, used as it is now: copied, never built in place."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.errors import SourceError
from benchrunner.model import SourceRef
from benchrunner.processes import tool_output
from benchrunner.sources.tree import Tree, tree_version

if TYPE_CHECKING:
    from benchrunner.definitions import Source

_OBJECTS = (".o", ".a", ".d")
LEFT_OUT = shutil.ignore_patterns(*(f"*{suffix}" for suffix in _OBJECTS), ".git")


def available(engine: str, source: Source) -> list[SourceRef]:
    """The tree that the source names.

    Raises:
        SourceError: It names one, and that is not there.
    """
    if not source.path:
        return []
    found = find(engine, source, str(Path(source.path).expanduser().absolute()), Path())
    if found is None:
        raise SourceError(f"there is no folder {source.path}", "correct the engine's path")
    return [found]


def find(engine: str, source: Source, text: str, cache: Path) -> SourceRef | None:
    """A folder, when the text is the path of one: it has a slash in it."""
    del cache
    tree = Path(text).expanduser().absolute()
    if "/" not in text or not tree.is_dir():
        return None
    version = tree_version(tree, source.version_file, tree.name)
    return SourceRef(engine, version, "path", str(tree), note=content_note(tree))


def fetch(source: Source, ref: SourceRef, into: Path, cache: Path) -> Tree:
    """A copy without objects of earlier builds.

    Raises:
        SourceError: The tree is gone, or is not what it was when it was selected.
    """
    del cache
    tree = Path(ref.ref)
    if not tree.is_dir():
        raise SourceError(f"the source tree {tree} is not there any more", "name another path")
    shutil.copytree(tree, into, symlinks=True, ignore=LEFT_OUT)
    if ref.note not in ("", content_note(into)):
        raise SourceError(
            f"the source tree {tree} has changed since it was selected", "start a new sweep"
        )
    return Tree(into, tree_version(into, source.version_file, ref.version), _git_state(tree))


def lacks() -> str:
    """Nothing is needed to copy a folder."""
    return ""


def content_note(tree: Path) -> str:
    """What tells one state of a tree from another; part of the cache key."""
    return f"content {content_hash(tree)[:12]}"


def content_hash(tree: Path) -> str:
    """SHA-256 over names and contents of a tree's files; objects and ``.git`` left out."""
    digest = hashlib.sha256()
    for path in sorted(tree.rglob("*")):
        relative = path.relative_to(tree)
        if ".git" in relative.parts or path.suffix in _OBJECTS:
            continue
        if path.is_symlink():
            digest.update(f"link {path.readlink()} {relative}\n".encode())
        elif path.is_file():
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            digest.update(f"{content} {relative}\n".encode())
    return digest.hexdigest()


def _git_state(tree: Path) -> str | None:
    """Commit of a repository, ``-dirty`` when files differ from it; ``None`` outside git."""
    if not (tree / ".git").exists():
        return None
    try:
        sha = tool_output(["git", "rev-parse", "HEAD"], 15, cwd=tree).strip()
        dirty = tool_output(["git", "status", "--porcelain"], 60, cwd=tree).strip()
    except SourceError:
        return None
    return sha + ("-dirty" if dirty else "")
