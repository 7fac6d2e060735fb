"""Ctrl-C, SIGTERM, dead controllers and supervisors, two controllers: nothing is lost."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from fault_support import Bench, interrupt, wait_for

from benchrunner.model import StepState, TrialState

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path


def started(bench: Bench, steps: int, *arguments: str) -> subprocess.Popen[str]:
    """A sweep in whose trial so many steps have begun."""
    process = bench.start(*arguments)
    wait_for(f"step {steps}", lambda: sum(bench.executed().values()) >= steps)
    return process


def kill_controller(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=60)


def only_trial(bench: Bench) -> dict[str, Any]:
    (trial,) = bench.rows()
    return trial


def states(bench: Bench) -> list[tuple[str, str]]:
    return [(name, state) for name, state, _, _ in only_trial(bench)["steps"]]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_during_a_step(bench: Bench, number: int) -> None:
    process = started(bench, 2, *bench.sweep_arguments("fake", READ_MODE="hang-once"))
    code, stderr = interrupt(process, number)
    assert code == 130
    assert "error: interrupted during read\n" in stderr
    assert f"  try: benchrunner resume --data {bench.data}\n" in stderr
    assert not bench.orphans()
    assert states(bench) == [("load", "ok"), ("read", "interrupted")]
    with bench.store() as store:
        assert store.lease("local") is None
        assert [t.state for t in store.trials()] == [TrialState.RUNNING]

    resumed = bench.run("resume", "--format", "none")
    assert resumed.returncode == 0, resumed.stderr
    assert states(bench) == [("load", "ok"), ("read", "ok")]
    attempts = [key.partition("/")[2] for key in bench.executed()]
    assert attempts == ["1/01-load", "1/02-read", "2/01-load", "2/02-read"]
    assert set(bench.executed().values()) == {1}


def test_interrupted_twice_while_the_step_does_not_want_to_end(bench: Bench) -> None:
    process = started(bench, 2, *bench.sweep_arguments("fake", READ_MODE="stubborn-once"))
    process.send_signal(signal.SIGINT)
    log = bench.data / "work" / "trials"
    wait_for("the stop", lambda: "stop" in "".join(p.read_text() for p in supervisor_logs(log)))
    code, stderr = interrupt(process)
    assert code == 130
    assert "try: benchrunner resume" in stderr
    for pid in bench.orphans():
        # The supervisor is about to do this itself, when the grace period is over.
        os.kill(pid, signal.SIGKILL)
    resumed = bench.run("resume", "--format", "none")
    assert resumed.returncode == 0, resumed.stderr
    assert states(bench) == [("load", "ok"), ("read", "ok")]
    assert not bench.orphans()


def supervisor_logs(folder: Path) -> list[Path]:
    return list(folder.rglob("supervisor.log"))


def test_a_step_that_still_runs_is_adopted(bench: Bench) -> None:
    process = started(bench, 2, *bench.sweep_arguments("fake", PAUSE=1.5))
    kill_controller(process)
    assert bench.orphans(), "the step goes on without its controller"
    resumed = bench.run("resume", "--format", "none")
    assert resumed.returncode == 0, resumed.stderr
    assert "took over host local from " in resumed.stderr
    assert f", process {process.pid} on " in resumed.stderr
    assert list(bench.executed().values()) == [1, 1]
    assert states(bench) == [("load", "ok"), ("read", "ok")]


def test_a_step_that_ended_meanwhile_is_collected(bench: Bench) -> None:
    process = started(bench, 2, *bench.sweep_arguments("fake", PAUSE=0.6))
    kill_controller(process)
    ended = bench.data / "work" / "trials"
    wait_for("its end", lambda: list(ended.glob("*/runs/1/02-read/status.json")))
    assert bench.run("resume", "--format", "none").returncode == 0
    assert list(bench.executed().values()) == [1, 1]
    assert states(bench) == [("load", "ok"), ("read", "ok")]


@pytest.mark.parametrize(
    ("step", "mode", "expected"),
    [
        ("look", "READ_MODE", ["ok", "failed", "ok", "ok"]),
        ("load", "LOAD_MODE", ["failed", "skipped", "skipped", "skipped"]),
    ],
)
def test_a_killed_supervisor_loses_its_step(
    bench: Bench, step: str, mode: str, expected: list[str]
) -> None:
    arguments = bench.sweep_arguments("fake-chain", **{mode: "hang"})
    process = started(bench, expected.index("failed") + 1, *arguments)
    (record,) = (bench.data / "work" / "trials").glob(f"*/runs/1/*-{step}/command.json")
    os.kill(json.loads(record.read_text())["supervisor"]["pid"], signal.SIGKILL)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 1
    assert [state for _, state in states(bench)] == expected
    trial = only_trial(bench)
    assert trial["state"] == "failed"
    assert trial["reason"].startswith(f"{step}: it was lost: ")
    assert f"{step}: failed: it was lost" in stderr
    if step == "load":
        reason = "load did not finish, so the database is in an unknown state"
        assert trial["steps"][1][2] == reason
    assert not bench.orphans()


def test_a_step_stopped_from_outside(bench: Bench) -> None:
    process = started(bench, 2, *bench.sweep_arguments("fake", READ_MODE="hang"))
    (record,) = (bench.data / "work" / "trials").glob("*/runs/1/02-read/command.json")
    os.kill(json.loads(record.read_text())["supervisor"]["pid"], signal.SIGTERM)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "error: read was stopped from outside\n" in stderr


def test_a_second_controller_is_refused_and_a_left_step_is_respected(bench: Bench) -> None:
    first = started(bench, 2, *bench.sweep_arguments("fake", PAUSE=10))
    refused = bench.sweep("fake", "--no-wait", PAUSE=0.1)
    assert refused.returncode == 1
    assert " is in use by " in refused.stderr
    assert f", process {first.pid} on " in refused.stderr
    assert "  try: wait for it to end" in refused.stderr
    kill_controller(first)

    refused = bench.run("resume", "2", "--format", "none")
    assert refused.returncode == 1
    expected = (
        "error: step read of sweep 1 still runs on host local, left by a controller that is gone"
    )
    assert expected in refused.stderr

    resumed = bench.run("resume", "--format", "none")
    assert resumed.returncode == 0, resumed.stderr
    assert [trial["state"] for trial in bench.rows()] == ["ok", "ok"]
    assert set(bench.executed().values()) == {1}
    assert len(bench.executed()) == 4


def test_a_work_folder_that_somebody_deleted_starts_the_trial_again(bench: Bench) -> None:
    import shutil

    assert bench.sweep("fake", fault="step-stored").returncode == -9
    shutil.rmtree(bench.data / "work")
    resumed = bench.run("resume", "--format", "none")
    assert resumed.returncode == 0, resumed.stderr
    assert states(bench) == [("load", "ok"), ("read", "ok")]
    with bench.store() as store:
        (trial,) = store.trials()
        old = [s for s in store.step_runs(trial.id, include_superseded=True) if s.superseded]
    assert trial.attempt == 2
    assert [step.state for step in old] == [StepState.OK]


def test_the_restart_of_a_trial_can_be_killed_too(bench: Bench) -> None:
    process = started(bench, 2, *bench.sweep_arguments("fake", READ_MODE="hang-once"))
    assert interrupt(process)[0] == 130
    for fault in (
        "store-restart-trial", "store-take-over-lease", "stored-take-over-lease",
        "stored-restart-trial",
    ):  # fmt: skip
        assert bench.run("resume", "--format", "none", fault=fault).returncode == -9, fault
    assert bench.run("resume", "--format", "none").returncode == 0
    assert states(bench) == [("load", "ok"), ("read", "ok")]
    assert set(bench.executed().values()) == {1}
    with bench.store() as store:
        assert [trial.attempt for trial in store.trials()] == [2]


def test_places_that_were_chosen_hold_after_resume(bench: Bench) -> None:
    databases, wal = bench.folder / "databases", bench.folder / "wal"
    chosen = ["--db-dir", "databases", "--wal-dir", str(wal), "--keep-db"]
    assert bench.sweep("fake", *chosen, fault="step-begun:2").returncode == -9
    resumed = bench.run("resume", "--format", "none")
    assert resumed.returncode == 0, resumed.stderr
    assert list(bench.executed().values()) == [1, 1]
    (kept,) = databases.glob("trials/*/db/CURRENT")
    assert kept.read_text() == "loaded\n"
    assert list(wal.glob("trials/*/wal"))


def test_interrupted_during_a_build(bench: Bench) -> None:
    tree = bench.folder / "tree"
    tree.mkdir()
    (tree / "Makefile").write_text("fake_bench:\n")
    slow = ["sh", "-c", f"setsid sleep 600 & echo $$ >{bench.folder}/building; wait"]
    (bench.folder / "engines").mkdir()
    (bench.folder / "engines" / "slow.toml").write_text(
        'name = "slow"\ntitle = "Slow to build"\n[[source]]\nkind = "path"\n'
        f'[build]\ncommands = [{json.dumps(slow)}]\nkeep = ["fake_bench"]\n'
    )
    (bench.folder / "tools").mkdir()
    (bench.folder / "tools" / "slow_bench.toml").write_text(
        'name = "slow_bench"\nengine = "slow"\n'
    )
    (bench.folder / "workloads").mkdir()
    (bench.folder / "workloads" / "slow.toml").write_text(
        'name = "slow"\ntitle = "Slow"\nengine = "slow"\n[scale.published]\n'
        '[[steps]]\nname = "load"\ntool = "slow_bench"\nstate = "creates"\n'
    )
    process = bench.start("sweep", "slow", "--versions", str(tree), "--format", "none")
    wait_for("the build", (bench.folder / "building").exists)
    code, stderr = interrupt(process)
    assert code == 130, stderr
    assert "error: interrupted\n" in stderr
    assert f"  try: benchrunner resume --data {bench.data}\n" in stderr
    shell = bench.folder / "/proc" / (bench.folder / "building").read_text().strip()
    wait_for("the end of the compiler", lambda: not shell.exists())
    with bench.store() as store:
        assert [trial.state for trial in store.trials()] == [TrialState.PLANNED]
        assert store.lease("local") is None
