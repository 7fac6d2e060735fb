"""``overhead``: what a trial costs on top of its command, with the durable journal.

A sweep of N and one of 2N trials of a trivial command, by the real command line: the difference of
their wall times over N is the price of one more trial, whatever starting up takes. Beside each such
pair of sweeps, the bare command is started N times.
"""

from __future__ import annotations

import os
import subprocess
import time
from itertools import count
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, Target, number
from benchmarks.pairs import estimate, interleave
from benchmarks.processes import benchrunner, output, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.processes import Options

PROGRAM = "echo"
CATALOG = {
    "engines/trivial.toml": f"""
name = "trivial"
title = "A program that does nothing"
[[source]]
kind = "system"
binary = "{PROGRAM}"
""",
    "tools/trivial.toml": f"""
name = "trivial"
engine = "trivial"
binary = "{PROGRAM}"
argv = ["{{binary}}"]
[[output]]
pattern = 'ops_per_sec=(?P<ops_per_sec>\\d+)'
require = ["ops_per_sec"]
""",
    "workloads/trivial.toml": """
name = "trivial"
title = "One trivial step"
engine = "trivial"
default_scale = "one"
[scale.one]
[[steps]]
name = "only"
tool = "trivial"
state = "creates"
args = { ops_per_sec = 42 }
""",
}


def overhead(options: Options) -> Iterator[Figure]:
    """Milliseconds a trial beyond its command, and what one fsync takes here."""
    folder = options.directory / "overhead"
    for name, text in CATALOG.items():
        path = folder / "catalog" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sweeps = _Sweeps(folder, 5 if options.quick else 60)
    pairs = interleave(sweeps.slope_s, sweeps.bare_s, options.count(8))
    startup = estimate(sweeps.startups_s).median
    synced = estimate([fsync_s(folder / "synced") for _ in range(51)]).scaled(1000)
    yield Figure(
        "overhead", pairs.difference.scaled(1000), "ms/trial", Target(at_most=20), pairs.ratio,
        "the bare command", f"sweeps of {sweeps.trials} and {2 * sweeps.trials}; the command "
        f"{number(estimate(pairs.bare).median * 1000)} ms, startup {number(startup)} s",
    )  # fmt: skip
    yield Figure("fsync", synced, "ms", note="append 4 KiB and fsync, for comparison")


class _Sweeps:
    """Both sides of a pair."""

    def __init__(self, folder: Path, trials: int) -> None:
        self.trials = trials
        self.startups_s: list[float] = []
        self._folder = folder
        self._numbers = count()
        self._sweeps = count(1)

    def slope_s(self) -> float:
        """Wall time of one more trial: the long sweep goes first every second time."""
        sizes = [self.trials, 2 * self.trials]
        if next(self._numbers) % 2:
            sizes.reverse()
        taken = {size: self._sweep_s(size) for size in sizes}
        slope = (taken[2 * self.trials] - taken[self.trials]) / self.trials
        self.startups_s.append(taken[self.trials] - self.trials * slope)
        return slope

    def bare_s(self) -> float:
        """Wall time of the command alone."""
        argv = [PROGRAM, "--ops_per_sec=42"]
        began = time.perf_counter()
        for _ in range(self.trials):
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        return (time.perf_counter() - began) / self.trials

    def _sweep_s(self, trials: int) -> float:
        """Wall time of a whole sweep into a store of its own."""
        data = self._folder / f"data-{next(self._sweeps)}"
        taken = seconds(
            benchrunner(
                "sweep", "trivial", "--catalog", str(self._folder / "catalog"),
                "--data", str(data), "--cache", str(self._folder / "cache"),
                "--repeat", str(trials), "--format", "none", "--quiet",
            )
        )  # fmt: skip
        if f"{trials} ok" not in output(benchrunner("status", "--data", str(data))):
            raise RuntimeError(f"not all of {trials} trivial trials ended well")
        # It stays: ext4 does not give an inode away again for five seconds, and steps over those of
        # thousands of files, were they deleted here, whenever the next sweep makes one.
        return taken


def fsync_s(path: Path) -> float:
    """Appends 4 KiB and waits until they are on the device."""
    with path.open("ab") as file:
        file.write(bytes(4096))
        file.flush()
        began = time.perf_counter()
        os.fsync(file.fileno())
        return time.perf_counter() - began
