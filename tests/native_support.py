"""Builds and runs our own native programs for their tests."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


@dataclass(frozen=True)
class Ran:
    """What one run said."""

    code: int
    stdout: str
    stderr: str


def run(
    program: Path,
    arguments: Sequence[str],
    limit_s: float,
    environment: Mapping[str, str],
    stdin: bytes = b"",
) -> Ran:
    """One run, whatever comes of it."""
    done = subprocess.run(
        [str(program), *arguments],
        input=stdin,
        capture_output=True,
        timeout=limit_s,
        check=False,
        env={**os.environ, **environment},
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def make(source: Path, out: Path, *words: str) -> None:
    """Builds a program into a folder."""
    made = subprocess.run(
        ["make", "-j4", f"OUT={out}", *words],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
