"""What every store does, whichever database keeps it: the same tests on SQLite and PostgreSQL."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_store_support import (
    ARTIFACT,
    COMMAND,
    END,
    FACTS,
    HANDLE,
    PARSED,
    End,
    add_sweep,
    begun_trial,
    make_job,
    make_plan,
    postgresql_binaries,
    postgresql_database,
    postgresql_server,
    run_step,
    run_trial,
)

from benchrunner.errors import StoreError
from benchrunner.model import (
    Plan,
    StepState,
    TrialState,
)
from benchrunner.store import open_store
from benchrunner.store.rows import MEMORY, CeilingRow, ServerSeen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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


# ---------------------------------------------------------------- records


def test_a_sweep_is_stored_whole_and_read_back(store: Store) -> None:
    jobs = (make_job(), make_job(version="6.11.4", axes={"threads": 16, "größe": [1, "1G", None]}))
    plan = make_plan(*jobs, repeat=2)
    sweep_id = store.add_sweep(
        plan, {"set": {"NUM_KEYS": 5}}, command_line=("sweep", "Ω"), baseline={"version": "6.11.4"}
    )

    row = store.latest_sweep()
    assert row is not None
    assert (row.id, row.name, row.command_line, row.unfinished) == (
        sweep_id,
        "nightly",
        ("sweep", "Ω"),
        4,
    )
    assert (row.spec, row.baseline) == ({"set": {"NUM_KEYS": 5}}, {"version": "6.11.4"})
    assert (row.loads, row.disk_bytes, row.seconds) == (4, 10**9, None)
    assert row.skipped == (("7.99", "no source has it"),)
    trials = store.trials(sweep_id)
    assert [t.job for t in trials] == [planned.job for planned in plan.trials]
    assert [t.planned().position for t in trials] == [1, 2, 3, 4]
    assert store.trial(trials[0].id) == trials[0]
    assert store.counts_by_state(sweep_id)[TrialState.PLANNED] == 4
    assert [e.what for e in store.events(sweep_id)] == ["sweep-planned"]


def test_where_services_ran_is_stored(store: Store) -> None:
    add_sweep(store, make_job(host="alpha", server="beta"))
    (trial,) = store.trials()
    assert (trial.job.server, trial.server_address, trial.server_facts_id) == ("beta", None, None)
    here, there = replace(FACTS, host="alpha"), replace(FACTS, id="f2", host="beta")
    for facts in (here, there):
        store.save_facts(facts)
        assert store.last_facts(facts.host) is None
    seen = ServerSeen("f2", "10.0.0.2")
    store.begin_trial(trial.id, artifact_id=None, facts_id="f1", fence=None, server=seen)
    store.begin_step(trial.id, "server", 2, COMMAND, "/runs/2", "beta")
    run_step(store, trial.id)
    begun = store.trial(trial.id)
    assert (begun.server_address, begun.server_facts_id) == ("10.0.0.2", "f2")
    assert {row.step: row.host for row in store.step_runs(trial.id)} == {
        "server": "beta", "read": None,
    }  # fmt: skip
    assert (store.last_facts("alpha"), store.last_facts("beta")) == (here, there)


def test_cells_with_servers_elsewhere_are_cells_of_their_own(store: Store) -> None:
    store.save_facts(replace(FACTS, host="beta"))
    for server in ("", "beta"):
        (trial,) = store.trials(add_sweep(store, make_job(server=server)))
        seen = ServerSeen("f1", "10.0.0.2") if server else None
        store.begin_trial(trial.id, artifact_id=None, facts_id=None, fence=None, server=seen)
        run_step(store, trial.id)
        store.end_trial(trial.id, TrialState.OK)
    beside, apart = store.page_rows("rocksdb-flash").trials
    assert (beside.row.job.server, beside.server_facts) == ("", None)
    assert apart.row.job.server == "beta"
    assert apart.server_facts is not None
    assert apart.server_facts.host == "beta"


def test_the_same_plan_can_be_swept_every_night(store: Store) -> None:
    first, second = add_sweep(store), add_sweep(store)

    assert [s.id for s in store.sweeps()] == [second, first]
    assert store.trials(first)[0].id != store.trials(second)[0].id
    assert len(store.trials()) == 2
    run_trial(store, store.trials(first)[0].id)
    assert [s.id for s in store.unfinished_sweeps()] == [second]
    assert store.sweep(first).unfinished == 0
    assert store.counts_by_state()[TrialState.OK] == 1
    assert [t.sweep_id for t in store.trials(states={TrialState.OK})] == [first]


def test_an_empty_store_knows_nothing(store: Store) -> None:
    assert store.latest_sweep() is None
    assert (store.sweeps(), store.running_steps(), store.events()) == ((), (), ())
    assert store.page_rows("rocksdb-flash").trials == ()
    assert (store.artifact("a"), store.facts("f"), store.setting("k"), store.lease("h")) == (
        None,
    ) * 4
    for ask, text in (
        (lambda: store.sweep(7), "there is no sweep 7"),
        (lambda: store.trial("x"), "there is no trial 'x'"),
        (lambda: store.attempt("x"), "there is no trial 'x'"),
        (lambda: store.step_run(7), "there is no step run 7"),
    ):
        with pytest.raises(StoreError, match=text):
            ask()


def test_a_plan_that_cannot_be_told_apart_is_refused(store: Store) -> None:
    plan = make_plan()
    with pytest.raises(StoreError, match="lists trial job-r1 twice"):
        store.add_sweep(replace(plan, trials=plan.trials * 2), {})
    with pytest.raises(StoreError, match="sweep 'empty' has no trials"):
        store.add_sweep(Plan("empty", (), 0, None, None), {})
    with pytest.raises(StoreError, match="cannot be stored as JSON"):
        store.add_sweep(plan, {"value": math.nan})
    assert store.sweeps() == ()


def test_artifacts_facts_ceilings_and_settings(store: Store) -> None:
    store.save_artifact(replace(ARTIFACT, state="failed", reason="cc1plus: killed"))
    store.save_artifact(ARTIFACT)
    store.save_facts(FACTS)
    store.save_facts(replace(FACTS, taken_at=2000.0))
    assert store.artifact("a1") == ARTIFACT
    assert store.facts("f1") == FACTS

    trial_id = begun_trial(store)
    step_run_id = run_step(store, trial_id)
    for value in (1.0, 2.0):
        store.add_ceiling(CeilingRow("local", "vda", "write_mb_per_sec", value, 5.0, step_run_id))
    store.add_ceiling(CeilingRow("local", "vda", "read_mb_per_sec", 9.0, 5.0, None))
    store.add_ceiling(CeilingRow("local", "vda", "read_mb_per_sec", 7.0, 5.0, None, 65536))
    assert store.ceilings("local") == (
        CeilingRow(
            "local", "vda", "write_mb_per_sec", 2.0, 5.0, step_run_id, None, "rocksdb-flash", "read"
        ),
        CeilingRow("local", "vda", "read_mb_per_sec", 9.0, 5.0, None),
        CeilingRow("local", "vda", "read_mb_per_sec", 7.0, 5.0, None, 65536),
    )
    store.add_ceiling(CeilingRow("local", "vdb", "read_mb_per_sec", 3.0, 5.0, None))
    store.add_ceiling(CeilingRow("local", MEMORY, "bandwidth_mb_per_sec", 8.0, 5.0, None))
    seen = [(one.device, one.value) for one in store.ceilings("local", "vdb")]
    assert seen == [("vdb", 3.0), (MEMORY, 8.0)]
    store.save_setting("k", {"a": 1})
    store.save_setting("k", ["b"])
    assert store.setting("k") == ["b"]


@settings(
    max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(
    text=st.text(st.characters(), max_size=20),
    axes=st.dictionaries(
        st.text(st.characters(), max_size=5), st.integers() | st.text() | st.booleans()
    ),
)
def test_any_text_and_any_axes_can_be_stored(store: Store, text: str, axes: dict[str, Any]) -> None:
    job = make_job(id=f"job-{next(NUMBERS)}", axes=axes)
    trial_id = store.trials(add_sweep(store, job))[0].id
    store.end_trial(trial_id, TrialState.SKIPPED, "because " + text)

    row = store.trial(trial_id)
    assert row.job.axes == axes
    plain = "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in text)
    assert row.reason == "because " + plain


# ---------------------------------------------------------------- states


def test_a_trial_from_its_beginning_to_its_end(store: Store) -> None:
    store.save_artifact(ARTIFACT)
    store.save_facts(FACTS)
    sweep_id = add_sweep(store)
    trial_id = store.trials(sweep_id)[0].id
    store.begin_trial(trial_id, artifact_id="a1", facts_id="f1", fence=None)
    step_run_id = store.begin_step(trial_id, "read", 1, COMMAND, "/runs/1")
    assert [(s.id, s.state) for s in store.running_steps()] == [(step_run_id, StepState.STARTING)]
    store.step_running(step_run_id, HANDLE)
    assert store.running_steps()[0].pid == 1234
    store.end_step(step_run_id, StepState.OK, END)
    store.save_parsed(step_run_id, PARSED, parser="db_bench", parser_version="3")
    store.end_trial(trial_id, TrialState.OK)

    step = store.step_run(step_run_id)
    assert (step.argv, step.env, step.flags) == (COMMAND.argv, COMMAND.env, COMMAND.flags)
    assert (step.exit_code, step.signal, step.status) == (0, None, END.status)
    assert (step.raw_path, step.raw_sha256, step.options) == ("raw/1", "ab" * 32, {"same": True})
    assert (step.parser, step.parser_version, step.facts) == ("db_bench", "3", {"version": "7.2.2"})
    assert store.parsable_steps(sweep_id) == store.parsable_steps() == (step,)
    trial = store.trial(trial_id)
    assert (trial.state, trial.artifact_id, trial.facts_id) == (TrialState.OK, "a1", "f1")
    assert [e.what for e in store.events(sweep_id)] == [
        "sweep-planned", "trial-begun", "step-begun", "step-running", "step-ended", "trial-ended",
    ]  # fmt: skip
    assert store.events(sweep_id)[-1].detail == {"state": "ok", "reason": "", "attempt": 1}


def test_a_step_begins_once_in_an_attempt(store: Store) -> None:
    trial_id = begun_trial(store)
    step_run_id = run_step(store, trial_id)
    with pytest.raises(StoreError, match=rf"begun already \(step run {step_run_id}, ok\)"):
        store.begin_step(trial_id, "read", 1, COMMAND, "/runs/other")
    assert len(store.step_runs(trial_id)) == 1


def test_a_restart_keeps_the_old_attempt_out_of_sight(store: Store) -> None:
    trial_id = begun_trial(store)
    old = run_step(store, trial_id)
    store.restart_trial(trial_id, "the read step was interrupted")
    assert (store.attempt(trial_id), store.trial_state(trial_id)) == (2, TrialState.RUNNING)
    assert store.step_runs(trial_id) == ()
    new = run_step(store, trial_id)
    store.end_trial(trial_id, TrialState.FAILED, "it exited with status 1")

    assert [s.id for s in store.step_runs(trial_id)] == [new]
    assert [(s.id, s.attempt) for s in store.step_runs(trial_id, include_superseded=True)] == [
        (old, 1), (new, 2),
    ]  # fmt: skip
    store.restart_trial(trial_id, "asked for again")
    row = store.trial(trial_id)
    assert (row.state, row.attempt, row.reason, row.ended_at) == (TrialState.PLANNED, 3, "", None)
    store.save_parsed(old, PARSED, parser="db_bench", parser_version="2")
    assert store.trial_state(trial_id) is TrialState.PLANNED


ILLEGAL: list[tuple[str, Callable[[Store, str, int], object]]] = [
    (
        "cannot become running: it is running",
        lambda s, t, _: s.end_trial(t, TrialState.RUNNING, "x"),
    ),
    ("step read of trial .* still runs", lambda s, t, _: s.end_trial(t, TrialState.OK)),
    ("step read of trial .* still runs", lambda s, t, _: s.restart_trial(t, "x")),
    ("cannot become failed without a reason", lambda s, t, _: s.end_trial(t, TrialState.FAILED)),
    (
        "cannot become running: it is starting",
        lambda s, _, i: s.end_step(i, StepState.RUNNING, END),
    ),
    (
        "cannot become invalid: it is starting",
        lambda s, _, i: s.end_step(i, StepState.INVALID, END),
    ),
    ("cannot become failed without a reason", lambda s, _, i: s.end_step(i, StepState.FAILED, END)),
    ("has not ended", lambda s, _, i: s.save_parsed(i, PARSED, parser="p", parser_version="1")),
    ("there is no step run 77", lambda s, _, __: s.end_step(77, StepState.OK, END)),
    (
        "there is no step run 77",
        lambda s, _, __: s.save_parsed(77, PARSED, parser="p", parser_version="1"),
    ),
    ("there is no trial 'x'", lambda s, _, __: s.end_trial("x", TrialState.OK)),
    (
        "either to a step run or to a trial",
        lambda s, t, i: s.add_taints([], step_run_id=i, trial_id=t),
    ),
]


@pytest.mark.parametrize(("text", "change"), ILLEGAL)
def test_what_does_not_follow_is_refused_and_changes_nothing(
    store: Store, text: str, change: Callable[[Store, str, int], object]
) -> None:
    trial_id = begun_trial(store)
    step_run_id = store.begin_step(trial_id, "read", 1, COMMAND, "/runs/1")
    before = (store.trials(), store.running_steps(), store.events())
    with pytest.raises(StoreError, match=text):
        change(store, trial_id, step_run_id)
    assert (store.trials(), store.running_steps(), store.events()) == before


def test_nothing_follows_an_end(store: Store) -> None:
    trial_id = begun_trial(store)
    step_run_id = store.begin_step(trial_id, "read", 1, COMMAND, "/runs/1")
    store.step_running(step_run_id, HANDLE)
    with pytest.raises(StoreError, match=r"is not starting \(running\)"):
        store.step_running(step_run_id, HANDLE)
    with pytest.raises(StoreError, match="cannot become skipped: it is running"):
        store.end_step(step_run_id, StepState.SKIPPED, End("no need"))
    store.end_step(step_run_id, StepState.TIMEOUT, End("after 60 s"))
    with pytest.raises(StoreError, match="cannot become ok: it is timeout"):
        store.end_step(step_run_id, StepState.OK, END)
    store.end_trial(trial_id, TrialState.TIMEOUT, "read: after 60 s")
    with pytest.raises(StoreError, match="cannot become ok: it is timeout"):
        store.end_trial(trial_id, TrialState.OK)
    with pytest.raises(StoreError, match=r"has ended \(timeout\)"):
        store.begin_trial(trial_id, artifact_id=None, facts_id=None, fence=None)
    with pytest.raises(StoreError, match=r"is not running \(timeout\)"):
        store.begin_step(trial_id, "other", 2, COMMAND, "/runs/2")


def test_a_planned_trial_can_be_skipped_but_not_succeed(store: Store) -> None:
    trial_id = store.trials(add_sweep(store))[0].id
    with pytest.raises(StoreError, match="cannot become ok: it is planned"):
        store.end_trial(trial_id, TrialState.OK)
    with pytest.raises(StoreError, match="has not begun"):
        store.restart_trial(trial_id, "why not")
    store.end_trial(trial_id, TrialState.SKIPPED, "no O_DIRECT on tmpfs")
    assert store.trial(trial_id).reason == "no O_DIRECT on tmpfs"
