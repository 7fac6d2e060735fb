"""Builds and runs `native/hostbench` for its tests."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "native" / "hostbench"
BUILDS = {"plain": [], "asan": ["SANITIZE=address,undefined"]}
ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
LIMIT_S = 120.0


@dataclass(frozen=True)
class Ran:
    """What one run said."""

    code: int
    stdout: str
    stderr: str

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
        done = subprocess.run(
            [str(self.path), *arguments],
            input=stdin,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
            env={**os.environ, **ENVIRONMENT},
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def measured(self, benchmarks: str, *arguments: str) -> dict[str, dict[str, Any]]:
        """As fast as it goes: each benchmark three times for a millisecond."""
        quick = ["--json", "--seconds=0.001", "--repetitions=3", f"--benchmarks={benchmarks}"]
        ran = self(*quick, *arguments)
        assert (ran.code, ran.stderr) == (0, ""), ran
        return ran.benchmarks


def build(folder: Path, name: str) -> Program:
    """The named build; a warning of the compiler is an error."""
    out = folder / name
    made = subprocess.run(
        ["make", "-j4", f"OUT={out}", "CXXFLAGS=-O1 -march=native -Werror", *BUILDS[name]],
        cwd=SOURCE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return Program(out / "hostbench")
