"""What a program file says of itself: its hash, its flags, its version, what it is linked with."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_FLAG = re.compile(r"^\s+-(\w+) \(", re.MULTILINE)
_NUMBER = re.compile(r"\d+(?:\.\d+)+")
_PROBE_S = 30.0
_LIBRARIES = {
    "snappy": "libsnappy", "zlib": "libz.", "bzip2": "libbz2", "lz4": "liblz4", "zstd": "libzstd",
    "jemalloc": "libjemalloc", "io_uring": "liburing", "numa": "libnuma", "gflags": "libgflags",
}  # fmt: skip


def file_hash(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def probe_flags(binary: str) -> frozenset[str] | None:
    """Flags that a program lists with gflags' ``--help``; ``None`` when it lists none.

    gflags' help ends with status 1, so the status says nothing.
    """
    printed = _printed([binary, "--help"])
    return listed_flags("\n".join(printed)) if printed else None


def listed_flags(text: str) -> frozenset[str] | None:
    r"""Flag names in gflags' help.

    >>> sorted(listed_flags("    -num (Number of keys) type: int64 default: 1\n"))
    ['num']
    """
    return frozenset(_FLAG.findall(text)) or None


def printed_version(binary: str, version_argv: Sequence[str]) -> str | None:
    """The first version number that a program prints when asked; ``None`` when it prints none."""
    for text in _printed([binary, *(version_argv or ["--version"])]) or ():
        match = _NUMBER.search(text)
        if match is not None:
            return match[0]
    return None


def linked_features(binary: str) -> frozenset[str]:
    """Compression and allocator libraries that a program is linked with."""
    printed = _printed(["ldd", binary]) if shutil.which("ldd") else None
    text = printed[0] if printed else ""
    return frozenset(name for name, library in _LIBRARIES.items() if library in text)


def _printed(argv: list[str]) -> tuple[str, str] | None:
    """Standard output and error; ``None`` when it does not start or does not end."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
            timeout=_PROBE_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout, done.stderr
