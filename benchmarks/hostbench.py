"""``hostbench``: our own native/hostbench against well-kept programs on the same setting.

Each pair is one run of each, by the clock on both sides. Copies, system calls and switches are the
same work and must take the same time; sysbench reads and writes eight bytes at a time, hostbench as
many as the processor can, so that hostbench must not get less from the same memory.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.figures import Figure, Target, number
from benchmarks.pairs import interleave
from benchmarks.processes import ROOT, output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.processes import Options

NEEDED = {
    "mbw": "mbw",
    "sysbench": "sysbench",
    "perf": "linux-perf",
    "taskset": "util-linux",
    "make": "make",
    "g++": "g++",
}
"""Program -> Debian package. libbenchmark-dev is asked for by the compiler."""
SAME = Target(at_least=0.95, at_most=1.05)
NOT_LESS = Target(at_least=0.95)
BLOCK_MIB = 64
SMALL_KIB = 512


class Other(NamedTuple):
    """Another program that measures the same thing."""

    figure: str
    benchmark: str
    """hostbench's name for it; ``PAGES`` is what other programs get from this kernel."""
    argv: list[str]
    pattern: str
    """The number in what it prints; of several the median counts."""
    factor: float
    """From its unit to hostbench's."""
    target: Target
    note: str = ""


def hostbench(options: Options) -> Iterator[Figure]:
    """Copies and the kernel's part against perf, reads and writes against sysbench."""
    missing = [package for name, package in NEEDED.items() if shutil.which(name) is None]
    if missing:
        raise RuntimeError(f"programs are missing: apt-get install -y {' '.join(missing)}")
    program = options.directory / "hostbench"
    output(["make", "-C", str(ROOT / "native" / "hostbench"), f"OUT={program}"])
    pages = "huge" if pages_are_huge() else "normal"
    for other in others(quick=options.quick):
        yield _figure(program / "hostbench", other, pages, options)


def pages_are_huge(
    path: Path = Path("/sys/kernel/mm/transparent_hugepage/enabled"),
) -> bool:
    """Whether a program that asks for nothing gets huge pages."""
    return path.exists() and "[always]" in path.read_text(encoding="utf-8")


def others(*, quick: bool) -> list[Other]:
    """What hostbench is held against."""
    part = 10 if quick else 1
    narrow = "8 bytes at a time, hostbench a vector"
    memory = r"\(([\d.]+) MiB/sec\)"
    return [
        Other(
            "copy, RAM", f"copy/PAGES/{BLOCK_MIB}MiB",
            ["perf", "bench", "mem", "memcpy", "-f", "default", "-s", f"{BLOCK_MIB}MB",
             "-l", str(20 // part)],
            r"([\d.]+) GB/sec", 1024.0, SAME,
        ),
        Other(
            "copy, RAM, mbw", f"copy/PAGES/{BLOCK_MIB}MiB",
            ["mbw", "-q", "-a", "-t0", "-n", str(20 // part), str(BLOCK_MIB)],
            r"Copy: ([\d.]+) MiB/s", 1.0, NOT_LESS,
            "mbw's loop gets less than perf's and a plain one",
        ),
        *(
            Other(
                f"{oper}, {where}", f"{oper}/PAGES/{block.replace('K', 'KiB').replace('M', 'MiB')}",
                _sysbench(oper, block, 4096 // part), memory, 1.0, NOT_LESS, narrow,
            )
            for where, block in (("cache", f"{SMALL_KIB}K"), ("RAM", f"{BLOCK_MIB}M"))
            for oper in ("read", "write")
        ),
        Other(
            "system call", "syscall",
            ["perf", "bench", "syscall", "basic", "-l", str(1_000_000 // part)],
            r"([\d.]+) usecs/op", 1000.0, SAME,
        ),
        Other(
            "switch by pipe", "switch/process-pipe",
            ["taskset", "-c", "0", "perf", "bench", "sched", "pipe", "-l", str(50_000 // part)],
            r"([\d.]+) usecs/op", 500.0, SAME, "perf counts there and back",
        ),
    ]  # fmt: skip


def _sysbench(operation: str, block: str, total_mib: int) -> list[str]:
    return [
        "sysbench", "--threads=1", "--time=0", f"--memory-block-size={block}",
        f"--memory-total-size={total_mib}M", f"--memory-oper={operation}", "memory", "run",
    ]  # fmt: skip


def _figure(program: Path, other: Other, pages: str, options: Options) -> Figure:
    benchmark = other.benchmark.replace("PAGES", pages)
    argv = [
        "taskset", "-c", "0", str(program), "--json", "--wall", "--threads=1", f"--pages={pages}",
        f"--min_size={SMALL_KIB}k", f"--max_size={BLOCK_MIB}m", f"--benchmarks={benchmark}",
        "--repetitions=5", f"--seconds={0.01 if options.quick else 0.05}",
    ]  # fmt: skip
    bare = other.argv if other.argv[0] == "taskset" else ["taskset", "-c", "0", *other.argv]
    pairs = interleave(lambda: ours(argv), lambda: theirs(bare, other), options.count(12))
    name = other.argv[3] if other.argv[0] == "taskset" else other.argv[0]
    both = f"{number(statistics.median(pairs.ours))}, {number(statistics.median(pairs.bare))}"
    unit = "ns" if other.benchmark.startswith(("syscall", "switch")) else "MB/s"
    note = f"hostbench and {name}: {both} {unit}" + (f"; {other.note}" if other.note else "")
    return Figure(
        f"hostbench {other.figure}", pairs.ratio, "", None if options.quick else other.target,
        note=note,
    )  # fmt: skip


def ours(argv: list[str]) -> float:
    """The result of the one benchmark that hostbench was asked for."""
    (found,) = json.loads(output(argv))["benchmarks"]
    if "skipped" in found:
        raise RuntimeError(f"hostbench skipped {found['name']}: {found['skipped']}")
    return float(found.get("bandwidth_mb_per_sec") or found["ns_per_op"])


def theirs(argv: list[str], other: Other) -> float:
    """What the other program printed, in hostbench's unit."""
    printed = output(argv)
    values = [float(text) * other.factor for text in re.findall(other.pattern, printed)]
    if not values:
        raise RuntimeError(f"{' '.join(argv)} printed no {other.pattern}: {printed[-200:]}")
    return statistics.median(values)
