"""What a recipe means for one version under one compiler: key, environment, progress. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from benchrunner.sources import identity
from benchrunner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchrunner.definitions import Engine
    from benchrunner.model import SourceRef
    from benchrunner.toolchain import Toolchain

STD_INCLUDE_FROM = 13
"""From this gcc on <cstdint> must be included by who uses it; RocksDB before 10.4 does not."""


def cache_key(engine: Engine, ref: SourceRef, toolchain: Toolchain) -> str:
    """Hash of all that makes the binary what it is."""
    content = {
        "engine": engine.name,
        "source": identity(engine, ref),
        "recipe": engine.build.model_dump(exclude={"needs", "count", "portable_env"}),
        "toolchain": [toolchain.identity, toolchain.cc, toolchain.cxx, dict(toolchain.shaping)],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def portable(engine: Engine) -> Engine:
    """The engine with the environment that makes its binaries run on other processors."""
    env = {**engine.build.env, **engine.build.portable_env}
    return engine.model_copy(update={"build": engine.build.model_copy(update={"env": env})})


def recipe_env(engine: Engine, version: str, toolchain: Toolchain) -> dict[str, str]:
    """The recipe's environment, with what an old tree needs under a new compiler."""
    env = dict(engine.build.env)
    number = Version.parse(version)
    is_old = number is not None and number < Version((10, 4))
    if engine.name == "rocksdb" and toolchain.major >= STD_INCLUDE_FROM and is_old:
        env["EXTRA_CXXFLAGS"] = f"{env.get('EXTRA_CXXFLAGS', '')} -include cstdint".strip()
    return env


def dry_commands(commands: Sequence[Sequence[str]]) -> list[list[str]]:
    """Commands that print what make is going to do, and do nothing."""
    return [[*argv, "-n"] for argv in commands if PurePosixPath(argv[0]).name == "make"]


def config_entries(text: str) -> dict[str, str]:
    """``NAME=value`` lines that shape a binary."""
    wanted = ("PLATFORM_CXXFLAGS", "PLATFORM_LDFLAGS", "CXX", "PLATFORM", "OPT")
    entries = (line.partition("=") for line in text.splitlines())
    return {name: value.strip() for name, sign, value in entries if sign and name in wanted}


class Progress:
    """Counts the lines of a log that finish one file, and tells."""

    def __init__(self, pattern: str, tell: Callable[[int, int | None], None]) -> None:
        self._pattern = re.compile(pattern) if pattern else None
        self._tell = tell
        self._done = 0
        self._total: int | None = None

    @property
    def is_counting(self) -> bool:
        """Whether the recipe says how to count."""
        return self._pattern is not None

    def expect(self, dry_run: str) -> None:
        """Takes the total from what make says that it will print, if it says so."""
        lines = (re.sub("^@?echo [\"']", "", line) for line in dry_run.splitlines())
        self._total = sum(1 for line in lines if self._counts(line)) or None

    def line(self, line: bytes) -> None:
        """Looks at one line of the log."""
        if self._counts(line.decode(errors="replace")):
            self._done += 1
            self._tell(self._done, max(self._total, self._done) if self._total else None)

    def _counts(self, line: str) -> bool:
        return self._pattern is not None and self._pattern.search(line) is not None
