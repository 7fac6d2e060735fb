"""``kill -9`` within every change, and two processes at once: nothing lost, nothing double."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event
from test_store_support import COMMAND, END, HANDLE, OWNER, add_sweep, make_plan, run_step

from benchrunner import faults
from benchrunner.errors import HostBusyError, StoreError
from benchrunner.model import StepState, TrialState
from benchrunner.store import open_store
from benchrunner.store.engine import WRITES

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from benchrunner.store.whole import Store

ROOT = Path(__file__).parent.parent

WHOLE_TRIAL = """
    import sys
    from test_store_support import *
    from benchrunner.store import open_store
    with open_store(sys.argv[1]) as store:
        held = store.acquire_lease("local", OWNER)
        trial_id = begun_trial(store, fence=held.fence)
        step_run_id = run_step(store, trial_id)
        store.save_parsed(step_run_id, PARSED, parser="db_bench", parser_version="1")
        store.end_trial(trial_id, TrialState.OK)
        store.release_lease(held)
    print("survived")
"""

CHANGES = (
    "migrate", "acquire-lease", "add-sweep", "begin-trial", "begin-step", "step-running",
    "end-step", "save-keys", "save-parsed", "end-trial", "release-lease",
)  # fmt: skip

LOGGED = {
    "acquire-lease": "lease-acquired", "add-sweep": "sweep-planned", "begin-trial": "trial-begun",
    "begin-step": "step-begun", "step-running": "step-running", "end-step": "step-ended",
    "end-trial": "trial-ended", "release-lease": "lease-released",
}  # fmt: skip


def python(program: str, *arguments: str, fault: str = "") -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own, which a fault may end."""
    path = f"{ROOT}:{ROOT / 'tests'}"
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *arguments],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": path, faults.VARIABLE: fault},
    )  # fmt: skip


def check_consistency(store: Store) -> None:
    """Every state has its journal entry, and the other way round."""
    events = store.events()
    for row in store.trials():
        mine = [e.what for e in events if e.trial_id == row.id]
        assert mine.count("trial-begun") == (row.state is not TrialState.PLANNED)
        assert mine.count("trial-ended") == row.state.final
        for step in store.step_runs(row.id):
            assert mine.count("step-begun") == 1
            assert mine.count("step-ended") == step.state.final
            assert len(store.measurements(step.id)) == (4 if step.parsed_at else 0)


@pytest.mark.parametrize("change", CHANGES)
def test_a_kill_leaves_the_change_whole_or_not_at_all(tmp_path: Path, change: str) -> None:
    for moment, happened in (("store", False), ("stored", True)):
        folder = tmp_path / moment
        done = python(WHOLE_TRIAL, str(folder), fault=f"{moment}-{change}")
        assert (done.returncode, done.stdout) == (-9, ""), done.stderr
        with open_store(folder) as store:
            check_consistency(store)
            whats = [entry.what for entry in store.events()]
            if change in LOGGED:
                assert (LOGGED[change] in whats) == happened
            for later in CHANGES[CHANGES.index(change) + 1 :]:
                assert LOGGED.get(later) not in whats
            go_on(store)
            assert store.counts_by_state()[TrialState.OK] == 1
            check_consistency(store)


def go_on(store: Store) -> None:
    """What ``resume`` does, in short: adopts the dead controller's trial and finishes it."""
    held = store.lease("local")
    fence = (
        store.take_over_lease("local", held.fence, OWNER).fence
        if held
        else store.acquire_lease("local", OWNER).fence
    )
    if not store.sweeps():
        add_sweep(store)
    for row in store.trials(states={TrialState.PLANNED, TrialState.RUNNING}):
        store.begin_trial(row.id, artifact_id=None, facts_id=None, fence=fence)
        steps = store.step_runs(row.id)
        if not steps:
            run_step(store, row.id)
        for step in steps:
            if step.state is StepState.STARTING:
                store.step_running(step.id, HANDLE)
            if not step.state.final:
                store.end_step(step.id, StepState.OK, END)
        store.end_trial(row.id, TrialState.OK)


def test_without_a_fault_the_program_survives(tmp_path: Path) -> None:
    assert python(WHOLE_TRIAL, str(tmp_path)).stdout == "survived\n"


def test_two_processes_never_hold_one_host_and_fences_only_grow(tmp_path: Path) -> None:
    program = """
        import os, sys
        from test_store_support import OWNER
        from benchrunner.errors import HostBusyError
        from benchrunner.store import open_store
        got = 0
        with open_store(sys.argv[1]) as store:
            while got < 40:
                try:
                    held = store.acquire_lease("local", OWNER)
                except HostBusyError:
                    continue
                os.close(os.open(sys.argv[2], os.O_CREAT | os.O_EXCL))
                print(held.fence)
                os.unlink(sys.argv[2])
                store.release_lease(held)
                got += 1
    """
    open_store(tmp_path).close()
    argv = [
        sys.executable,
        "-c",
        textwrap.dedent(program),
        str(tmp_path),
        str(tmp_path / "exclusive"),
    ]
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    both = [subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    fences = [[int(line) for line in process.communicate()[0].split()] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert all(seen == sorted(seen) for seen in fences)
    assert sorted(fences[0] + fences[1]) == list(range(1, 81))


def test_a_stale_controller_in_another_process_is_refused(tmp_path: Path) -> None:
    program = """
        import sys
        from test_store_support import *
        from benchrunner.store import open_store
        with open_store(sys.argv[1]) as store:
            held = store.acquire_lease("local", OWNER)
            trial_id = begun_trial(store, fence=held.fence)
            step_run_id = store.begin_step(trial_id, "read", 1, COMMAND, "/runs/1")
            print(trial_id, step_run_id, flush=True)
            sys.stdin.read()
            store.end_step(step_run_id, StepState.OK, END)
    """
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    stale = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)], env=env, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert stale.stdout is not None
    trial_id, step_run_id = stale.stdout.readline().split()
    with open_store(tmp_path) as store:
        with pytest.raises(HostBusyError, match="in use by alice"):
            store.acquire_lease("local", OWNER)
        taken = store.take_over_lease("local", 1, OWNER)
        store.begin_trial(trial_id, artifact_id=None, facts_id=None, fence=taken.fence)
        _, errors = stale.communicate("")
        assert "is run by another controller (fence 2)" in errors
        assert store.step_run(int(step_run_id)).state is StepState.STARTING
        with pytest.raises(StoreError, match="was begun already"):
            store.begin_step(trial_id, "read", 1, COMMAND, "/runs/2")


def test_the_second_passage_of_a_fault_point_can_be_chosen(tmp_path: Path) -> None:
    program = """
        import sys
        from benchrunner import faults
        for passage in range(5):
            faults.point("elsewhere")
            print(passage, flush=True)
            faults.point("here")
    """
    for fault, printed in (("here", "0"), ("here:1", "0"), ("here:3", "012"), ("nowhere", "01234")):
        done = python(program, str(tmp_path), fault=fault)
        assert done.stdout.split() == list(printed)
        assert done.returncode == (0 if fault == "nowhere" else -9)


def test_a_fault_point_counts_down_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(faults.VARIABLE, "here:3")
    faults.point("there")
    faults.point("here")
    assert os.environ[faults.VARIABLE] == "here:2"
    monkeypatch.delenv(faults.VARIABLE)
    faults.point("here")


def test_a_plan_is_stored_before_anything_starts(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        sweep_id = store.add_sweep(make_plan(repeat=50), {})
    with open_store(tmp_path, create=False) as store:
        assert store.sweep(sweep_id).unfinished == 50


def test_changes_that_the_world_depends_on_are_synced(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        levels: list[str] = []

        @event.listens_for(store._database.engine, "commit")
        def note(connection: Connection) -> None:
            if connection.get_execution_options()[WRITES]:
                driver: Any = connection.connection.driver_connection
                (level,) = driver.execute("PRAGMA synchronous").fetchone()
                levels.append({1: "NORMAL", 2: "FULL"}[level])

        sweep_id = add_sweep(store)
        trial_id = store.trials(sweep_id)[0].id
        store.begin_trial(trial_id, artifact_id=None, facts_id=None, fence=None)
        step_run_id = store.begin_step(trial_id, "read", 1, COMMAND, "/runs/1")
        store.step_running(step_run_id, HANDLE)
        store.end_step(step_run_id, StepState.OK, END)
        store.end_trial(trial_id, TrialState.OK)
    assert levels == ["FULL", "NORMAL", "FULL", "NORMAL", "FULL", "FULL"]
