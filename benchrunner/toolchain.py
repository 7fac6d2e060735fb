"""The compiler that a whole sweep uses on a host, its processor, and the environment of a build.

In: a transport; everything is asked of the host behind it. Out: plain values.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchrunner.errors import BuildError
from benchrunner.transports.local import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchrunner.transports import Transport

_NEUTRAL = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|TERM|TMPDIR|TZ|CCACHE_\w+|\w+_(?:proxy|PROXY)|SSL_CERT_(?:FILE|DIR)"
)
"""Variables that a build gets from us because they do not shape what it makes."""
_SHAPING = re.compile(
    r"C(?:PP|XX)?FLAGS|LDFLAGS|LDLIBS|EXTRA_\w+|CPATH|C(?:PLUS)?_INCLUDE_PATH|LIBRARY_PATH"
    r"|LD_LIBRARY_PATH|LD_RUN_PATH|PKG_CONFIG_\w+"
)
"""Variables that shape a binary: a build gets them, and they become part of its key and record."""
_SHORT_S = 60.0
_NOT_FOUND = 127
"""What ``env`` ends with when there is no such program."""
_LOOK = """\
for program in "$1" "$2" ccache; do
  command -v "$program" >/dev/null 2>&1 && echo found || echo missing
done
shift
for option in --version -dumpmachine -dumpversion; do
  line=$("$@" "$option" 2>/dev/null | head -n 1)
  printf '%s\\n' "$line"
done
"""
"""Arguments: the C compiler, then the C++ compiler with its own first arguments."""


class NoCompilerError(BuildError):
    """A host has no compiler; ``packages`` are those that would install what is missing."""

    def __init__(self, command: str, package: str, packages: Sequence[str]) -> None:
        super().__init__(
            f"the compiler {command} is not installed", f"apt-get install -y {package}"
        )
        self.packages = tuple(packages)


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
    """What the host's environment says about flags and search paths."""
    neutral: Mapping[str, str] = field(default_factory=dict)
    """What of the host's environment a build gets and its identity leaves out."""

    @property
    def identity(self) -> str:
        """What makes two binaries of the same source differ. ccache does not."""
        return f"{self.version} {self.target} {self.cpu}"

    def environment(self, build_root: str) -> dict[str, str]:
        """Environment of a build below ``build_root``.

        Everything that is neither known to be harmless nor recorded stays outside: a ``MAKEFLAGS``
        or ``PORTABLE`` of the shell must not change what a version is.
        """
        wrap = "ccache " if self.ccache else ""
        env = {**self.neutral, **self.shaping, "LC_ALL": "C"}
        env |= {"CC": wrap + self.cc, "CXX": wrap + self.cxx}
        if self.ccache:  # objects are shared between build folders, whose names differ
            env.setdefault("CCACHE_BASEDIR", build_root)
            env.setdefault("CCACHE_NOHASHDIR", "1")
        return env


def find_toolchain(
    transport: Transport | None = None, env: Mapping[str, str] | None = None
) -> Toolchain:
    """The compiler of ``$CC`` and ``$CXX`` on a host, else gcc and g++.

    Args:
        transport: the host; this machine when none is given.
        env: what is added to the host's own environment.

    Raises:
        NoCompilerError: There is none.
    """
    host = transport or LocalTransport()
    environ = host_environment(host) | dict(env or {})
    cc, cxx = environ.get("CC") or "gcc", environ.get("CXX") or "g++"
    argv = ["sh", "-c", _LOOK, "sh", shlex.split(cc)[0], *shlex.split(cxx)]
    done = host.run(argv, timeout_s=_SHORT_S, env=env)
    lines = done.stdout.decode(errors="replace").splitlines()
    has_cc, has_cxx, has_ccache = (line == "found" for line in lines[:3])
    wanted = ((cc, "gcc", has_cc), (cxx, "g++", has_cxx))
    missing = [(command, package) for command, package, found in wanted if not found]
    if missing:
        raise NoCompilerError(*missing[0], [package for _, package in missing])
    major = lines[5].partition(".")[0]
    return Toolchain(
        cc=cc,
        cxx=cxx,
        version=lines[3],
        target=lines[4],
        major=int(major) if major.isdigit() else 0,
        cpu=_cpu(host.read("/proc/cpuinfo").decode(errors="replace")),
        ccache=has_ccache,
        shaping=shaping(environ),
        neutral={name: value for name, value in environ.items() if _NEUTRAL.fullmatch(name)},
    )


def host_environment(transport: Transport) -> dict[str, str]:
    """The environment that commands get on a host."""
    done = transport.run(["env", "-0"], timeout_s=_SHORT_S)
    entries = (os.fsdecode(entry).partition("=") for entry in done.stdout.split(b"\0"))
    return {name: value for name, sign, value in entries if sign}


def shaping(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment that shape what a compiler makes.

    >>> shaping({"CXXFLAGS": "-O3", "MAKEFLAGS": "-j9", "CFLAGS": ""})
    {'CXXFLAGS': '-O3'}
    """
    return {name: value for name, value in environ.items() if value and _SHAPING.fullmatch(name)}


def missing_packages(packages: Sequence[str], transport: Transport | None = None) -> list[str]:
    """Debian packages that a host has not; none where there is no dpkg to ask."""
    if not packages:
        return []
    host = transport or LocalTransport()
    query = ["env", "dpkg-query", "-W", "-f", "${Package} ${Status}\\n", *packages]
    done = host.run(query, timeout_s=_SHORT_S)
    if done.exit_code == _NOT_FOUND:
        return []
    lines = done.stdout.decode(errors="replace").splitlines()
    installed = {line.split()[0] for line in lines if "ok installed" in line}
    return [package for package in packages if package not in installed]


def _cpu(text: str) -> str:
    lines = sorted({line for line in text.splitlines() if line.startswith(("flags", "Features"))})
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]
