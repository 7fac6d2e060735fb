"""``perturbation``: does watching change the result? db_bench under the supervisor against bare.

Twice: neighbouring seconds of one run with one thread (``toggled``), and whole processes with the
same fixed number of operations, readrandom with as many threads as there are processors, so that
the supervisor has no idle one to itself. The figure is db_bench's own ops/sec.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from itertools import count
from typing import TYPE_CHECKING, Any

from benchmarks.figures import Figure, Target, number
from benchmarks.pairs import estimate, interleave
from benchmarks.toggled import SETTLING_S, toggle
from benchrunner.errors import ConfigurationError
from benchrunner.launchers.supervisor import ensure_supervisor, supervisor_sources
from benchrunner.parse.result_line import parse_result
from benchrunner.transports.local import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.pairs import Pairs
    from benchmarks.processes import Options

KEYS = 1_000_000
RUN_S = 4.0
LONG_RUN_S = 30.0
"""For the supervisor's own share: shorter than any real step, long enough not to be all start."""
INTERVAL_S = 1
COMMON = (
    f"--num={KEYS}", "--key_size=16", "--value_size=100", "--cache_size=536870912",
    "--compression_type=none", "--open_files=-1", "--seed=1",
)  # fmt: skip
EXISTING = ("--use_existing_db=1", "--disable_auto_compactions=1")
SINGLE: dict[str, tuple[int, tuple[str, ...]]] = {
    "readrandom": (100, ("--benchmarks=readrandom", *COMMON, *EXISTING)),
    # One memtable for the whole run and no log: flushes and write-back come and go by the second.
    "fillrandom": (
        300,
        ("--benchmarks=fillrandom", *COMMON, "--write_buffer_size=8000000000", "--disable_wal=1"),
    ),
}
"""Pairs of seconds and arguments; one thread is db_bench's default."""


def perturbation(options: Options) -> Iterator[Figure]:
    """Ratio of ops/sec for a reading and a writing benchmark, and the supervisor's own cost.

    Raises:
        ConfigurationError: There is no db_bench.
    """
    program = shutil.which(options.db_bench or "db_bench")
    if program is None:
        raise ConfigurationError(
            f"{options.db_bench or 'db_bench'} is not a program",
            "apt-get install -y rocksdb-tools, or --db-bench PATH",
        )
    folder = options.directory / "perturbation"
    folder.mkdir()
    transport = LocalTransport()
    supervisor = ensure_supervisor(transport, supervisor_sources(), str(folder / "cache"))
    transport.close()
    sides = _Sides(program, supervisor, folder)
    sides.bare_ops(("--benchmarks=fillseq", *COMMON))
    for name, (usual, arguments) in SINGLE.items():
        pairs = sides.within_one_run(arguments, options.count(usual, quick=6))
        bare = number(estimate(pairs.bare).median)
        yield Figure(
            f"perturbation {name}", pairs.ratio, "", Target(0.995, 1.005),
            note=f"watched / unwatched seconds of one run, {len(pairs.ours)} pairs, {bare} ops/s",
        )  # fmt: skip
    sides.bare_ops(("--benchmarks=fillseq", *COMMON))
    for name, arguments in benchmarks().items():
        sides.aim(arguments, 1.0 if options.quick else RUN_S)
        pairs = interleave(sides.supervised_ops, sides.bare_ops, options.count(12))
        bare = number(estimate(pairs.bare).median)
        yield Figure(
            f"perturbation {name}, runs", pairs.ratio, "", Target(0.995, 1.005),
            note=f"supervised / bare ops/sec, {len(pairs.ours)} pairs of runs, bare {bare} ops/s",
        )  # fmt: skip
    yield own_share("supervisor CPU, short runs", sides.statuses, None)
    yield own_memory(sides.statuses)
    sides.aim(benchmarks()["readrandom"], 3.0 if options.quick else LONG_RUN_S)
    sides.supervised_ops()
    yield own_share("supervisor CPU, long run", sides.statuses[-1:], Target(at_most=0.1))


def benchmarks() -> dict[str, tuple[str, ...]]:
    """Arguments by name; readrandom first, on the database loaded before."""
    threads = f"--threads={len(os.sched_getaffinity(0))}"
    return {
        "readrandom": ("--benchmarks=readrandom", *COMMON, *EXISTING, threads),
        "fillrandom": ("--benchmarks=fillrandom", *COMMON),
    }


def own_share(name: str, statuses: Sequence[dict[str, Any]], target: Target | None) -> Figure:
    """CPU time that the supervisor itself used, from ``status.json``, as a share of a core."""
    shares = [
        100 * (status["supervisor"]["user_s"] + status["supervisor"]["sys_s"]) / status["wall_s"]
        for status in statuses
    ]
    wall = number(estimate([status["wall_s"] for status in statuses]).median)
    note = f"{wall} s, one sample per second"
    return Figure(name, estimate(shares), "% of a core", target, note=note)


def own_memory(statuses: Sequence[dict[str, Any]]) -> Figure:
    """Its largest resident memory."""
    resident = [status["supervisor"]["maxrss_kib"] / 1024 for status in statuses]
    return Figure("supervisor RSS", estimate(resident), "MiB", Target(at_most=4))


class _Sides:
    """Both sides of a pair, for the benchmark that was aimed at last."""

    def __init__(self, program: str, supervisor: str, folder: Path) -> None:
        self.statuses: list[dict[str, Any]] = []
        self._program = program
        self._supervisor = supervisor
        self._folder = folder
        self._database = folder / "db"
        self._database.mkdir()
        self._numbers = count()
        self._arguments: tuple[str, ...] = ()

    def aim(self, arguments: tuple[str, ...], run_s: float) -> None:
        """Finds the number of operations (per thread) that takes about ``run_s``."""
        rate = self.bare_ops((*arguments, "--duration=2"))
        threads = next((int(a.partition("=")[2]) for a in arguments if "threads" in a), 1)
        operations = max(1000, int(rate * run_s / threads))
        # Writes would otherwise do one round over all keys, reads as many as there are keys.
        self._arguments = (*arguments, f"--reads={operations}", f"--writes={operations}")

    def supervised_ops(self) -> float:
        """Operations per second as db_bench prints them, under the supervisor."""
        run = self._folder / f"run-{next(self._numbers)}"
        argv = self._argv(self._arguments)
        subprocess.run(
            [*self._start(run), *argv],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        status = json.loads((run / "status.json").read_text(encoding="utf-8"))
        self.statuses.append(status)
        return _ops_per_sec((run / "stdout").read_text(encoding="utf-8"))

    def within_one_run(self, arguments: tuple[str, ...], pairs: int) -> Pairs:
        """Neighbouring seconds of one run, with the supervisor running and stopped."""
        run = self._folder / f"run-{next(self._numbers)}"
        report = self._folder / f"{run.name}.csv"
        argv = self._argv((
            *arguments, f"--duration={2 * pairs + SETTLING_S}", "--report_interval_seconds=1",
            f"--report_file={report}",
        ))  # fmt: skip
        supervisor = subprocess.Popen(
            [*self._start(run), *argv], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        found = toggle(supervisor, report)
        if supervisor.wait() != 0:
            raise RuntimeError(f"db_bench under the supervisor ended with {supervisor.returncode}")
        return found

    def bare_ops(self, arguments: tuple[str, ...] | None = None) -> float:
        """The same without one; its output goes to files just the same."""
        printed = self._folder / "bare-stdout"
        with printed.open("wb") as out, (self._folder / "bare-stderr").open("wb") as err:
            argv = self._argv(self._arguments if arguments is None else arguments)
            subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        return _ops_per_sec(printed.read_text(encoding="utf-8"))

    def _start(self, run: Path) -> list[str]:
        return [
            self._supervisor, "start", "--foreground", "--run-dir", str(run),
            "--interval", str(INTERVAL_S), "--du", str(self._database),
            "--device-of", str(self._database), "--",
        ]  # fmt: skip

    def _argv(self, arguments: Sequence[str]) -> list[str]:
        return [self._program, f"--db={self._database}", *arguments]


def _ops_per_sec(text: str) -> float:
    results = [result for line in text.splitlines() if (result := parse_result(line))]
    if len(results) != 1 or "ops_per_sec" not in results[0].values:
        raise RuntimeError(f"db_bench printed no single result:\n{text[-2000:]}")
    return results[0].values["ops_per_sec"]
