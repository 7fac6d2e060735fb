"""What is missing on a machine, what each thing is for, and the commands that mend it.

In: a transport, directories or a host's definition, and the Debian packages that the catalog's
engines and tools name. Out: checks; nothing is installed, and nothing is changed.
"""

from __future__ import annotations

import posixpath
import shlex
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from benchrunner.probes.check import Check
from benchrunner.probes.mounts import check_mounted
from benchrunner.probes.preconditions import (
    check_direct_io,
    check_drop_caches,
    check_free_space,
    check_io_uring,
    check_writable,
    facts_checks,
)
from benchrunner.probes.remedies import as_typed, is_command, own
from benchrunner.workdir import disk_free

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchrunner import definitions
    from benchrunner.transports import Transport

_LIMIT_S = 60.0
_MAX_CLOCK_OFFSET_S = 1.0
"""Times of a trial are the host's own; beyond a second they no longer fit those of the controller
in anybody's notes. Durations do not depend on it: they are monotonic."""
_MAX_PERF_PARANOID = 1
"""Up to which an ordinary user may profile a process of his own, the kernel included."""
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
    Program("numactl", "numactl", "variants that place memory on NUMA nodes"),
    Program("perf", "linux-perf", "profiles of a step"),
)
_BUILDING = ("cc", "c++", "make", "cargo", "git", "ccache")
"""What a host does not need whose engines are compiled on the controller."""
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
    found = _look(transport, needs or Needs())
    checks = (
        _python(),
        *_installed(found, needs or Needs()),
        *_directory(transport, work_dir, _SPACE_BYTES),
        check_io_uring(transport),
        check_drop_caches(transport),
    )
    return tuple(typed(check, is_root=found.root) for check in checks)


def typed(check: Check, *, is_root: bool) -> Check:
    """A check whose remedy, if that is a command, is as that user types it."""
    if not is_command(check.remedy_command):
        return check
    return replace(check, remedy_command=as_typed(check.remedy_command, is_root=is_root))


def host_checks(
    transport: Transport, host: definitions.Host, needs: Needs | None, facts: Mapping[str, Any]
) -> tuple[Check, ...]:
    """Checks all that a host of the inventory needs, once it is reached.

    Args:
        transport: The host.
        host: Its definition.
        needs: What the catalog asks for beside the built-in list.
        facts: Facts just taken there (``collect_facts``).
    """
    asked = needs or Needs()
    checks = list(_installed(_look(transport, asked), asked))
    if host.build == "controller":
        compiled_here = (*_BUILDING, *_packages(asked))
        checks = [check for check in checks if check.name not in compiled_here]
    space = _SPACE_BYTES if host.limits.disk_gib is None else round(host.limits.disk_gib * 2**30)
    databases = list(host.data)[:1] or [host.work_dir]
    for path in dict.fromkeys((host.work_dir, *host.data, *host.wal)):
        if path:
            checks += _directory(transport, path, space if path in databases else None)
    for path, wanted in {**host.data, **host.wal}.items():
        checks.append(check_mounted(transport, path, wanted))
    return (
        *checks,
        check_io_uring(transport),
        check_drop_caches(transport),
        check_clock(facts.get("now", {})),
        check_perf(facts.get("kernel", {}).get("perf_event_paranoid")),
        *(check for check in facts_checks(facts) if not _tuned_away(check, host)),
    )


def check_clock(now: Mapping[str, Any]) -> Check:
    """Whether the host's clock and the controller's agree, as far as the round trip lets one tell.

    Args:
        now: The facts under ``now``: ``clock_ahead_s`` and ``round_trip_s``.
    """
    purpose = "start and end times that fit those of other hosts"
    ahead_s, trip_s = now.get("clock_ahead_s"), now.get("round_trip_s") or 0.0
    if ahead_s is None:
        return Check("clock", None, "the host does not tell its time", required=False)
    least, most = ahead_s - trip_s, ahead_s
    evidence = f"the host's clock is {least:+.1f} to {most:+.1f} s ahead of this machine's"
    if least <= _MAX_CLOCK_OFFSET_S and most >= -_MAX_CLOCK_OFFSET_S:
        return Check("clock", ok=True, evidence=evidence, required=False, purpose=purpose)
    remedy = "sudo apt-get install -y chrony && sudo chronyc makestep"
    return Check("clock", ok=False, evidence=evidence, remedy_command=remedy, required=False,
                 purpose=purpose)  # fmt: skip


def check_perf(paranoid: int | None) -> Check:
    """Whether an ordinary user may profile."""
    purpose = "profiles of a step"
    if paranoid is None:
        return Check("perf-events", None, "kernel.perf_event_paranoid is not known here",
                     required=False, purpose=purpose)  # fmt: skip
    ok = paranoid <= _MAX_PERF_PARANOID
    evidence = f"kernel.perf_event_paranoid is {paranoid}"
    remedy = "" if ok else f"sudo sysctl kernel.perf_event_paranoid={_MAX_PERF_PARANOID}"
    return Check("perf-events", ok, evidence, remedy, required=False, purpose=purpose)


def _tuned_away(check: Check, host: definitions.Host) -> bool:
    """Whether a sweep changes that setting by itself."""
    by_setting = {"cpu-governor": "governor", "transparent-huge-pages": "transparent_huge_pages"}
    return by_setting.get(check.name) in host.tune


def _look(transport: Transport, asked: Needs) -> Installed:
    """Programs and packages that there are, in one round trip."""
    argv = ["sh", "-c", _SCRIPT, "sh", *_programs(asked), "--", *_packages(asked)]
    return read_installed(transport.run(argv, timeout_s=_LIMIT_S).stdout.decode(errors="replace"))


def _installed(found: Installed, asked: Needs) -> tuple[Check, ...]:
    return (
        *(_program(program, found) for program in _programs(asked).values()),
        *(_package(name, purpose, found) for name, purpose in _packages(asked).items()),
    )


def _programs(asked: Needs) -> Mapping[str, Program]:
    return {program.name: program for program in (*PROGRAMS, *asked.programs)}


def _packages(asked: Needs) -> Mapping[str, str]:
    return ROCKSDB_PACKAGES if asked.packages is None else asked.packages


def _directory(transport: Transport, path: str, space_bytes: int | None) -> tuple[Check, ...]:
    """What a folder must be able to do for databases and runs; tried above it if it is missing."""
    folder = _nearest_folder(transport, path)
    space = check_free_space(disk_free(transport, folder), space_bytes, folder)
    writable = check_writable(transport, folder)
    if writable.ok is False:  # whoever may not write owns the folder itself, not one above it
        writable = replace(writable, remedy_command=own(path))
    return (
        # Nobody said how much is needed: nothing that it lacks can be told.
        space if space_bytes is not None else replace(space, required=False),
        writable,
        check_direct_io(transport, folder),
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
