"""The compiler that a whole sweep uses, its processor, and the environment of a build."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NEUTRAL = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|TERM|TMPDIR|TZ|CCACHE_\w+|\w+_(?:proxy|PROXY)|SSL_CERT_(?:FILE|DIR)"
)
"""Variables that a build gets from us because they do not shape what it makes."""
_SHAPING = re.compile(
    r"C(?:PP|XX)?FLAGS|LDFLAGS|LDLIBS|EXTRA_\w+|CPATH|C(?:PLUS)?_INCLUDE_PATH|LIBRARY_PATH"
    r"|LD_LIBRARY_PATH|LD_RUN_PATH|PKG_CONFIG_\w+"
)
"""Variables that shape a binary: a build gets them, and they become part of its key and record."""


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
    shaping: Mapping[str, str] = field(default_factory=dict)
    """What the caller's environment says about flags and search paths."""

    @property
    def identity(self) -> str:
        """What makes two binaries of the same source differ. ccache does not."""
        return f"{self.version} {self.target} {self.cpu}"

    def environment(self, build_root: Path) -> dict[str, str]:
        """Environment of a build below ``build_root``.

        Everything that is neither known to be harmless nor recorded stays outside: a ``MAKEFLAGS``
        or ``PORTABLE`` of the shell must not change what a version is.
        """
        wrap = "ccache " if self.ccache else ""
        neutral = {name: value for name, value in os.environ.items() if _NEUTRAL.fullmatch(name)}
        env = {**neutral, **self.shaping, "LC_ALL": "C"}
        env |= {"CC": wrap + self.cc, "CXX": wrap + self.cxx}
        if self.ccache:  # objects are shared between build folders, whose names differ
            env.setdefault("CCACHE_BASEDIR", str(build_root))
            env.setdefault("CCACHE_NOHASHDIR", "1")
        return env


def find_toolchain() -> Toolchain:
    """The compiler of ``$CC`` and ``$CXX``, else gcc and g++.

    Raises:
        BuildError: There is none.
    """
    cc, cxx = os.environ.get("CC") or "gcc", os.environ.get("CXX") or "g++"
    for command, package in ((cc, "gcc"), (cxx, "g++")):
        if shutil.which(shlex.split(command)[0]) is None:
            raise BuildError(
                f"the compiler {command} is not installed", f"apt-get install -y {package}"
            )
    major = _line(cxx, "-dumpversion").partition(".")[0]
    return Toolchain(
        cc=cc,
        cxx=cxx,
        version=_line(cxx, "--version"),
        target=_line(cxx, "-dumpmachine"),
        major=int(major) if major.isdigit() else 0,
        cpu=_cpu(),
        ccache=shutil.which("ccache") is not None,
        shaping=shaping(os.environ),
    )


def shaping(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment that shape what a compiler makes.

    >>> shaping({"CXXFLAGS": "-O3", "MAKEFLAGS": "-j9", "CFLAGS": ""})
    {'CXXFLAGS': '-O3'}
    """
    return {name: value for name, value in environ.items() if value and _SHAPING.fullmatch(name)}


def missing_packages(packages: Sequence[str]) -> list[str]:
    """Debian packages that are not installed; none where there is no dpkg to ask."""
    if not packages or shutil.which("dpkg-query") is None:
        return []
    query = ["dpkg-query", "-W", "-f", "${Package} ${Status}\\n", *packages]
    done = subprocess.run(query, capture_output=True, text=True, check=False)
    installed = {line.split()[0] for line in done.stdout.splitlines() if "ok installed" in line}
    return [package for package in packages if package not in installed]


def _line(compiler: str, option: str) -> str:
    argv = [*shlex.split(compiler), option]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return next(iter(done.stdout.splitlines()), "")


def _cpu() -> str:
    text = Path("/proc/cpuinfo").read_text(errors="replace")
    lines = sorted({line for line in text.splitlines() if line.startswith(("flags", "Features"))})
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]
