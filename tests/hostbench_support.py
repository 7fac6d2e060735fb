"""Builds and runs `native/hostbench` for its tests."""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import native_support
from native_support import SANITIZERS

SOURCE = Path(__file__).parents[1] / "native" / "hostbench"
BUILDS = {"plain": [], "asan": ["SANITIZE=address,undefined"]}
LIMIT_S = 120.0


@dataclass(frozen=True)
class Ran(native_support.Ran):
    """What one run said."""

    @property
    def document(self) -> dict[str, Any]:
        """Its JSON."""
        found = json.loads(self.stdout)
        assert isinstance(found, dict)
        return found

    @property
    def benchmarks(self) -> dict[str, dict[str, Any]]:
        """The benchmarks of its JSON, by name."""
        return {one["name"]: one for one in self.document["benchmarks"]}


@dataclass(frozen=True)
class Program:
    """One build."""

    path: Path

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Ran:
        """Run it, whatever comes of it."""
        ran = native_support.run(self.path, arguments, LIMIT_S, SANITIZERS, stdin)
        return Ran(*astuple(ran))

    def measured(self, benchmarks: str, *arguments: str) -> dict[str, dict[str, Any]]:
        """As fast as it goes: each benchmark three times for a millisecond."""
        quick = ["--json", "--seconds=0.001", "--repetitions=3", f"--benchmarks={benchmarks}"]
        ran = self(*quick, *arguments)
        assert (ran.code, ran.stderr) == (0, ""), ran
        return ran.benchmarks


def build(folder: Path, name: str) -> Program:
    """The named build; a warning of the compiler is an error."""
    out = folder / name
    native_support.make(SOURCE, out, "CXXFLAGS=-O1 -march=native -Werror", *BUILDS[name])
    return Program(out / "hostbench")
