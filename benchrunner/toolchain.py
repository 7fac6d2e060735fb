"""The compiler that a whole sweep uses, and the processor it compiles for."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Sequence

STD_INCLUDE_FROM = 13
"""gcc from this version on does not pull in <cstdint> by accident; RocksDB before 10.4 relies on it."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """One compiler, fixed for all versions of a sweep: another one is another experiment."""

    cc: str
    cxx: str
    version: str
    """First line of ``--version``."""
    target: str
    major: int
    cpu: str
    """Hash of the processor's feature flags: RocksDB compiles with -march=native."""
    ccache: bool

    @property
    def identity(self) -> str:
        """What makes two binaries of the same source differ. ccache does not."""
        return f"{self.version} {self.target} {self.cpu}"

    def environment(self, build_root: Path) -> dict[str, str]:
        """Environment of a build below ``build_root``."""
        wrap = "ccache " if self.ccache else ""
        env = {**os.environ, "CC": f"{wrap}{self.cc}", "CXX": f"{wrap}{self.cxx}", "LC_ALL": "C"}
        if self.ccache:
            env.setdefault("CCACHE_BASEDIR", str(build_root))
        return env


def find_toolchain() -> Toolchain:
    """The compiler of ``$CC`` and ``$CXX``, else gcc and g++.

    Raises:
        BuildError: There is none.
    """
    cc, cxx = os.environ.get("CC", "gcc"), os.environ.get("CXX", "g++")
    for program, package in ((cc, "gcc"), (cxx, "g++")):
        if shutil.which(program) is None:
            raise BuildError(f"the compiler {program} is not installed", f"apt-get install -y {package}")
    version = _line([cxx, "--version"])
    major = _line([cxx, "-dumpversion"]).partition(".")[0]
    return Toolchain(
        cc, cxx, version, _line([cxx, "-dumpmachine"]), int(major) if major.isdigit() else 0,
        _cpu(), shutil.which("ccache") is not None,
    )  # fmt: skip


def missing_packages(packages: Sequence[str]) -> list[str]:
    """Debian packages that are not installed; none where there is no dpkg to ask."""
    if shutil.which("dpkg-query") is None:
        return []
    missing = []
    for package in packages:
        done = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Status}", package],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if "ok installed" not in done.stdout:
            missing.append(package)
    return missing


def _line(argv: list[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return next(iter(done.stdout.splitlines()), "")


def _cpu() -> str:
    text = Path("/proc/cpuinfo").read_text(errors="replace")
    lines = sorted({line for line in text.splitlines() if line.startswith(("flags", "Features"))})
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]
