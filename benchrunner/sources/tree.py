"""A source tree at hand, and what it says of itself."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Sequence

_PARTS = ("MAJOR", "MINOR", "PATCH")


@dataclass(frozen=True, slots=True)
class Tree:
    """A fetched source tree."""

    path: Path
    version: str
    """As the tree itself states it, the source's word where it does not."""
    commit: str | None = None


def stated_version(text: str) -> str | None:
    """The version in a header like RocksDB's ``version.h`` (``#define ROCKSDB_MAJOR 7`` ...).

    >>> stated_version("#define ROCKSDB_MAJOR 7\\n#define ROCKSDB_MINOR 2\\n#define ROCKSDB_PATCH 2\\n")
    '7.2.2'
    """
    numbers = []
    for part in _PARTS:
        match = re.search(rf"#define\s+\w*{part}\w*\s+(\d+)", text)
        if match is None:
            return None
        numbers.append(match[1])
    return ".".join(numbers)


def tree_version(tree: Path, version_file: str, otherwise: str) -> str:
    """The version that a tree states, or what its source calls it."""
    path = tree / version_file
    if not version_file or not path.is_file():
        return otherwise
    return stated_version(path.read_text(errors="replace")) or otherwise


def tool_output(argv: Sequence[str], timeout_s: float, *, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """What a package client prints.

    Raises:
        SourceError: It is not installed, failed, or took too long.
    """
    program = argv[0]
    if shutil.which(program) is None:
        raise SourceError(f"{program} is not installed", f"apt-get install -y {program}")
    try:
        done = subprocess.run(
            argv, cwd=cwd, env=env, capture_output=True, text=True, errors="replace",
            stdin=subprocess.DEVNULL, timeout=timeout_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise SourceError(
            f"{' '.join(argv[:3])} gave no answer within {timeout_s:.0f} s", "check the network"
        ) from None
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        why = next((line for line in lines if "error" in line or "fatal" in line), "")
        raise SourceError(f"{' '.join(argv[:3])} failed: {why or (lines or ['no message'])[-1]}")
    return done.stdout
