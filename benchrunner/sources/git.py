"""Versions in a git repository: tags, branches without tags, commits.

Asking what there is takes one ``ls-remote``; the repository is cloned (bare, into the cache) only
when a commit must be looked up or built. A build gets a clone of its own that borrows the objects,
so removing its folder leaves nothing behind.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.errors import SourceError
from benchrunner.model import SourceRef
from benchrunner.processes import exclusive, tool_output
from benchrunner.sources.tree import Tree, stated_version, tree_version
from benchrunner.versions import Version, looks_like_commit

if TYPE_CHECKING:
    from benchrunner.definitions import Source

REACH_S = 5.0
"""How long a repository may take to say what it has: an offline machine must not wait longer."""
_LOCAL_S = 120.0
_CLONE_S = 3600.0
_NOTED = re.compile(r"commit ([0-9a-f]{10,40})")


def available(engine: str, source: Source) -> list[SourceRef]:
    """Tags that match the source's patterns, newest first.

    Raises:
        SourceError: The repository cannot be reached.
    """
    found = [
        SourceRef(engine, version, "git", name.removeprefix("refs/tags/"), _note(sha))
        for name, sha in _remote_refs(source).items()
        if (version := _tag_version(source, name)) is not None
    ]
    return sorted(found, key=lambda ref: Version.parse(ref.version) or Version(()), reverse=True)


def find(engine: str, source: Source, text: str, cache: Path) -> SourceRef | None:
    """A tag, branch or commit; or a version without a tag, by walking its branch.

    A version without a tag is the first commit on its branch that states the number: release tags
    stand there too, and up to a dozen later commits can state the same number.

    Raises:
        SourceError: The repository cannot be asked.
    """
    if not source.url or text.startswith("-"):
        return None
    if looks_like_commit(text):
        return _found_commit(engine, source, text, cache)
    refs = _remote_refs(source)
    tag, branch = refs.get(f"refs/tags/{text}"), refs.get(f"refs/heads/{text}")
    if tag is not None:
        version = _tag_version(source, f"refs/tags/{text}") or text
        return SourceRef(engine, version, "git", text, _note(tag))
    if branch is not None:
        return SourceRef(engine, text, "git", branch, _note(branch))
    version_branch = _version_branch(source, text)
    if f"refs/heads/{version_branch}" not in refs:
        return None
    sha = _walked(_updated(source, cache), version_branch, source.version_file, text)
    return SourceRef(engine, text, "git", sha, _note(sha)) if sha else None


def commit_of(ref: SourceRef) -> str:
    """The commit that a reference stood for when it was resolved, or its name if none is noted."""
    noted = _NOTED.fullmatch(ref.note)
    return ref.ref if noted is None or looks_like_commit(ref.ref) else noted[1]


def fetch(source: Source, ref: SourceRef, into: Path, cache: Path) -> Tree:
    """A clone at the commit, so that the build can write the commit into the binary.

    Raises:
        SourceError: The repository or the commit cannot be had.
    """
    wanted, mirror = commit_of(ref), mirror_of(source, cache)
    sha = _commit(mirror, wanted) or _commit(_updated(source, cache), wanted)
    if sha is None:
        raise SourceError(
            f"{source.url} has no commit {wanted!r} (any more)", f"git ls-remote {source.url}"
        )
    _git(["clone", "--quiet", "--shared", "--no-checkout", "--", str(mirror), str(into)], _LOCAL_S)
    _git(["-c", "advice.detachedHead=false", "checkout", "--quiet", sha], _LOCAL_S, into)
    return Tree(into, tree_version(into, source.version_file, ref.version), sha)


def lacks() -> str:
    """Nothing that listing would not have found out: a machine without git cannot list either."""
    return ""


def _note(sha: str) -> str:
    return f"commit {sha[:10]}"


def _tag_version(source: Source, name: str) -> str | None:
    """The version in the name of a tag that fits one of the source's patterns."""
    for pattern in source.ref:
        head, _, tail = pattern.partition("{version}")
        shape = rf"refs/tags/{re.escape(head)}(\d+(?:\.\d+)+){re.escape(tail)}"
        match = re.fullmatch(shape, name)
        if match is not None:
            return match[1]
    return None


def _remote_refs(source: Source) -> dict[str, str]:
    """Branches and tags of the repository with their commits, without fetching anything."""
    listing = _git(["ls-remote", "--tags", "--heads", "--", source.url], REACH_S)
    pairs = (line.split("\t") for line in listing.splitlines())
    refs: dict[str, str] = {}
    for sha, name in pairs:
        refs[name.removesuffix("^{}")] = sha  # the commit of an annotated tag follows the tag
    return refs


def mirror_of(source: Source, cache: Path) -> Path:
    """Where the cache keeps its bare clone of the source."""
    name = hashlib.sha256(source.url.encode()).hexdigest()[:12]
    return (cache / "git" / f"{Path(source.url).stem}-{name}.git").absolute()


def _updated(source: Source, cache: Path) -> Path:
    """The bare clone with all branches and tags as they are now."""
    mirror = mirror_of(source, cache)
    with exclusive(mirror.with_suffix(".lock")):
        if not mirror.is_dir():
            partial = mirror.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            _git(["clone", "--quiet", "--bare", "--", source.url, str(partial)], _CLONE_S)
            partial.rename(mirror)
        heads = "+refs/heads/*:refs/heads/*"
        fetch_all = ["fetch", "--quiet", "--prune", "--force", "--tags", "--", source.url, heads]
        _git(fetch_all, _CLONE_S, mirror)
    return mirror


def _found_commit(engine: str, source: Source, text: str, cache: Path) -> SourceRef | None:
    """A commit by (the beginning of) its hash; one that the cache has needs no network."""
    sha = _commit(mirror_of(source, cache), text)
    if sha is None:
        _remote_refs(source)  # says within seconds that the repository is out of reach
        sha = _commit(_updated(source, cache), text)
    return SourceRef(engine, text, "git", sha, _note(sha)) if sha else None


def _commit(mirror: Path, name: str) -> str | None:
    if not mirror.is_dir():
        return None
    ask = ["rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
    try:
        return _git(ask, _LOCAL_S, mirror).strip()
    except SourceError:
        return None  # the only complaint that --quiet leaves is that there is no such commit


def _version_branch(source: Source, version: str) -> str | None:
    numbers = version.removeprefix("v").split(".")
    if not source.branch or not source.version_file or len(numbers) < 3:
        return None
    return source.branch.replace("{major}", numbers[0]).replace("{minor}", numbers[1])


def _walked(mirror: Path, branch: str | None, version_file: str, version: str) -> str | None:
    """The first commit of a branch that states the version; looks from the newest backwards."""
    wanted = Version.parse(version)
    log = ["log", "--first-parent", "--format=%H", f"refs/heads/{branch}", "--", version_file]
    found = None
    for sha in _git(log, _LOCAL_S, mirror).split():
        text = stated_version(_git(["show", f"{sha}:{version_file}"], _LOCAL_S, mirror))
        stated = Version.parse(text or "")
        if stated is not None and stated == wanted:
            found = sha
        elif found is not None or (stated is not None and wanted is not None and stated < wanted):
            break
    return found


def _git(arguments: list[str], timeout_s: float, cwd: Path | None = None) -> str:
    """Runs git without ever asking a person for a password."""
    env = {
        **os.environ,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_SSH_COMMAND": os.environ.get("GIT_SSH_COMMAND", "ssh -o BatchMode=yes"),
        "LC_ALL": "C",
    }
    return tool_output(["git", *arguments], timeout_s, cwd=cwd, env=env)
