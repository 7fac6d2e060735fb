"""``store``: 100 000 trials x 30 measurements; each batch and query beside plain ``sqlite3``.

The bare side inserts and fetches the same rows in a table of the same shape without a store around
it: what the disk and SQLite alone take.
"""

from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING

from sqlalchemy import insert

from benchmarks.figures import Figure, Target
from benchmarks.pairs import Pairs, estimate, interleave
from benchrunner.model import Job, Measurement, Parsed, Plan, PlannedTrial, SourceRef, StepState
from benchrunner.store import open_store
from benchrunner.store.rows import ParsedStep
from benchrunner.store.schema import step_run, trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.processes import Options
    from benchrunner.store.whole import Store

MEASUREMENTS = 30
VERSIONS = tuple(f"{major}.{minor}.1" for major in (6, 7) for minor in range(1, 13))
VARIANTS = ("None", "DIO")
WORKLOADS = tuple(f"workload-{number}" for number in range(10))
REPETITIONS = 3
NIGHT = len(WORKLOADS) * len(VERSIONS) * len(VARIANTS) * REPETITIONS
BATCH = 500
BARE_TABLE = (
    "CREATE TABLE measurement (step_run_id INTEGER, key_id INTEGER, value REAL, "
    "PRIMARY KEY (step_run_id, key_id)) WITHOUT ROWID"
)


def store(options: Options) -> Iterator[Figure]:
    """Insert rate, page query, journal commit, size."""
    trials = 10 * NIGHT if options.quick else 100_000
    folder = options.directory / "store"
    with open_store(options.url or folder) as full, Bare(options.directory / "bare.db") as bare:
        pairs, count = fill(full, bare, trials)
        rates = [BATCH * MEASUREMENTS / each for each in pairs.ours]
        yield Figure(
            "store insert", estimate(rates), "measurements/s", Target(at_least=50_000),
            pairs.ratio, "plain sqlite3, in time", f"{count:,} in all",
        )  # fmt: skip
        yield page_query(full, bare, options.count(21, 5))
        commits = [timed(lambda: full.save_setting("bench", time.time())) for _ in range(51)]
        yield Figure("store durable commit", estimate(commits).scaled(1000), "ms")
    if not options.url:
        size = sum(file.stat().st_size for file in folder.iterdir())
        bytes_each = estimate([size / count])
        yield Figure("store size", bytes_each, "bytes/measurement", note=f"{size / 2**20:,.0f} MiB")


def page_query(full: Store, bare: Bare, count: int) -> Figure:
    """Everything that the page of one workload shows."""
    page = full.page_rows(WORKLOADS[0])
    ids = [step.row.id for row in page.trials for step in row.steps]
    numbers = sum(len(step.measurements) for row in page.trials for step in row.steps)
    if numbers != len(VERSIONS) * len(VARIANTS) * REPETITIONS * MEASUREMENTS:
        raise RuntimeError(f"the page query gives {numbers} numbers")
    pairs = interleave(
        lambda: timed(lambda: full.page_rows(WORKLOADS[0])), lambda: timed(lambda: bare.fetch(ids)),
        count,
    )  # fmt: skip
    return Figure(
        "store page query", estimate(pairs.ours).scaled(1000), "ms", Target(at_most=200),
        pairs.ratio, "plain sqlite3", f"{len(page.trials)} trials, {numbers:,} numbers",
    )  # fmt: skip


class Bare:
    """The same numbers in SQLite without a store around them."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute(BARE_TABLE)

    def __enter__(self) -> Bare:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._connection.close()

    def insert(self, items: list[ParsedStep]) -> None:
        """One transaction, as the store makes one."""
        rows = [
            (item.step_run_id, key, measured.value)
            for item in items
            for key, measured in enumerate(item.parsed.measurements)
        ]
        with self._connection:
            self._connection.executemany("INSERT INTO measurement VALUES (?, ?, ?)", rows)

    def fetch(self, ids: list[int]) -> int:
        """The numbers of these step runs."""
        marks = ",".join("?" * len(ids))
        statement = f"SELECT * FROM measurement WHERE step_run_id IN ({marks})"  # noqa: S608
        return len(self._connection.execute(statement, ids).fetchall())


def fill(full: Store, bare: Bare, trials: int) -> tuple[Pairs, int]:
    """Nightly sweeps until there are enough trials, batches in alternating order."""
    ours: list[float] = []
    others: list[float] = []
    count = 0
    for night in range(-(-trials // NIGHT)):
        ids = add_night(full, night)
        for start in range(0, len(ids) - BATCH + 1, BATCH):
            items = [parsed(each, night) for each in ids[start : start + BATCH]]
            pair = interleave(
                lambda items=items: timed(lambda: full.save_parsed_batch(items)),  # type: ignore[misc]
                lambda items=items: timed(lambda: bare.insert(items)),  # type: ignore[misc]
                1, warm_up=False,
            )  # fmt: skip
            ours += pair.ours
            others += pair.bare
        rest = [parsed(each, night) for each in ids[len(ids) // BATCH * BATCH :]]
        full.save_parsed_batch(rest)
        bare.insert(rest)
        count += len(ids) * MEASUREMENTS
    return Pairs(tuple(ours), tuple(others)), count


def add_night(full: Store, night: int, share: float = 1.0) -> list[int]:
    """One night's sweep, of which this share has run; returns the numbers of its step runs.

    The plan goes in as a controller stores it; its trials end behind the API, because a hundred
    thousand synced commits are the overhead's figure and not the store's.
    """
    sweep_id = full.add_sweep(plan(night), {"night": night})
    ended = (trial.c.sweep_id == sweep_id) & (trial.c.position <= NIGHT * share)
    with full._database.write("bench") as connection:  # noqa: SLF001
        connection.execute(trial.update().where(ended).values(state="ok", ended_at=1.0))
        ids = connection.execute(
            trial.select().with_only_columns(trial.c.id).where(ended)
        ).scalars()
        rows = [
            {"trial_id": trial_id, "attempt": 1, "step": "readrandom", "position": 1,
             "state": StepState.OK.value, "argv": ["db_bench"], "env": {}, "flags": [],
             "run_dir": "/r"}
            for trial_id in ids
        ]  # fmt: skip
        statement = insert(step_run).returning(step_run.c.id)
        return list(connection.execute(statement, rows).scalars())


def plan(night: int) -> Plan:
    """Every workload, version and variant, three times."""
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


def parsed(step_run_id: int, night: int) -> ParsedStep:
    """A step run with its measurements."""
    values = tuple(
        Measurement("readrandom", 1, None, f"metric_{number}", night + number / 7)
        for number in range(MEASUREMENTS)
    )
    return ParsedStep(step_run_id, Parsed(values), "db_bench", "1")


def timed(action: Callable[[], object]) -> float:
    """Wall time of a call, seconds."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
