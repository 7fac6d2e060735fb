"""A source tree at hand, and what it says of itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PARTS = ("MAJOR", "MINOR", "PATCH")


@dataclass(frozen=True, slots=True)
class Tree:
    """A fetched source tree."""

    path: Path
    version: str
    """As the tree itself states it, the source's word where it does not."""
    commit: str | None = None


def stated_version(text: str) -> str | None:
    r"""The version in a header like RocksDB's ``version.h`` (``#define ROCKSDB_MAJOR 7`` ...).

    >>> stated_version("#define X_MAJOR 7\n#define X_MINOR 2\n#define X_PATCH 2\n")
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
