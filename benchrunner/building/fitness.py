"""Whether a host can run what was compiled here: machine, libc, processor. Values in, words out."""

from __future__ import annotations

import mmap
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from benchrunner.building.site import BuildSite
    from benchrunner.definitions import Engine
    from benchrunner.model import Artifact

_SHORT_S = 60.0
_FACTS = """\
uname -m
getconf GNU_LIBC_VERSION 2>/dev/null || echo
cat /proc/cpuinfo
"""
_GLIBC = re.compile(rb"GLIBC_(\d+)\.(\d+)")
_V2 = frozenset({"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"})
_V3 = _V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_LEVELS = {
    "x86-64": frozenset[str](), "x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4,
    "nehalem": _V2, "haswell": _V3, "skylake": _V3, "skylake-avx512": _V4, "armv8-a": frozenset(),
}  # fmt: skip
_ARCH = re.compile(r"-m(?:arch|cpu)=(\S+)")
_INSTRUCTIONS = re.compile(
    r"sse\w*|ssse3|pni|avx\w*|fma\w*|f16c|bmi[12]|abm|adx|aes|v?pclmulqdq|vaes|gfni|sha_ni|popcnt"
    r"|movbe|movdir\w*|rdrand|rdseed|xsave\w*|clflushopt|clwb|cx16|lahf_lm|fsgsbase|amx\w*|serialize"
    r"|prefetchw\w*|3dnow\w*|tbm|xop|lwp|wbnoinvd|rdpid|pku|waitpkg|cldemote|clzero|mwaitx|sgx|tsxldtrk"
)
"""Of the flags in /proc/cpuinfo on x86 those that ``-march=native`` may turn into instructions."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What of a host decides which programs run on it."""

    arch: str
    libc: tuple[int, int] | None
    """Version of glibc; ``None``: it has another libc."""
    flags: frozenset[str]
    """Features of its processor."""


def machine_of(site: BuildSite) -> Machine:
    """Asks a host in one go."""
    done = site.transport.run(["sh", "-c", _FACTS], timeout_s=_SHORT_S)
    arch, libc, *lines = done.stdout.decode(errors="replace").splitlines()
    found = re.search(r"glibc (\d+)\.(\d+)", libc)
    processor = (line for line in lines if line.startswith(("flags", "Features")))
    flags = next(processor, "").partition(":")[2].split()
    return Machine(arch, (int(found[1]), int(found[2])) if found else None, frozenset(flags))


def newest_glibc(program: Path) -> tuple[int, int] | None:
    """The newest glibc whose symbols a program asks for; ``None`` when it asks for none.

    The names of symbol versions (``GLIBC_2.34``) stand as text in the file's string table, so the
    file is searched for them. A program that has such a text for another reason is judged too
    severely, never too mildly.
    """
    if program.stat().st_size == 0:
        return None
    with program.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return max(((int(m[1]), int(m[2])) for m in _GLIBC.finditer(text)), default=None)


def needed_features(artifact: Artifact, engine: Engine, here: Machine) -> frozenset[str]:
    """Processor features that a build of ours may use, as far as its flags tell.

    A level says it. ``native`` is this machine; so is silence of a recipe that nobody has called
    portable, because its makefile may say ``native`` where we do not see it.
    """
    own = {name: value for name, value in artifact.build_flags.items() if name != "target"}
    words = [*own.values(), *(word for command in engine.build.commands for word in command)]
    named = _ARCH.findall(" ".join(words))
    if not named:
        return frozenset() if engine.build.portable_env else _usable(here)
    unknown = any(name not in _LEVELS for name in named)
    return _usable(here) if unknown else frozenset[str]().union(*(_LEVELS[n] for n in named))


def _usable(machine: Machine) -> frozenset[str]:
    if machine.arch != "x86_64":
        return machine.flags
    return frozenset(flag for flag in machine.flags if _INSTRUCTIONS.fullmatch(flag))


@dataclass(frozen=True, slots=True)
class Misfit:
    """What differs in one clause, and what to do."""

    what: str
    hint: str


def misfits(
    here: Machine,
    there: Machine,
    needs: frozenset[str],
    glibc: Iterable[tuple[int, int] | None],
    host: str,
) -> Iterator[Misfit]:
    """Why a program compiled here does not run there; nothing when it should."""
    on_host = f'build = "host" in hosts/{host}.toml'
    if here.arch != there.arch:
        yield Misfit(f"it is for {here.arch}, and the host is {there.arch}", on_host)
        return
    wanted = max((version for version in glibc if version), default=None)
    if wanted is not None and (there.libc is None or there.libc < wanted):
        has = "glibc {}.{}".format(*there.libc) if there.libc else "no glibc"
        yield Misfit(
            f"it needs glibc {wanted[0]}.{wanted[1]}, and the host has {has}",
            f"{on_host}, or run benchrunner on a system as old as the host's",
        )
    lacking = sorted(needs - there.flags)
    if lacking:
        more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
        yield Misfit(
            f"it may use instructions that the host's processor has not ({', '.join(lacking[:5])}"
            f"{more})",
            f"{on_host}, or portable_env in the engine's [build] that makes it do without",
        )
