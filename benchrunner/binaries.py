"""What a program file says of itself: its hash, its flags, its version, what it is linked with.

A program is asked where it lies, here or on another host: what asks it is an argument. It is never
fetched for that: db_bench can have 170 MB.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

Ask = Callable[[Sequence[str]], tuple[str, str] | None]
"""Runs a short command; standard output and error, ``None`` when it did not start or end."""

PROBE_S = 30.0
_FLAG = re.compile(r"^\s+-(\w+) \(", re.MULTILINE)
_NUMBER = re.compile(r"\d+(?:\.\d+)+")
_LIBRARIES = {
    "snappy": "libsnappy", "zlib": "libz.", "bzip2": "libbz2", "lz4": "liblz4", "zstd": "libzstd",
    "jemalloc": "libjemalloc", "io_uring": "liburing", "numa": "libnuma", "gflags": "libgflags",
}  # fmt: skip


def ask_here(argv: Sequence[str]) -> tuple[str, str] | None:
    """Asks a program on this machine."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
            timeout=PROBE_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout, done.stderr


def file_hash(path: Path) -> str:
    """SHA-256 of a file on this machine, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def probe_flags(binary: str, ask: Ask = ask_here) -> frozenset[str] | None:
    """Flags that a program lists with gflags' ``--help``; ``None`` when it lists none.

    gflags' help ends with status 1, so the status says nothing.
    """
    printed = ask([binary, "--help"])
    return listed_flags("\n".join(printed)) if printed else None


def listed_flags(text: str) -> frozenset[str] | None:
    r"""Flag names in gflags' help.

    >>> sorted(listed_flags("    -num (Number of keys) type: int64 default: 1\n"))
    ['num']
    """
    return frozenset(_FLAG.findall(text)) or None


def printed_version(binary: str, version_argv: Sequence[str], ask: Ask = ask_here) -> str | None:
    """The first version number that a program prints when asked; ``None`` when it prints none."""
    for text in ask([binary, *(version_argv or ["--version"])]) or ():
        match = _NUMBER.search(text)
        if match is not None:
            return match[0]
    return None


def linked_features(binary: str, ask: Ask = ask_here) -> frozenset[str]:
    """Compression and allocator libraries that a program is linked with."""
    printed = ask(["ldd", binary])
    text = printed[0] if printed else ""
    return frozenset(name for name, library in _LIBRARIES.items() if library in text)
