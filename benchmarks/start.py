"""``help`` and ``status``: how soon the command line answers, against bare interpreters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.figures import Figure, Target
from benchmarks.pairs import estimate, interleave
from benchmarks.processes import benchrunner, output, python, seconds
from benchmarks.store import NIGHT, add_night
from benchrunner.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.processes import Options

STATUS_TRIALS = 10_000


def help_text(options: Options) -> Iterator[Figure]:
    """``benchrunner --help`` against ``python -c pass``."""
    ours, bare = benchrunner("--help"), python("pass")
    pairs = interleave(lambda: seconds(ours), lambda: seconds(bare), options.count(41, 5))
    yield Figure(
        "help", estimate(pairs.ours).scaled(1000), "ms", Target(at_most=80), pairs.ratio,
        "python -c pass",
    )  # fmt: skip


def status(options: Options) -> Iterator[Figure]:
    """``benchrunner status`` on seven nights of sweeps, the last of them half done."""
    folder = options.directory / "status"
    nights = -(-STATUS_TRIALS // NIGHT)
    with open_store(folder) as store:
        for night in range(nights):
            add_night(store, night, share=0.5 if night == nights - 1 else 1.0)
    ours = benchrunner("status", "--data", str(folder))
    if " ok" not in output(ours):
        raise RuntimeError("status does not show the sweeps that were stored")
    bare = python("import click, sqlalchemy")
    pairs = interleave(lambda: seconds(ours), lambda: seconds(bare), options.count(41, 5))
    yield Figure(
        "status", estimate(pairs.ours).scaled(1000), "ms", Target(at_most=250), pairs.ratio,
        'python -c "import click, sqlalchemy"', f"{nights * NIGHT:,} trials",
    )  # fmt: skip
