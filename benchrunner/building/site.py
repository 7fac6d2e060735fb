"""A host as a place to build: how it is reached, where its cache is, what it compiles with.

What is asked of a host here is asked once: one sweep has one toolchain on each host.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from benchrunner.binaries import PROBE_S
from benchrunner.errors import BuildError
from benchrunner.toolchain import Toolchain, find_toolchain
from benchrunner.transports.local import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from benchrunner import definitions
    from benchrunner.launchers import Launcher
    from benchrunner.model import Artifact
    from benchrunner.transports import Transport

SHORT_S = 60.0
LONG_S = 900.0
"""For what goes through a whole source or binary."""
_NOT_RUN = (126, 127)
_TIME_UP = 124


_WHICH = r"""
case $1 in /*) test -f "$1" && test -x "$1" && printf '%s' "$1"; exit ;; esac
IFS=:
for folder in $PATH; do
  path=${folder:-.}/$1
  if [ -f "$path" ] && [ -x "$path" ]; then printf '%s' "$path"; exit 0; fi
done
exit 1
"""


@dataclass(frozen=True, eq=False)
class BuildSite:
    """One host for the builds of a sweep."""

    name: str
    """As in ``hosts/NAME.toml``."""
    transport: Transport
    cache: str
    """Folder on the host, absolute."""
    launcher: Launcher | None = None
    """Starts compilers on a remote host, so that they outlive the connection. ``None``: this
    machine, where they are our own children and end with us."""
    jobs: int | None = None
    """Compilers at once; ``None``: one for each processor."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment that the host gives."""
    build: Literal["host", "controller"] = "host"

    @property
    def is_here(self) -> bool:
        """Whether the host is this machine."""
        return self.launcher is None

    @property
    def on_host(self) -> str:
        """`` on NAME`` in a sentence, empty for this machine."""
        return "" if self.is_here else f" on {self.name}"

    @cached_property
    def toolchain(self) -> Toolchain:
        """The host's compiler.

        Raises:
            NoCompilerError: It has none.
        """
        return find_toolchain(self.transport, self.env)

    @cached_property
    def processors(self) -> int:
        """How many compilers the host can run at once."""
        if self.is_here:
            return os.cpu_count() or 1
        text = self.transport.run(["env", "nproc"], timeout_s=SHORT_S).stdout.strip()
        return int(text) if text.isdigit() else 1

    def ask(self, argv: Sequence[str]) -> tuple[str, str] | None:
        """What a short command prints there; ``None`` when it does not start or does not end.

        A limit on the host itself tells that from a lost connection, which is an error.
        """
        limited = ["timeout", "-k", "5", str(PROBE_S), *argv]
        done = self.transport.run(limited, timeout_s=PROBE_S + SHORT_S, env=self.env)
        if done.exit_code in (*_NOT_RUN, _TIME_UP):
            return None
        return done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")

    def which(self, program: str) -> str | None:
        """Absolute path of a program on the host's ``PATH``; what a shell has built in is none."""
        argv = ["sh", "-c", _WHICH, "sh", program]
        done = self.transport.run(argv, timeout_s=SHORT_S, env=self.env)
        path = os.fsdecode(done.stdout).strip()
        return path if done.exit_code == 0 and path.startswith("/") else None

    def script(self, text: str, *arguments: str, given: bytes | None = None) -> str:
        """Runs a script of ours on the host; returns what it prints.

        Raises:
            BuildError: It fails: a full disk, a folder that may not be written.
        """
        argv = ["sh", "-c", text, "sh", *arguments]
        done = self.transport.run(argv, timeout_s=LONG_S, input=given)
        if done.exit_code != 0:
            why = done.stderr.decode(errors="replace").strip() or f"status {done.exit_code}"
            raise BuildError(
                f"{arguments[0]} cannot be used{self.on_host}: {why.splitlines()[-1]}",
                "look at the space and the permissions there",
            )
        return os.fsdecode(done.stdout)

    def hashes(self, paths: Iterable[str]) -> dict[str, str]:
        """SHA-256 of files on the host; those that are not there are left out."""
        wanted = list(paths)
        if not wanted:
            return {}
        done = self.transport.run(["sha256sum", "--", *wanted], timeout_s=LONG_S)
        lines = (line.partition("  ") for line in os.fsdecode(done.stdout).splitlines())
        return {path: digest for digest, sign, path in lines if sign}

    def named(self, artifact: Artifact) -> Artifact:
        """The artifact under an id of its own for each remote host, and with the host's name.

        The same key means the same recipe, source and toolchain, not the same bytes and places.
        """
        if self.is_here:
            return artifact
        identity = hashlib.sha256(f"{self.name} {artifact.id}".encode()).hexdigest()[:16]
        flags = {**artifact.build_flags, "host": self.name}
        return replace(artifact, id=identity, build_flags=flags)


def this_machine(cache: Path, jobs: int | None = None) -> BuildSite:
    """The machine that benchrunner runs on, as a place to build."""
    return BuildSite("local", LocalTransport(), str(cache.absolute()), jobs=jobs)


def site_of(
    host: definitions.Host, transport: Transport, launcher: Launcher, cache: str
) -> BuildSite:
    """A host of the inventory as a place to build; ``cache`` is an absolute folder there."""
    if not host.address:
        return BuildSite(host.name, transport, cache, jobs=host.limits.jobs)
    return BuildSite(
        host.name, transport, cache, launcher, host.limits.jobs, dict(host.env), host.build
    )
