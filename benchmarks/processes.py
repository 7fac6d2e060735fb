"""Starts and times the processes that benchmarks compare; what all of them have in common."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Options:
    """What the command line asks of every benchmark."""

    directory: Path
    """A temporary folder; the file system under it is part of every figure that writes."""
    pairs: int | None = None
    quick: bool = False
    db_bench: str | None = None
    url: str = ""
    """An empty database for the store, instead of a file."""
    cache: Path | None = None
    """Where builds of engines are kept; ``None``: where benchrunner keeps them."""

    def count(self, usual: int, quick: int = 2) -> int:
        """How many pairs: as asked, else few when quick, else the benchmark's own number."""
        return self.pairs or (quick if self.quick else usual)


def benchrunner(*arguments: str) -> list[str]:
    """The command as a user calls it: the installed script, or the module of this checkout."""
    script = Path(sys.executable).parent / "benchrunner"
    start = [str(script)] if script.exists() else [sys.executable, "-m", "benchrunner"]
    return [*start, *arguments]


def python(program: str, *arguments: str) -> list[str]:
    """A Python process that runs a program text."""
    return [sys.executable, "-c", program, *arguments]


def seconds(argv: Sequence[str]) -> float:
    """Wall time of a process that must end well."""
    began = time.perf_counter()
    output(argv)
    return time.perf_counter() - began


def output(argv: Sequence[str]) -> str:
    """What a process prints; of its stderr the last line is shown, when it fails.

    Raises:
        RuntimeError: It failed.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    done = subprocess.run(
        argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["it printed nothing"]
        command = " ".join(argv)[:200]
        raise RuntimeError(f"{command} ended with {done.returncode}: {reason[0]}")
    return done.stdout
