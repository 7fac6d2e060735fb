"""Builds and runs `native/kvbench` for its tests: real engines, small databases."""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import native_support
from native_support import SANITIZERS

SOURCE = Path(__file__).parents[1] / "native" / "kvbench"
BUILDS = {
    "plain": [],
    "asan": ["SANITIZE=address,undefined"],
    "tsan": ["SANITIZE=thread", "ENGINES=null lmdb"],
}
ENVIRONMENT = {
    **SANITIZERS,
    # Debian's LMDB is not instrumented: what it copies and frees itself cannot be judged.
    "TSAN_OPTIONS": f"halt_on_error=1:suppressions={SOURCE / 'tsan.supp'}",
}
LIMIT_S = 60.0


@dataclass(frozen=True)
class Ran(native_support.Ran):
    """What one run of the driver said."""

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The lines of JSON: first what was asked for, then one for each phase and role."""
        return [json.loads(line) for line in self.stdout.splitlines() if line.startswith("{")]

    @property
    def phases(self) -> list[dict[str, Any]]:
        """The results alone."""
        return self.objects[1:]

    def phase(self, name: str) -> dict[str, Any]:
        """The only result of that name."""
        (result,) = [one for one in self.phases if one["phase"] == name]
        return result


@dataclass(frozen=True)
class Driver:
    """One build of the driver."""

    program: Path

    def __call__(self, *arguments: str) -> Ran:
        """Run it, whatever comes of it."""
        ran = native_support.run(self.program, arguments, LIMIT_S, ENVIRONMENT)
        return Ran(*astuple(ran))

    def good(self, engine: str, db: Path, benchmarks: str, *arguments: str) -> Ran:
        """Run it with everything checked and printed; it must end well and say nothing else."""
        ran = self(
            f"--engine={engine}",
            f"--db={db}",
            f"--benchmarks={benchmarks}",
            "--verify",
            "--json",
            "--histogram",
            *arguments,
        )
        assert (ran.code, ran.stderr) == (0, ""), ran
        return ran

    @property
    def engines(self) -> list[str]:
        """Those that this machine has the libraries of."""
        return [line.split()[0] for line in self("--version").stdout.splitlines()]


def build(folder: Path, names: tuple[str, ...] = tuple(BUILDS)) -> dict[str, Driver]:
    """The named builds, one after the other; a warning of the compiler is an error."""
    drivers = {}
    for name in names:
        out = folder / name
        native_support.make(SOURCE, out, "CXXFLAGS=-O1 -Werror", *BUILDS[name])
        drivers[name] = Driver(out / "kvbench")
    return drivers
