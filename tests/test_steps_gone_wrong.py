"""Steps that hang, crash, print nothing or nonsense: each a stored, explained trial."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from fault_support import FAKE, Bench, events

if TYPE_CHECKING:
    from pathlib import Path

NOT_DB_BENCH = (
    "the text is not db_bench's output: it has no result line (name : N micros/op), "
    "no RocksDB header and no statistics"
)


def outcomes(bench: Bench) -> dict[str, dict[str, Any]]:
    """Trials by their value of the axis READ_MODE."""
    with bench.store() as store:
        modes = [trial.job.axes.get("READ_MODE", "") for trial in store.trials()]
    return dict(zip(modes, bench.rows(), strict=True))


def test_every_way_to_fail_is_a_stored_and_explained_trial(bench: Bench) -> None:
    axis = "READ_MODE=hang,crash,exit,wrong,silent,garbage,truncated,greedy,ok"
    done = bench.sweep("fake", "--axis", axis, "--format", "csv,markdown", LIMIT=1)
    assert done.returncode == 1, done.stderr
    found = outcomes(bench)
    reasons = {mode: (trial["state"], trial["reason"]) for mode, trial in found.items()}
    assert reasons["ok"] == ("ok", "")
    assert reasons["crash"] == ("failed", "read: it was killed by signal SIGSEGV")
    assert reasons["exit"] == ("failed", "read: it exited with status 1: put error: IO error")
    words = "fake_bench exited with status 3: key 7 has a value of another"
    assert reasons["wrong"] == ("invalid", f"read: {words}")
    assert reasons["hang"][0] == "timeout"
    assert reasons["hang"][1].startswith("read: it was ended at its time limit, after 1.")
    for mode in ("silent", "garbage", "truncated"):
        assert reasons[mode][0] == "invalid", mode
        assert reasons[mode][1].startswith("read: "), mode
    assert reasons["greedy"][0] == "failed"
    assert not bench.orphans(), "children that called setsid are ended, too"
    for mode, trial in found.items():
        load, read = trial["steps"]
        assert load[1] == "ok"
        assert load[3]["fillrandom/1/None/ops_per_sec"] == 500000
        printed = mode in ("ok", "wrong")
        assert ("readrandom/1/None/ops_per_sec" in read[3]) == printed, mode

    page = (bench.data / "pages" / "fake" / "README.md").read_text()
    for sentence in ("killed by signal SIGSEGV", "ended at its time limit", "exited with status 1"):
        assert sentence in page
    status = bench.run("status", "1").stdout
    assert "failed: read: it exited with status 1" in status


def test_what_an_invalid_step_says(bench: Bench) -> None:
    bench.sweep("fake", "--axis", "READ_MODE=silent,garbage,truncated")
    with bench.store() as store:
        problems = {
            trial.job.axes["READ_MODE"]: store.step_runs(trial.id)[1].problems
            for trial in store.trials()
        }
    assert problems["truncated"] == ("the result of readrandom is cut short: it has no ops/sec",)
    for mode in ("silent", "garbage"):
        assert problems[mode] == (NOT_DB_BENCH,)


def test_a_step_whose_program_vanished(bench: Bench) -> None:
    programs = bench.folder / "bin"
    shutil.copytree(FAKE / "bin", programs)
    bench.env["PATH"] = f"{programs}:/usr/bin:/bin"
    done = bench.sweep("fake", LOAD_MODE="vanish")
    assert done.returncode == 1
    (trial,) = bench.rows()
    assert trial["state"] == "failed"
    assert trial["reason"].startswith("read: ")
    assert "fake_bench" in trial["reason"]
    assert "No such file or directory" in trial["reason"]


def test_a_failed_load_stops_what_follows_and_keeps_the_reason(bench: Bench) -> None:
    done = bench.sweep("fake-chain", "--json", LOAD_MODE="exit")
    assert done.returncode == 1
    (trial,) = bench.rows()
    assert [step[1] for step in trial["steps"]] == ["failed", "skipped", "skipped", "skipped"]
    told = events(done.stdout)
    assert [e["event"] for e in told] == [
        "plan", "build", "build-end", "trial", "step", "step-end", "step-end", "step-end",
        "step-end", "trial-end", "end",
    ]  # fmt: skip
    assert told[-1]["failed"] == 1
    assert told[-2]["reason"] == "load: it exited with status 1: put error: IO error"
    assert done.stderr == ""


def test_quiet_says_nothing_when_all_is_well(bench: Bench) -> None:
    done = bench.sweep("fake", "--quiet", "--format", "csv")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_pristine_steps_start_from_the_loaded_database(bench: Bench) -> None:
    done = bench.sweep("fake-pristine")
    assert done.returncode == 0, done.stderr
    seen = [line.partition(" ")[2] for line in bench.log.read_text().splitlines()]
    inode = seen[1].rpartition("inode=")[2]
    assert seen == ["sst=0 current= inode=0", *[f"sst=2 current=loaded inode={inode}"] * 3]
    assert inode != "0"


def test_carried_steps_start_from_what_the_last_one_left(bench: Bench) -> None:
    assert bench.sweep("fake-chain").returncode == 0
    seen = [
        line.partition(" ")[2].partition(" inode")[0] for line in bench.log.read_text().splitlines()
    ]
    assert seen == ["sst=0 current=", "sst=2 current=loaded", "sst=2 current=loaded",
                    "sst=2 current=loaded+"]  # fmt: skip


@pytest.mark.parametrize("fault", ["loaded-kept", "loaded-restored:1", "loaded-restored:2"])
def test_a_kill_between_checkpoints(bench: Bench, fault: str) -> None:
    wal = ["--wal-dir", str(bench.folder / "wal")]
    assert bench.sweep("fake-pristine", *wal, fault=fault).returncode == -9
    assert bench.run("resume", "--format", "none").returncode == 0
    seen = [line.partition(" ")[2] for line in bench.log.read_text().splitlines()]
    assert len(set(seen[1:])) == 1
    assert len(seen) == 4
    assert not list((bench.data / "work" / "trials").iterdir())


def test_two_reports_and_a_second_parse_change_nothing(bench: Bench) -> None:
    assert bench.sweep("fake", "--format", "wiki,html,csv,markdown").returncode == 0
    before, rows = pages(bench), bench.rows()
    parsed = bench.run("parse", "--all")
    assert parsed.stdout == "read 2 step runs again\n"
    assert bench.rows() == rows
    written = bench.run("report", "--page", "fake", "--catalog", str(FAKE))
    assert written.returncode == 0, written.stderr
    assert pages(bench) == before


def pages(bench: Bench) -> dict[str, bytes]:
    folder = bench.data / "pages"
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_page_after_a_kill_shows_the_same_numbers(bench: Bench, tmp_path: Path) -> None:
    assert bench.sweep("fake", fault="step-collected:2").returncode == -9
    resumed = bench.run("resume", "--format", "csv")
    assert resumed.returncode == 0, resumed.stderr
    other = Bench(tmp_path / "undisturbed", bench.cache)
    other.folder.mkdir()
    assert other.sweep("fake", "--format", "csv").returncode == 0
    for table in ("load.csv", "read.csv"):
        name = f"fake/csv/{table}"
        assert pages(bench)[name] == pages(other)[name], table
