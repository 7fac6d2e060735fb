"""Results, leases and pages: the same tests on SQLite and PostgreSQL."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from test_store_support import (
    ARTIFACT,
    COMMAND,
    END,
    FACTS,
    HANDLE,
    OTHER,
    OWNER,
    PARSED,
    End,
    add_sweep,
    begun_trial,
    make_job,
    postgresql_binaries,
    postgresql_database,
    postgresql_server,
    run_step,
    run_trial,
)

from benchrunner.errors import HostBusyError, StoreError
from benchrunner.model import (
    Measurement,
    Parsed,
    StepState,
    Taint,
    TrialState,
)
from benchrunner.store import open_store
from benchrunner.store.rows import ParsedStep

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchrunner.store.whole import Store

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    if postgresql_binaries() is None:
        pytest.skip("no PostgreSQL server is installed")
    pytest.importorskip("psycopg")
    yield from postgresql_server()


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path)
    return postgresql_database(request.getfixturevalue("server"), f"store_{next(NUMBERS)}")


@pytest.fixture
def store(where: str) -> Iterator[Store]:
    ticks = itertools.count(1000)
    with open_store(where, clock=lambda: float(next(ticks))) as opened:
        yield opened


# ---------------------------------------------------------------- results


def test_parsing_again_replaces_what_was_parsed(store: Store) -> None:
    trial_id = begun_trial(store)
    step_run_id = run_step(store, trial_id)
    steal = Taint("cpu-steal", "4.1 %", "use a quiet host")
    store.add_taints([steal], step_run_id=step_run_id)
    derived = (Measurement("readrandom", 1, None, "cpu_us_per_op", 3.5),)
    store.save_parsed(step_run_id, PARSED, parser="db_bench", parser_version="1", derived=derived)
    assert store.measurements(step_run_id) == {
        ("readrandom", 1, None, "ops_per_sec"): 136915.0,
        ("readrandom", 2, None, "ops_per_sec"): 136000.5,
        ("readwhilewriting", 1, "reader", "p99_us"): 12.25,
        (None, 1, None, "wall_s"): 60.1,
        ("readrandom", 1, None, "cpu_us_per_op"): 3.5,
    }
    assert store.taints(step_run_id) == (steal, *PARSED.taints)
    assert store.series([step_run_id]) == {step_run_id: dict(PARSED.series)}

    less = Parsed((Measurement("readrandom", 1, None, "ops_per_sec", 7.0),))
    state = store.save_parsed(step_run_id, less, parser="db_bench", parser_version="2")
    assert state == (StepState.OK, "")
    assert store.measurements(step_run_id) == {("readrandom", 1, None, "ops_per_sec"): 7.0}
    assert store.taints(step_run_id) == (steal,)
    assert store.series([step_run_id]) == {}


def test_a_trial_follows_its_steps_between_ok_and_invalid(store: Store) -> None:
    sweep_id = add_sweep(store)
    trial_id = store.trials(sweep_id)[0].id
    run_trial(store, trial_id)
    step_run_id = store.step_runs(trial_id)[0].id
    bad = replace(PARSED, problems=("p99 is below p50", "no uptime"))

    state = store.save_parsed(step_run_id, bad, parser="db_bench", parser_version="2")
    assert state == (StepState.INVALID, "p99 is below p50; no uptime")
    assert store.trial(trial_id).reason == "read: p99 is below p50; no uptime"
    assert store.trial_state(trial_id) is TrialState.INVALID
    assert store.step_run(step_run_id).problems == bad.problems
    store.save_parsed(step_run_id, PARSED, parser="db_bench", parser_version="3")
    assert store.trial_state(trial_id) is TrialState.OK
    assert [e.what for e in store.events(sweep_id)][-4:] == ["step-judged", "trial-judged"] * 2


def test_a_failed_step_stays_failed_whatever_is_parsed(store: Store) -> None:
    trial_id = begun_trial(store)
    step_run_id = store.begin_step(trial_id, "read", 1, COMMAND, "/runs/1")
    store.end_step(step_run_id, StepState.FAILED, End("it exited with status 1"))
    state = store.save_parsed(step_run_id, PARSED, parser="db_bench", parser_version="1")
    assert state == (StepState.FAILED, "it exited with status 1")
    told = replace(PARSED, complaint="put error: disk full")
    for _ in range(2):
        state = store.save_parsed(step_run_id, told, parser="db_bench", parser_version="1")
        assert state == (StepState.FAILED, "it exited with status 1: put error: disk full")
    assert len(store.measurements(step_run_id)) == 4


def test_numbers_that_are_none_are_refused(store: Store) -> None:
    step_run_id = run_step(store, begun_trial(store))
    number = PARSED.measurements[0]
    for values, text in (
        ((number._replace(value=math.inf),), "has the value inf for ops_per_sec"),
        ((number, number), "has two values for ops_per_sec"),
    ):
        with pytest.raises(StoreError, match=text):
            store.save_parsed(step_run_id, Parsed(values), parser="p", parser_version="1")
    assert store.measurements(step_run_id) == {}


def test_a_batch_is_stored_in_one_go(store: Store) -> None:
    trials = store.trials(add_sweep(store, repeat=3))
    ids = []
    for trial in trials:
        store.begin_trial(trial.id, artifact_id=None, facts_id=None, fence=None)
        ids.append(run_step(store, trial.id))
    assert store.save_parsed_batch(ParsedStep(i, PARSED, "db_bench", "1") for i in ids) == 12
    assert all(len(store.measurements(i)) == 4 for i in ids)
    assert store.save_parsed_batch([]) == 0


# ---------------------------------------------------------------- leases


def test_one_holder_at_a_time(store: Store) -> None:
    held = store.acquire_lease("local", OWNER)
    assert (held.fence, held.owner, store.lease("local")) == (1, OWNER, held)
    with pytest.raises(
        HostBusyError, match=r"in use by alice \(process 4242 on box\) since 1970-01-01"
    ):
        store.acquire_lease("local", OTHER)
    assert store.acquire_lease("db1", OTHER).fence == 1
    renewed = store.renew_lease(held)
    assert renewed.heartbeat_at > held.heartbeat_at
    store.release_lease(renewed)
    assert store.lease("local") is None
    assert store.acquire_lease("local", OTHER).fence == 2


def test_a_lease_is_taken_over_once(store: Store) -> None:
    held = store.acquire_lease("local", OWNER)
    taken = store.take_over_lease("local", held.fence, OTHER)
    assert taken.fence == 2
    with pytest.raises(HostBusyError, match=r"changed hands meanwhile \(fence 2, not 1\)"):
        store.take_over_lease("local", held.fence, OWNER)
    for use in (store.renew_lease, store.release_lease):
        with pytest.raises(StoreError, match="the lease of host 'local' is lost: fence 1"):
            use(held)


def test_a_controller_that_comes_back_from_the_dead_is_refused(where: str) -> None:
    with open_store(where) as old, open_store(where) as new:
        held = old.acquire_lease("local", OWNER)
        trial_id = begun_trial(old, fence=held.fence)
        step_run_id = old.begin_step(trial_id, "read", 1, COMMAND, "/runs/1")
        taken = new.take_over_lease("local", held.fence, OTHER)
        with pytest.raises(StoreError, match=r"was taken over \(fence 1, now 2\)"):
            old.end_step(step_run_id, StepState.OK, END)
        with pytest.raises(StoreError, match=r"was taken over \(fence 1, now 2\)"):
            old.begin_trial(trial_id, artifact_id=None, facts_id=None, fence=held.fence)
        with pytest.raises(StoreError, match=r"run by another controller \(fence 1\)"):
            new.end_step(step_run_id, StepState.OK, END)
        new.begin_trial(trial_id, artifact_id=None, facts_id=None, fence=taken.fence)
        with pytest.raises(StoreError, match=r"run by another controller \(fence 2\)"):
            old.end_step(step_run_id, StepState.OK, END)
        new.step_running(step_run_id, HANDLE)
        new.end_step(step_run_id, StepState.OK, END)
        new.end_trial(trial_id, TrialState.OK)
        assert [e.what for e in new.events(1)].count("trial-adopted") == 1


def test_a_trial_under_a_lease_cannot_be_adopted_without_one(where: str) -> None:
    with open_store(where) as old, open_store(where) as new:
        trial_id = begun_trial(old, fence=old.acquire_lease("local", OWNER).fence)
        with pytest.raises(StoreError, match="run by another controller"):
            new.begin_trial(trial_id, artifact_id=None, facts_id=None, fence=None)


# ---------------------------------------------------------------- pages


def test_a_page_shows_the_newest_sweep_of_every_cell(store: Store) -> None:
    store.save_artifact(ARTIFACT)
    store.save_facts(FACTS)
    old_version, dio = make_job(version="6.11.4"), make_job(variant="DIO")
    first = add_sweep(store, make_job(), old_version, make_job(workload="fio"), repeat=2)
    second = add_sweep(store, make_job(), dio, make_job(version="7.10.2"))
    for row in store.trials(first):
        run_trial(store, row.id)
    newest, skipped, planned = store.trials(second)
    store.begin_trial(newest.id, artifact_id="a1", facts_id="f1", fence=None)
    step_run_id = run_step(store, newest.id)
    store.save_parsed(step_run_id, PARSED, parser="db_bench", parser_version="1")
    store.add_taints([Taint("swap", "12 MiB", "add memory")], trial_id=newest.id)
    store.end_trial(newest.id, TrialState.OK)
    store.end_trial(skipped.id, TrialState.SKIPPED, "no O_DIRECT")

    page = store.page_rows("rocksdb-flash", host="local", scale="smoke")
    assert [(t.row.sweep_id, t.row.job.version, t.row.job.variant, t.row.repetition)
            for t in page.trials] == [
        (second, "7.2.2", "DIO", 1),
        (second, "7.2.2", "None", 1),
        (first, "6.11.4", "None", 1),
        (first, "6.11.4", "None", 2),
    ]  # fmt: skip
    shown = page.trials[1]
    assert (shown.artifact, shown.facts) == (ARTIFACT, FACTS)
    assert [taint.name for taint in shown.taints] == ["swap"]
    assert shown.steps[0].row == store.step_run(step_run_id)
    assert shown.steps[0].measurements == store.measurements(step_run_id)
    assert shown.steps[0].taints == PARSED.taints
    assert page.trials[0].steps == ()
    assert planned.id not in {t.row.id for t in page.trials}

    of_first = store.page_rows("rocksdb-flash", sweep_ids=[first])
    assert {t.row.sweep_id for t in of_first.trials} == {first}
    assert len(of_first.trials) == 4
    assert store.page_rows("rocksdb-flash", host="db1").trials == ()


def test_axis_values_make_cells_of_their_own(store: Store) -> None:
    jobs = [make_job(id=f"t{threads}", axes={"threads": threads}) for threads in (1, 16)]
    for row in store.trials(add_sweep(store, *jobs)):
        run_trial(store, row.id)
    page = store.page_rows("rocksdb-flash")
    assert [t.row.job.axes for t in page.trials] == [{"threads": 1}, {"threads": 16}]


def test_a_postgresql_store_locked_too_long(server: str) -> None:
    import psycopg

    where = postgresql_database(server, f"store_{next(NUMBERS)}")
    with open_store(where, lock_timeout_s=0.05) as store, psycopg.connect(where) as other:
        other.execute("LOCK TABLE sweep")
        with pytest.raises(StoreError, match="was locked by another client for too long"):
            add_sweep(store)
        other.rollback()
        assert store.sweeps() == ()
