"""Store figures: insert rate, page query, status query and process, file size, journal commit.

Builds 100 000 trials x 30 measurements in a temporary store and prints medians over repeats.
Run: ``python benchmarks/bench_store.py [--trials N] [--url URL]``.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import insert

from benchrunner.model import Job, Measurement, Parsed, Plan, PlannedTrial, SourceRef, StepState
from benchrunner.store import Store, open_store
from benchrunner.store.rows import ParsedStep
from benchrunner.store.schema import step_run, trial

if TYPE_CHECKING:
    from collections.abc import Callable

MEASUREMENTS = 30
VERSIONS = tuple(f"{major}.{minor}.1" for major in (6, 7) for minor in range(1, 13))
VARIANTS = ("None", "DIO")
WORKLOADS = tuple(f"workload-{number}" for number in range(10))
REPETITIONS = 3
BATCH = 500

STATUS_PROGRAM = """
import sys
import click
from benchrunner.store import open_store
with open_store(sys.argv[1], create=False) as store:
    sweep = store.latest_sweep()
    print(sweep.unfinished, store.counts_by_state(sweep.id))
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--trials", type=int, default=100_000)
    arguments.add_argument("--repeat", type=int, default=9)
    arguments.add_argument("--url", default="", help="an empty PostgreSQL database")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        where = options.url or folder
        with open_store(where) as store:
            count = fill(store, options.trials)
            report(store, count, options.repeat)
        if not options.url:
            files = (file.stat().st_size for file in Path(folder).iterdir())
            show("file size", sum(files) / 2**20, "MiB")
    with tempfile.TemporaryDirectory() as folder:
        report_status_process(folder, options.repeat)


def fill(store: Store, trials: int) -> int:
    """Nightly sweeps until there are enough trials; prints the insert rate of the measurements."""
    per_sweep = len(WORKLOADS) * len(VERSIONS) * len(VARIANTS) * REPETITIONS
    stored, seconds = 0, 0.0
    for night in range(math.ceil(trials / per_sweep)):
        sweep_id = store.add_sweep(plan(night), {"night": night})
        ids = finish(store, sweep_id)
        for start in range(0, len(ids), BATCH):
            items = [parsed(step_run_id, night) for step_run_id in ids[start : start + BATCH]]
            began = time.perf_counter()
            stored += store.save_parsed_batch(items)
            seconds += time.perf_counter() - began
    show("trials", stored / MEASUREMENTS, "")
    show("measurements", stored, "")
    show("insert", stored / seconds, "measurements/s")
    return stored


def plan(night: int) -> Plan:
    """One night: every workload, version and variant, three times."""
    cells = [(w, v, o, r) for w in WORKLOADS for v in VERSIONS for o in VARIANTS
             for r in range(1, REPETITIONS + 1)]  # fmt: skip
    trials = []
    for position, (workload, version, variant, repetition) in enumerate(cells, start=1):
        source = SourceRef("rocksdb", version, "git", f"v{version}")
        job = Job(
            id=f"{workload}-{version}-{variant}", workload=workload, engine="rocksdb",
            version=version, source=source, variant=variant, host="local", scale="smoke",
            params={"NUM_KEYS": 1000}, axes={}, steps=("readrandom",), policy="carry",
        )  # fmt: skip
        trials.append(PlannedTrial(f"{job.id}-{repetition}", job, repetition, position))
    return Plan(f"night-{night}", tuple(trials), loads=0, disk_bytes=None, seconds=None)


def finish(store: Store, sweep_id: int) -> list[int]:
    """Marks a sweep as run, behind the API: a hundred thousand commits are not the point."""
    with store._database.write("bench") as connection:  # noqa: SLF001
        mine = trial.c.sweep_id == sweep_id
        connection.execute(trial.update().where(mine).values(state="ok", ended_at=1.0))
        ids = connection.execute(trial.select().with_only_columns(trial.c.id).where(mine)).scalars()
        rows = [
            {"trial_id": trial_id, "attempt": 1, "step": "readrandom", "position": 1,
             "state": StepState.OK.value, "argv": ["db_bench"], "env": {}, "flags": [],
             "run_dir": "/r"}
            for trial_id in ids
        ]  # fmt: skip
        statement = insert(step_run).returning(step_run.c.id)
        return list(connection.execute(statement, rows).scalars())


def parsed(step_run_id: int, night: int) -> ParsedStep:
    """A step run with its measurements."""
    values = tuple(
        Measurement("readrandom", 1, None, f"metric_{number}", night + number / 7)
        for number in range(MEASUREMENTS)
    )
    return ParsedStep(step_run_id, Parsed(values), "db_bench", "1")


def report(store: Store, count: int, repeat: int) -> None:
    """Queries on the full store."""
    page = store.page_rows(WORKLOADS[0])
    numbers = sum(len(step.measurements) for row in page.trials for step in row.steps)
    show("page rows", len(page.trials), "trials")
    show("page numbers", numbers, f"of {count}")
    show("page query", median_ms(lambda: store.page_rows(WORKLOADS[0]), repeat), "ms")
    show("status query", median_ms(lambda: status(store), repeat), "ms")
    item = [parsed(page.trials[0].steps[0].row.id, 0)]
    show("save_parsed, one step", median_ms(lambda: store.save_parsed_batch(item), 50), "ms")
    commit = median_ms(lambda: store.save_setting("bench", time.time()), 50)
    show("durable commit", commit, "ms")


def report_status_process(folder: str, repeat: int) -> None:
    """A whole ``status`` process on 10 000 trials, with the bare interpreter beside it."""
    with open_store(folder) as store:
        for night in range(7):
            store.add_sweep(plan(night), {})
    program = [sys.executable, "-c", STATUS_PROGRAM, folder]
    imports = [sys.executable, "-c", "import click, sqlalchemy"]
    show("status process", median_ms(lambda: run(program), repeat), "ms")
    show("  of which imports", median_ms(lambda: run(imports), repeat), "ms (click, SQLAlchemy)")


def status(store: Store) -> None:
    newest = store.latest_sweep()
    store.counts_by_state(newest.id if newest else None)


def run(argv: list[str]) -> None:
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


def median_ms(action: Callable[[], object], repeat: int) -> float:
    seconds = []
    for _ in range(repeat):
        began = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds) * 1000


def show(name: str, value: float, unit: str) -> None:
    print(f"{name:<24}{value:>14,.1f} {unit}")


if __name__ == "__main__":
    main()
