"""What a recipe means for one version under one compiler: key, environment, progress. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from benchrunner.building.natives import native_hash
from benchrunner.sources import identity
from benchrunner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchrunner.definitions import Engine, Source
    from benchrunner.model import SourceRef
    from benchrunner.toolchain import Toolchain

STD_INCLUDE_FROM = 13
"""From this gcc on <cstdint> must be included by who uses it; RocksDB before 10.4 does not."""
_COMPILES_NOTHING = ("chmod", "mkdir")
_NOT_IN_KEY = {"needs", "count", "portable_env", "driver", "link", "native"}


def chosen(engine: Engine, ref: SourceRef, driver: str = "") -> Engine:
    """The engine with the recipe of one version: its source's own words, its driver if wanted.

    A recipe that keeps nothing but its driver has it in any case.

    Args:
        engine: as it was written.
        ref: the version.
        driver: the driver that the sweep's workloads need; empty: none.
    """
    recipe, source = engine.build, source_of(engine, ref)
    if source is not None:
        own = {name: getattr(source.build, name) for name in type(source.build).model_fields}
        recipe = recipe.model_copy(update={n: v for n, v in own.items() if v is not None})
    installed = source is not None and source.kind == "system"
    is_alone = not source.binary if source and installed else not recipe.keep
    wanted = recipe.driver if is_alone or driver == recipe.driver else ""
    changes: dict[str, object] = {"driver": wanted}
    if installed and wanted:  # there is no tree: the driver is compiled against what is installed
        changes |= {"commands": [], "keep": [], "native": [], "needs": type(recipe.needs)()}
        changes["link"] = type(recipe.link)(engine=recipe.link.engine)
    return engine.model_copy(update={"build": recipe.model_copy(update=changes)})


def source_of(engine: Engine, ref: SourceRef) -> Source | None:
    """The source that a reference is of: the one that names it, else the first of its kind."""
    sources = [source for source in engine.source if source.kind == ref.kind]
    named = [source for source in sources if ref.ref in source.versions.values()]
    return next(iter([*named, *sources]), None)


def cache_key(engine: Engine, ref: SourceRef, toolchain: Toolchain) -> str:
    """Hash of all that makes the binary what it is; of an engine that has been ``chosen``."""
    recipe = engine.build
    content: dict[str, object] = {
        "engine": engine.built_as,
        "source": identity(engine, ref),
        "recipe": recipe.model_dump(exclude=_NOT_IN_KEY),
        "toolchain": [toolchain.identity, toolchain.cc, toolchain.cxx, dict(toolchain.shaping)],
    }
    if recipe.driver or recipe.native:
        content["native"] = [recipe.driver, recipe.native, native_hash(engine)]
    if recipe.driver:
        content["link"] = recipe.link.model_dump()
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
    if engine.built_as == "rocksdb" and toolchain.major >= STD_INCLUDE_FROM and is_old:
        env["EXTRA_CXXFLAGS"] = f"{env.get('EXTRA_CXXFLAGS', '')} -include cstdint".strip()
    return env


def dry_commands(commands: Sequence[Sequence[str]]) -> list[list[str]]:
    """Commands that print what make is going to do, and do nothing; none where make does not all.

    Of a recipe that compiles by other programs as well only a part would be counted.
    """
    names = [PurePosixPath(argv[0]).name for argv in commands]
    if not set(names) <= {"make", *_COMPILES_NOTHING}:
        return []
    return [[*argv, "-n"] for argv, name in zip(commands, names, strict=True) if name == "make"]


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
