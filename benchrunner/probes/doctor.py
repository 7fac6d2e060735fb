"""What is missing on a machine, what each thing is for, and the commands that mend it.

In: a transport, the work directory and the Debian packages that the catalog's engines and tools
name. Out: checks; nothing is installed.
"""

from __future__ import annotations

import posixpath
import shlex
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchrunner.probes.check import Check
from benchrunner.probes.preconditions import (
    check_direct_io,
    check_drop_caches,
    check_free_space,
    check_io_uring,
    check_writable,
)
from benchrunner.workdir import disk_free

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchrunner.transports import Transport

_LIMIT_S = 60.0
_SPACE_BYTES = 5 * 2**30
"""A source tree with its objects, a database of the smoke scale, and room."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that something of ours starts."""

    name: str
    package: str
    purpose: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Needs:
    """What the catalog asks for: programs beside the built-in ones, and packages with a purpose."""

    programs: Sequence[Program] = ()
    packages: Mapping[str, str] | None = None
    """Debian package -> what it is for; ``None`` means those that a build of RocksDB wants."""


PROGRAMS = (
    Program("cc", "gcc libc6-dev", "the supervisor, without which nothing runs", required=True),
    Program("c++", "g++", "building engines from source"),
    Program("make", "make", "building engines from source"),
    Program("git", "git", "the source git"),
    Program("cargo", "cargo", "the source crate"),
    Program("ccache", "ccache", "building a version again in a fraction of the time"),
    Program("db_bench", "rocksdb-tools", "the source system of RocksDB"),
    Program("fio", "fio", "fio workloads, and what the device can do at all"),
)
ROCKSDB_PACKAGES = dict.fromkeys(
    (
        "libgflags-dev", "libsnappy-dev", "zlib1g-dev", "liblz4-dev", "libzstd-dev", "libbz2-dev",
    ),
    "building RocksDB with the compressions that its workloads ask for",
)  # fmt: skip
_SCRIPT = r"""
PATH=$PATH:/usr/sbin:/sbin
for name; do
  case $name in
    --) shift_to_packages=1 ;;
    *) if [ -z "$shift_to_packages" ]; then
         path=$(command -v "$name") && printf 'program %s %s\n' "$name" "$path"
       elif command -v dpkg-query >/dev/null; then
         state=$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)
         printf 'package %s %s\n' "$name" "${state:-absent}"
       fi ;;
  esac
done
command -v apt-get >/dev/null && echo apt
[ "$(id -u)" = 0 ] && echo root
exit 0
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """What the script found on the host."""

    programs: Mapping[str, str]
    packages: Mapping[str, bool]
    apt: bool
    root: bool


def doctor(transport: Transport, work_dir: str, needs: Needs | None = None) -> tuple[Check, ...]:
    """Checks all that a sweep can need on a host. Failing checks come with their remedy.

    Args:
        transport: The host.
        work_dir: Where databases and runs would be; absolute.
        needs: What the catalog asks for beside the built-in list.
    """
    asked = needs or Needs()
    work_dir = _nearest_folder(transport, work_dir)
    packages = ROCKSDB_PACKAGES if asked.packages is None else asked.packages
    programs = {program.name: program for program in (*PROGRAMS, *asked.programs)}
    argv = ["sh", "-c", _SCRIPT, "sh", *programs, "--", *packages]
    found = read_installed(transport.run(argv, timeout_s=_LIMIT_S).stdout.decode(errors="replace"))
    return (
        _python(),
        *(_program(program, found) for program in programs.values()),
        *(_package(name, purpose, found) for name, purpose in packages.items()),
        check_free_space(disk_free(transport, work_dir), _SPACE_BYTES, work_dir),
        check_writable(transport, work_dir),
        check_direct_io(transport, work_dir),
        check_io_uring(transport),
        check_drop_caches(transport),
    )


def mending_command(checks: Sequence[Check]) -> str | None:
    """One command that installs all that failing checks miss; ``None`` when nothing can be so."""
    packages = dict.fromkeys(
        package for check in checks if check.ok is False for package in check.packages
    )
    first = next((c.remedy_command for c in checks if c.ok is False and c.packages), None)
    if first is None:
        return None
    prefix = first.partition("apt-get")[0]
    return f"{prefix}apt-get install -y {' '.join(map(shlex.quote, packages))}"


def read_installed(text: str) -> Installed:
    """What the script's output says."""
    programs, packages, words = {}, {}, set()
    for line in text.splitlines():
        kind, *rest = line.split(maxsplit=2)
        if kind == "program" and len(rest) == 2:
            programs[rest[0]] = rest[1]
        elif kind == "package" and len(rest) == 2:
            packages[rest[0]] = rest[1] == "installed"
        else:
            words.add(kind)
    return Installed(programs, packages, "apt" in words, "root" in words)


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    ok = sys.version_info >= (3, 11)
    remedy = "" if ok else "apt-get install -y python3"
    return Check("python", ok, f"Python {version} runs benchrunner", remedy, purpose="everything")


def _program(program: Program, found: Installed) -> Check:
    path = found.programs.get(program.name)
    if path is None:
        check = Check(program.name, ok=False, evidence=f"{program.name} is not on PATH")
        check = _mended(check, tuple(program.package.split()), found)
    else:
        check = Check(program.name, ok=True, evidence=path)
    return replace(check, required=program.required, purpose=program.purpose)


def _package(name: str, purpose: str, found: Installed) -> Check:
    installed = found.packages.get(name)
    if installed:
        check = Check(name, ok=True, evidence="installed")
    elif installed is None:
        evidence = "cannot be told: this is not a Debian system"
        check = Check(name, ok=None, evidence=evidence)
    else:
        check = _mended(Check(name, ok=False, evidence=f"{name} is not installed"), (name,), found)
    return replace(check, required=False, purpose=purpose)


def _mended(check: Check, packages: tuple[str, ...], found: Installed) -> Check:
    """Adds the remedy. Without apt it is words, and the one command leaves it out."""
    words = " ".join(packages)
    if not found.apt:
        return replace(check, remedy_command=f"install what Debian calls {words}")
    command = f"{'' if found.root else 'sudo '}apt-get install -y {words}"
    return replace(check, remedy_command=command, packages=packages)


def _nearest_folder(transport: Transport, path: str) -> str:
    """The folder itself, or the one below which it would be made."""
    while path != "/" and transport.size(path) is None:
        path = posixpath.dirname(path)
    return path
