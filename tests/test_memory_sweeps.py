"""Sweeps with databases in memory: killed, interrupted, cleaned up after; no mount is ever left."""

from __future__ import annotations

import subprocess
import sys
import tempfile

import pytest
from fault_support import Bench, interrupt, wait_for
from memory_support import as_root, mounts, nothing_stays_mounted
from remote_support import RemoteBench, check_clean, remote

from benchrunner.memory_disk import SHARED

__all__ = ["nothing_stays_mounted", "remote"]
pytestmark = as_root


def check_done(bench: Bench) -> None:
    """Every step once, on the database that it should have, and nothing is left."""
    (trial,) = bench.rows()
    assert (trial["state"], trial["reason"]) == ("ok", "")
    seen = {line.split()[0][-4:]: line.split()[1:3] for line in bench.log.read_text().splitlines()}
    assert list(seen.values()) == [
        ["sst=0", "current="],
        ["sst=2", "current=loaded"],
        ["sst=0", "current="],  # the second load has a database of its own
        ["sst=2", "current=loaded"],
    ]
    assert mounts(bench.folder) == []
    assert not (bench.data / "work" / "memory").exists()
    assert not list((bench.data / "work" / "trials").iterdir())
    assert not bench.orphans()


def hosts(bench: Bench, verb: str) -> str:
    """What ``benchrunner hosts VERB local`` prints."""
    argv = [sys.executable, "-m", "benchrunner", "hosts", verb, "local", "--data", str(bench.data),
            "--cache", str(bench.cache)]  # fmt: skip
    done = subprocess.run(
        argv, env=bench.environment(), cwd=bench.folder, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_sweep_leaves_no_mount(bench: Bench) -> None:
    done = bench.sweep("fake-memory")
    assert done.returncode == 0, done.stderr
    check_done(bench)
    with bench.store() as store:
        (trial,) = store.trials()
        argv = [step.argv for step in store.step_runs(trial.id)]
    db = next(word for word in argv[0] if word.startswith("--db="))
    assert db == f"--db={bench.data}/work/memory/trials/{trial.id}/db"


def test_plan_says_where_the_databases_will_be(bench: Bench) -> None:
    done = bench.run("plan", "fake-memory")
    assert done.returncode == 0, done.stderr
    assert "databases in memory: about " in done.stdout
    assert "on a tmpfs that is mounted for the sweep, or in --db-dir" in done.stdout


def test_logs_in_memory_are_marked_on_the_page(bench: Bench) -> None:
    with tempfile.TemporaryDirectory(prefix="benchrunner-wal-", dir=SHARED) as logs:
        done = bench.sweep("fake-memory", "--wal-dir", logs, "--format", "markdown")
    assert done.returncode == 0, done.stderr
    page = bench.data / "pages" / "fake-memory" / "README.md"
    assert f"wal-in-memory: write-ahead logs are in {SHARED}/benchrunner-wal-" in page.read_text()


@pytest.mark.parametrize(
    "fault",
    ["memory-disk-mounted", "step-started:2", "database-emptied", "step-ended:3",
     "database-removed"],
)  # fmt: skip
def test_kill_then_resume_leaves_no_mount(bench: Bench, fault: str) -> None:
    killed = bench.sweep("fake-memory", fault=fault)
    assert killed.returncode == -9, killed.stderr
    resumed = bench.run("resume", "--format", "none")
    assert resumed.returncode == 0, resumed.stderr
    check_done(bench)


def test_an_interrupted_sweep_leaves_no_mount(bench: Bench) -> None:
    process = bench.start(*bench.sweep_arguments("fake-memory", PAUSE="2"))
    wait_for("the first step", bench.executed)
    code, _ = interrupt(process)
    assert code == 130
    assert mounts(bench.folder) == []
    resumed = bench.run("resume", "--format", "none")
    assert resumed.returncode == 0, resumed.stderr
    assert mounts(bench.folder) == []


def test_kill_after_the_last_trial_leaves_no_mount(bench: Bench) -> None:
    assert bench.sweep("fake-memory", fault="trial-ended").returncode == -9
    check_done(bench)


@pytest.mark.native
def test_databases_lie_in_the_memory_of_a_host_far_away(remote: RemoteBench) -> None:
    host = remote.add("alpha")
    killed = remote.sweep("fake-memory", *remote.on_hosts(), fault="step-started:2")
    assert killed.returncode == -9, killed.stderr
    assert mounts(remote.folder) == [f"{host.work}/memory"]
    remote.resumed()
    assert [trial["state"] for trial in remote.rows()] == ["ok"]
    assert mounts(remote.folder) == []
    check_clean(remote)


def test_a_failed_load_does_not_stop_what_has_a_load_of_its_own(bench: Bench) -> None:
    done = bench.sweep("fake-memory", MODE="exit")
    assert done.returncode == 1
    (trial,) = bench.rows()
    assert [step[:2] for step in trial["steps"]] == [
        ("load", "failed"), ("alter", "skipped"), ("load-again", "ok"), ("read", "ok"),
    ]  # fmt: skip
    assert mounts(bench.folder) == []


def test_restore_gives_the_memory_back_and_the_trial_starts_again(bench: Bench) -> None:
    assert bench.sweep("fake-memory", fault="step-started:2").returncode == -9
    wait_for("the end of the step", lambda: not bench.orphans())
    assert len(mounts(bench.folder)) == 1
    told = hosts(bench, "restore")
    assert f"unmounted   {bench.data}/work/memory, the memory disk of databases\n" in told
    assert mounts(bench.folder) == []
    resumed = bench.run("resume", "--format", "none")
    assert resumed.returncode == 0, resumed.stderr
    assert mounts(bench.folder) == []
    assert bench.rows()[0]["state"] == "ok"


def test_clean_keeps_what_an_unfinished_sweep_goes_on_with(bench: Bench) -> None:
    assert bench.sweep("fake-memory", fault="step-started:2").returncode == -9
    wait_for("the end of the step", lambda: not bench.orphans())
    told = hosts(bench, "clean")
    assert "has not ended: benchrunner resume 1" in told
    assert len(mounts(bench.folder)) == 1
    bench.data.joinpath("store.db").rename(bench.folder / "elsewhere.db")
    told = hosts(bench, "clean")
    assert "removed" in told
    assert mounts(bench.folder) == []
