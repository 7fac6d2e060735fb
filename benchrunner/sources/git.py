"""Versions in a git repository: tags, branches without tags, commits. Builds get a worktree."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.errors import SourceError
from benchrunner.model import SourceRef
from benchrunner.sources.tree import Tree, stated_version, tool_output, tree_version
from benchrunner.versions import Version

if TYPE_CHECKING:
    from benchrunner.definitions import Source

_LIST_S = 15.0
_CLONE_S = 3600.0


def available(engine: str, source: Source) -> list[SourceRef]:
    """Tags that match the source's patterns, newest first.

    Raises:
        SourceError: The repository cannot be reached.
    """
    listing = _git(["ls-remote", "--tags", "--refs", source.url], _LIST_S)
    tags = [line.partition("refs/tags/")[2] for line in listing.splitlines()]
    found = []
    for pattern in source.ref:
        head, _, tail = pattern.partition("{version}")
        shape = re.compile(re.escape(head) + r"(\d+(?:\.\d+)+)" + re.escape(tail))
        found += [
            SourceRef(engine, match[1], "git", tag) for tag in tags if (match := shape.fullmatch(tag))
        ]
    return sorted(found, key=lambda ref: Version.parse(ref.version) or Version(()), reverse=True)


def find(engine: str, source: Source, text: str, cache: Path) -> SourceRef | None:
    """A branch, tag or commit; or a version without a tag, by walking its branch.

    A version without a tag is the first commit on its branch that states the number: release tags
    stand there too, and up to a dozen later commits can state the same number.
    """
    try:
        mirror = _mirror(source, cache)
    except SourceError:
        return None
    sha = _commit(mirror, text)
    if sha is None and Version.parse(text) is not None:
        sha = _tagged(mirror, source, text) or _walked(mirror, source, text)
    if sha is None:
        return None
    return SourceRef(engine, text, "git", sha, note=f"{text} is {sha[:10]}")


def fetch(source: Source, ref: SourceRef, into: Path, cache: Path) -> Tree:
    """A worktree at the commit, so that the build can write the commit into the binary.

    Raises:
        SourceError: The repository or the commit cannot be had.
    """
    mirror = _mirror(source, cache)
    sha = _commit(mirror, ref.ref)
    if sha is None:
        raise SourceError(
            f"{source.url} has no commit, tag or branch {ref.ref!r}",
            f"git ls-remote {source.url}",
        )
    _git(["worktree", "prune"], _LIST_S, mirror)
    _git(["worktree", "add", "--force", "--detach", str(into), sha], _CLONE_S, mirror)
    return Tree(into, tree_version(into, source.version_file, ref.version), sha)


def _mirror(source: Source, cache: Path) -> Path:
    """A bare clone in the cache, made or brought up to date."""
    if not source.url:
        raise SourceError("the git source has no url", 'url = "https://..."')
    name = hashlib.sha256(source.url.encode()).hexdigest()[:12]
    mirror = cache / "git" / f"{Path(source.url).stem}-{name}.git"
    if not mirror.is_dir():
        mirror.parent.mkdir(parents=True, exist_ok=True)
        partial = mirror.with_name(f"{mirror.name}.{os.getpid()}")
        _git(["clone", "--quiet", "--mirror", source.url, str(partial)], _CLONE_S)
        partial.rename(mirror)
    else:
        _git(["fetch", "--quiet", "--prune", "--force"], _CLONE_S, mirror)
    return mirror


def _commit(mirror: Path, text: str) -> str | None:
    try:
        return _git(["rev-parse", "--verify", "--quiet", f"{text}^{{commit}}"], _LIST_S, mirror).strip()
    except SourceError:
        return None


def _tagged(mirror: Path, source: Source, version: str) -> str | None:
    for pattern in source.ref:
        sha = _commit(mirror, "refs/tags/" + pattern.replace("{version}", version))
        if sha is not None:
            return sha
    return None


def _walked(mirror: Path, source: Source, version: str) -> str | None:
    """The first commit of the version's branch that states the version."""
    numbers = version.split(".")
    if not source.branch or len(numbers) < 3:
        return None
    branch = source.branch.replace("{major}", numbers[0]).replace("{minor}", numbers[1])
    if _commit(mirror, branch) is None:
        return None
    log = ["log", "--first-parent", "--format=%H", branch, "--", source.version_file]
    found = None
    for sha in _git(log, _LIST_S * 4, mirror).split():
        text = _git(["show", f"{sha}:{source.version_file}"], _LIST_S, mirror)
        if stated_version(text) == version:
            found = sha
        elif found is not None:
            break
    return found


def _git(arguments: list[str], timeout_s: float, cwd: Path | None = None) -> str:
    env = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    return tool_output(["git", *arguments], timeout_s, cwd=cwd, env=env)
