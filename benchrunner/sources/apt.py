"""Debian source packages, with Debian's patches applied, from the machine's own mirror.

apt is given a list of sources and folders of our own: the machine's configuration is read, never
changed. The mirror's signature is checked by apt, the files by dpkg-source.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.errors import SourceError
from benchrunner.model import SourceRef
from benchrunner.processes import exclusive, tool_output
from benchrunner.sources.packages import (
    DOWNLOAD_S,
    downloaded,
    inside,
    listed,
    only_file,
    version_of,
)
from benchrunner.sources.tree import Tree, tree_version

if TYPE_CHECKING:
    from benchrunner.definitions import Source

_PACKAGE = re.compile(r"([a-z0-9][a-z0-9.+-]+)=([A-Za-z0-9.+~:-]*\d[A-Za-z0-9.+~:-]*)")
_SUITE = re.compile(r"[a-z][a-z0-9-]*")
_POCKETS = ("", "-updates", "-security")
_SHORT_S = 120.0
_MIRROR = re.compile(r"^'(\S+/)dists/([^/']+)/InRelease'", re.MULTILINE)
"""How ``apt-get update --print-uris`` names the index of a configured suite."""


def available(engine: str, source: Source) -> list[SourceRef]:
    """The versions that the engine's table names; the mirror is not asked."""
    return listed(engine, source, "apt")


def find(engine: str, source: Source, text: str, cache: Path) -> SourceRef | None:
    """Any ``name=number``, also one that is not in the table."""
    del cache
    match = _PACKAGE.fullmatch(text)
    if match is None:
        return None
    return SourceRef(engine, version_of(source, text, upstream(match[2])), "apt", text)


def fetch(source: Source, ref: SourceRef, into: Path, cache: Path) -> Tree:
    """The tree of a source package with its patches.

    Raises:
        SourceError: No apt or dpkg-source, no such package in the suite, no such folder in it.
    """
    if _PACKAGE.fullmatch(ref.ref) is None:
        raise SourceError(f"{ref.ref!r} does not name a Debian source package", "NAME=NUMBER")
    suite = source.suite or _codename()
    if _SUITE.fullmatch(suite) is None:
        raise SourceError(f"{suite!r} does not name a Debian suite", "bookworm, for example")
    folder = (cache / "apt").absolute()

    def download(part: Path) -> None:
        with exclusive(folder / f"{suite}.lock"):
            _download(_Client(folder / suite, suite), ref.ref, part)
        for link in [path for path in part.iterdir() if path.is_symlink()]:
            mounted = link.resolve()  # of a mirror in a folder apt makes links only
            link.unlink()
            shutil.copyfile(mounted, link)

    package = downloaded(folder, ref.ref, download)
    description = only_file(package, "*.dsc", ref.ref)
    argv = ["dpkg-source", "--no-copy", "--extract", str(description), str(into)]
    tool_output(argv, _SHORT_S * 5, env={**os.environ, "LC_ALL": "C"}, cwd=package)
    tree = inside(into, source, ref.ref)
    return Tree(tree, tree_version(tree, source.version_file, ref.version))


def lacks() -> str:
    """What this machine lacks to fetch a source package."""
    for program, package in (("apt-get", "apt"), ("dpkg-source", "dpkg-dev")):
        if shutil.which(program) is None:
            return f"{program} is not installed (Debian: {package}): nothing can be fetched"
    return ""


def upstream(number: str) -> str:
    """The upstream part of a Debian version.

    >>> upstream("1:5.3.28+dfsg2-1"), upstream("0.9.24-1"), upstream("3.40.1-2+deb12u2")
    ('5.3.28', '0.9.24', '3.40.1')
    """
    text = number.partition(":")[2] or number
    text = text.rpartition("-")[0] or text
    return re.split(r"[+~]", text, maxsplit=1)[0]


class _Client:
    """apt with folders of its own."""

    def __init__(self, folder: Path, suite: str) -> None:
        self.suite = suite
        self._folder = folder
        self._options = [
            f"Dir::Etc::sourcelist={folder}/sources.list",
            "Dir::Etc::sourceparts=/dev/null",
            f"Dir::State::lists={folder}/lists",
            f"Dir::Cache={folder}/cache",
            "Acquire::Languages=none",
            # What is asked for has a number and a signature: an old suite is as good as a new one.
            "Acquire::Check-Valid-Until=false",
            "Acquire::Retries=2",
        ]
        if os.geteuid() == 0:
            self._options.append("APT::Sandbox::User=root")

    def run(self, *words: str, cwd: Path | None = None) -> str:
        """Runs apt-get."""
        options = [word for option in self._options for word in ("-o", option)]
        env = {**os.environ, "LC_ALL": "C"}
        return tool_output(["apt-get", *words, *options], DOWNLOAD_S, env=env, cwd=cwd)

    def update(self) -> None:
        """Asks the mirror what it has."""
        for name in ("lists/partial", "cache/archives/partial"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        lines = _source_lines(self.suite, self._folder)
        (self._folder / "sources.list").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.run("update", "--quiet")


def _download(client: _Client, package: str, into: Path) -> None:
    words = ("source", "--quiet", "--download-only", package)
    try:
        client.run(*words, cwd=into)
    except SourceError:
        complaint = _updated(client)
        try:
            client.run(*words, cwd=into)
        except SourceError as error:
            raise SourceError(
                f"{package} is not to be had from {client.suite} of this machine's mirror: "
                f"{complaint or error.message}",
                "see the mirrors of /etc/apt, or name another version or suite in the engine's "
                "source",
            ) from error


def _updated(client: _Client) -> str:
    """Why the mirror could not be asked about everything; a pocket less need not matter."""
    try:
        client.update()
    except SourceError as error:
        return error.message
    return ""


def _source_lines(suite: str, folder: Path) -> list[str]:
    """Lines for the source packages of a suite, on the mirrors that this machine uses.

    Raises:
        SourceError: It uses none.
    """
    own = _codename()
    env = {**os.environ, "LC_ALL": "C"}
    asked = ["apt-get", "update", "--print-uris", "-o", f"Dir::State::lists={folder}/lists"]
    keyring = _keyring()
    lines = []
    for uri, release in _MIRROR.findall(tool_output(asked, _SHORT_S, env=env)):
        pocket = release.removeprefix(own)
        if release.startswith(own) and pocket in _POCKETS:
            lines.append(f"deb-src {keyring}{uri} {suite}{pocket} main")
    if not lines:
        raise SourceError(f"apt knows no mirror of {own} here", "see /etc/apt/sources.list")
    return lines


def _keyring() -> str:
    """The option that names the distribution's keys; empty where apt trusts them by itself."""
    path = Path("/usr/share/keyrings") / f"{_system().get('ID', '')}-archive-keyring.gpg"
    return f"[signed-by={path}] " if path.is_file() else ""


def _codename() -> str:
    """The suite that this machine is installed from.

    Raises:
        SourceError: It does not say.
    """
    name = _system().get("VERSION_CODENAME", "")
    if not name:
        raise SourceError(
            "this machine is no Debian system: it has no source packages of its own",
            "choose another source with --source",
        )
    return name


def _system() -> dict[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}
