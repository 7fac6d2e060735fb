"""One build to be done, what does it, and what it hands over: the words of this package."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from threading import get_ident
from typing import TYPE_CHECKING, Protocol

from benchrunner.building.natives import driver_commands, driver_program
from benchrunner.building.site import BuildSite, this_machine
from benchrunner.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from benchrunner.definitions import Engine
    from benchrunner.model import SourceRef

RECORD = "artifact.json"
LOG = "build.log"
LOG_TAIL_LINES = 15
_ERROR = re.compile(
    r"(?i)(?:^|[\s:])(?:fatal )?error(?::| at | in )|undefined reference to|\*\*\* .*No rule"
)


class RefusedError(BuildError):
    """The build worked and its result must not be measured."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where and how builds happen."""

    cache: Path
    """Here: what is fetched, and what comes back from other hosts."""
    jobs: int | None
    """Compilers at once; ``None``: as many as the site says."""
    on_progress: Callable[[int, int | None], None] = lambda _done, _total: None
    """Files done, and how many there are when that is known."""
    on_note: Callable[[str], None] = lambda _text: None
    """What a person should know and need not act on."""
    limit_s: float = 4 * 3600.0
    """Longest that one command of a recipe may take."""
    nice: int = 0
    site: BuildSite | None = None
    """The host; ``None``: this machine."""
    driver: str = ""
    """The driver that is compiled against the build as well; empty: none that can be left out."""

    def here(self) -> BuildSite:
        """The host when it is this machine, else this machine."""
        if self.site is not None and self.site.is_here:
            return self.site
        return this_machine(self.cache)


@dataclass(frozen=True, slots=True)
class Order:
    """One build to be done, and where."""

    engine: Engine
    ref: SourceRef
    workshop: Workshop
    site: BuildSite
    key: str

    @property
    def folder(self) -> str:
        """Where the artifact is in the host's cache."""
        return f"{self.site.cache}/artifacts/{self.key}"

    @property
    def work(self) -> Path:
        """Folder here for the source, and for the build when it happens here."""
        return self.workshop.cache.absolute() / "builds" / f"{self.key}-{os.getpid()}"

    @property
    def log(self) -> Path:
        """The log here, while it is not yet part of an artifact."""
        builds = self.workshop.cache.absolute() / "builds"
        if self.site.is_here:
            return builds / f"{self.key}.log"
        mine = f"{self.site.name}-{os.getpid()}-{get_ident()}"  # nothing here keeps others away
        return builds / f"{self.key}-{mine}.log"

    @property
    def what(self) -> str:
        """How messages call it."""
        return f"{self.engine.name} {self.ref.version}"

    @property
    def commands(self) -> list[list[str]]:
        """The recipe's commands as they are run."""
        jobs = self.workshop.jobs or self.site.jobs or self.site.processors
        return [
            [word.replace("{jobs}", str(jobs)) for word in command]
            for command in [*self.engine.build.commands, *driver_commands(self.engine)]
        ]

    @property
    def keep(self) -> list[str]:
        """Files kept from the tree, the driver first."""
        return [*driver_program(self.engine), *self.engine.build.keep]

    @property
    def nice(self) -> list[str]:
        """Prefix of every command."""
        return ["nice", "-n", str(self.workshop.nice)] if self.workshop.nice else []


@dataclass(frozen=True, slots=True)
class Made:
    """What a recipe left on the host, before anybody has looked at it."""

    folder: str
    """Holds the files that the recipe keeps, under their names in the tree."""
    log: str
    """The whole log, on the host; ``Order.log`` has it here."""
    version: str
    commit: str | None
    seconds: float


class Place(Protocol):
    """A way to run recipes on one host."""

    def alone(self) -> AbstractContextManager[None]:
        """Keeps others from the same build where the run itself does not."""
        ...

    def make(self) -> Made | None:
        """Fetches the source and runs the recipe, or waits for a run of it that goes on already.

        ``None``: somebody else was faster or stopped it; look at the cache again.

        Raises:
            BuildError: A command failed; ``Order.log`` has what it printed.
            SourceError: The source cannot be had.
        """
        ...

    def discard(self) -> None:
        """Removes what a build that has ended left outside the cache."""
        ...


def first_error(log: Path) -> str:
    """The first line of a build's log that a compiler, a linker or make complains with."""
    if not log.is_file():
        return ""
    with log.open(errors="replace") as lines:
        return next((f": {line.strip()[:300]}" for line in lines if _ERROR.search(line)), "")


def log_tail(log: Path) -> str:
    """The last lines of a build."""
    if not log.is_file():
        return ""
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])
