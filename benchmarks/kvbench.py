"""``kvbench``: what the driver costs by itself, and the driver beside upstream's own programs.

Its own cost is the CPU time of operations on the null engine: a busy machine tells nearly the same.
Both programs of a pair come from one build of the library, in the cache of builds, and do the same
work with the same settings: keys of 16 bytes, values of 100, one thread.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, Target
from benchmarks.pairs import estimate, interleave
from benchmarks.processes import output
from benchrunner.build import Workshop, build, cache_key, chosen, this_machine
from benchrunner.catalog import Catalog
from benchrunner.cli.options import default_cache
from benchrunner.errors import BuildError
from benchrunner.sources import list_versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.pairs import Pairs
    from benchmarks.processes import Options
    from benchrunner.model import Artifact, SourceRef

MAX_NS = 60.0
SCALING = 0.98
"""Threads of the null engine have nothing in common but the caches; what is less is noise."""
BENCHMARKS = ("fillrandom", "readrandom")
_KVBENCH = re.compile(r" ([\d.]+) ops/sec")
_LEVELDB = re.compile(r": +([\d.]+) micros/op")


@dataclass(frozen=True)
class Rival:
    """An engine whose build has a program of its own, and what makes both do the same."""

    engine: str
    version: str
    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    is_quick: bool
    """Whether it is built here and now when the cache has it not."""


RIVALS = (
    Rival(
        "leveldb", "1.23",
        # Values that do not compress: what they cost Snappy depends on how they are made.
        ("--engine=leveldb", "--engine_opt=cache_size=8m", "--engine_opt=write_buffer_size=4m",
         "--engine_opt=compression=snappy", "--compression_ratio=1", "--decimal_keys"),
        ("--cache_size=8388608", "--write_buffer_size=4194304", "--compression_ratio=1"),
        is_quick=True,
    ),
    Rival(
        "rocksdb", "7.2.2",
        ("--engine=rocksdb", "--engine_opt=cache_size=8m", "--engine_opt=write_buffer_size=64m",
         "--engine_opt=options=enable_pipelined_write=true"),  # db_bench's default, not RocksDB's
        ("--cache_size=8388608", "--write_buffer_size=67108864", "--compression_type=none",
         "--key_size=16", "--value_size=100"), is_quick=False,
    ),
)  # fmt: skip


def kvbench(options: Options) -> Iterator[Figure]:
    """Nanoseconds of the driver, its scaling, and its rates over those of upstream's programs."""
    artifacts = {rival: _artifact(rival, options) for rival in RIVALS}
    driver = next(a.binaries["kvbench"] for a in artifacts.values() if a is not None)
    yield from _cost(driver, options)
    yield from _scaling(driver, options)
    for rival, artifact in artifacts.items():
        if artifact is None:
            how = f"benchrunner build {rival.engine} --versions {rival.version} --driver"
            raise RuntimeError(f"the cache has no {rival.engine} {rival.version}: {how}")
        yield from _beside(rival, artifact, options)


def _artifact(rival: Rival, options: Options) -> Artifact | None:
    """The library's build with both programs; ``None`` when making it would take minutes."""
    engine = Catalog().engine(rival.engine)
    ref: SourceRef = next(ref for ref in list_versions(engine).refs if ref.version == rival.version)
    cache = options.cache or default_cache()
    key = cache_key(chosen(engine, ref, "kvbench"), ref, this_machine(cache).toolchain)
    if not rival.is_quick and not (cache / "artifacts" / key).is_dir():
        return None
    artifact = build(engine, ref, Workshop(cache, None, driver="kvbench"))
    if artifact.state != "built":
        raise BuildError(artifact.reason.partition("\n")[0])
    return artifact


def _cost(driver: str, options: Options) -> Iterator[Figure]:
    operations = 1_000_000 if options.quick else 10_000_000
    for name in BENCHMARKS:
        for histogram in (False, True):
            argv = [driver, "--engine=null", f"--db={options.directory / 'null'}",
                    f"--num={operations}", f"--benchmarks={name}", "--driver_cost=false",
                    f"--histogram={str(histogram).lower()}"]  # fmt: skip
            costs = [_cpu_s(argv) / operations for _ in range(options.count(10))]
            title = f"kvbench: null {name}" + (", histogram" if histogram else "")
            found = estimate(costs).scaled(1e9)
            yield Figure(title, found, "ns/operation", Target(at_most=MAX_NS), note="CPU time")


def _scaling(driver: str, options: Options) -> Iterator[Figure]:
    """CPU time of an operation with one thread over that with as many as there are processors."""
    threads = len(os.sched_getaffinity(0))
    operations = 1_000_000 if options.quick else 10_000_000

    def cost_s(count: int) -> float:
        argv = [driver, "--engine=null", f"--db={options.directory / 'null'}",
                f"--num={operations}", f"--threads={count}", "--benchmarks=readrandom",
                "--driver_cost=false"]  # fmt: skip
        return _cpu_s(argv) / (operations * count)

    pairs = interleave(lambda: cost_s(1), lambda: cost_s(threads), options.count(10))
    yield Figure(
        "kvbench: scaling", pairs.ratio, "", Target(at_least=SCALING),
        note=f"CPU time of an operation, 1 thread over {threads}",
    )  # fmt: skip


def _beside(rival: Rival, artifact: Artifact, options: Options) -> Iterator[Figure]:
    entries = 50_000 if options.quick else 1_000_000
    folder = options.directory / rival.engine
    folder.mkdir()

    def command(name: str, settings: tuple[str, ...], benchmark: str) -> list[str]:
        existing = "true" if name == "kvbench" or rival.engine == "rocksdb" else "1"
        argv = [artifact.binaries[name], *settings, f"--db={folder / name}", f"--num={entries}",
                f"--benchmarks={benchmark}"]  # fmt: skip
        argv += [] if benchmark.startswith("fill") else [f"--use_existing_db={existing}"]
        return [*argv, *(["--driver_cost=false"] if name == "kvbench" else [])]

    def load(name: str, settings: tuple[str, ...]) -> None:
        shutil.rmtree(folder / name)
        (folder / name).mkdir()
        output(command(name, settings, "fillseq"))
        output(command(name, settings, "compact"))

    def program(name: str, settings: tuple[str, ...], benchmark: str) -> Callable[[], float]:
        place = folder / name
        place.mkdir(exist_ok=True)
        argv = command(name, settings, benchmark)

        def rate() -> float:
            if benchmark == "fillrandom":
                shutil.rmtree(place)
                place.mkdir()
            return operations_per_s(output(argv), benchmark)

        return rate

    for benchmark in BENCHMARKS:
        if benchmark == "readrandom":  # the same keys in both, and nothing left to compact
            load("kvbench", rival.ours)
            load("db_bench", rival.theirs)
        pairs: Pairs = interleave(
            program("kvbench", rival.ours, benchmark),
            program("db_bench", rival.theirs, benchmark),
            options.count(12),
        )
        yield Figure(
            f"kvbench: {rival.engine} {benchmark}", pairs.ratio, "", Target(at_least=1.0),
            note=f"operations/s over those of its db_bench, {rival.version}, {entries} keys",
        )  # fmt: skip


def operations_per_s(text: str, benchmark: str) -> float:
    """What either program says that one thread did, from its result line.

    Raises:
        RuntimeError: There is none.
    """
    line = next((line for line in text.splitlines() if line.startswith(benchmark)), "")
    if rate := _KVBENCH.search(line):
        return float(rate[1])
    if time := _LEVELDB.search(line):
        return 1e6 / float(time[1])
    raise RuntimeError(f"no result of {benchmark} in what the program printed")


def _cpu_s(argv: list[str]) -> float:
    """CPU time of a process, its threads and its start."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
