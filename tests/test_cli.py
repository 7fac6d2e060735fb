"""The verbs that run and show, called as a person calls them, in this process."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_support import FAKE, Bench, events

from benchrunner.cli import main, progress
from benchrunner.cli.bars import Bars
from benchrunner.cli.progress import JsonLines, PlainLines, duration, live_text
from benchrunner.events import Event, ignore
from benchrunner.live import LiveRate, current_rate
from benchrunner.store import open_store
from benchrunner.store.rows import MEMORY, CeilingRow
from benchrunner.transports.local import LocalTransport

Program = Callable[..., tuple[int, str, str]]


@pytest.fixture
def program(cache: Path, in_process: Program, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The command line with the fake engine at hand."""
    monkeypatch.setenv("PATH", f"{FAKE / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("BENCHRUNNER_CACHE", str(cache))
    monkeypatch.setenv("BENCHRUNNER_PATH", str(FAKE))
    return in_process


SWEEP = ("sweep", "fake", "--variants", "None", "--set", "PAUSE=0.01")


def test_a_sweep_its_status_its_page(program: Program) -> None:
    code, out, err = program(*SWEEP, "--format", "markdown,csv,html")
    assert (code, out) == (0, "")
    lines = [line.partition(" ")[2].strip() for line in err.splitlines()]
    page = Path("results/pages/fake").absolute()
    assert lines[0] == "sweep 1: 1 of 1 trials to run"
    assert lines[3:] == [
        "trial 1 of 1: fake fake 1.2.3 None",
        "load started", "load: ok", "read started", "read: ok", "trial ok", "sweep 1: 1 ok",
        f"markdown page: {page}/README.md", f"csv page: {page}/csv/measurements.csv",
        f"html page: {page}/index.html", f"open {page}/index.html",
    ]  # fmt: skip

    code, out, _ = program("status")
    assert code == 0
    assert out.split()[0] == "1"
    assert out.rstrip().endswith("fake                     1 ok")
    code, out, _ = program("status", "1")
    assert "   1  fake 1.2.3 None local #1" in out
    assert out.rstrip().endswith(" ok")
    (listed,) = json.loads(program("status", "--json")[1])
    assert (listed["sweep"], listed["name"], listed["ok"], listed["unfinished"]) == (
        1,
        "fake",
        1,
        0,
    )
    (trial,) = json.loads(program("status", "1", "--json")[1])
    assert (trial["state"], trial["version"], trial["variant"]) == ("ok", "1.2.3", "None")

    code, out, _ = program("report", "--page", "fake", "--format", "csv", "--output", "elsewhere")
    assert (code, out) == (0, "elsewhere/csv/measurements.csv\n")
    assert Path(out.strip()).is_file()
    code, out, _ = program("report", "--page", "fake", "--sweep", "1", "--format", "none")
    assert (code, out) == (0, "")
    assert program("parse", "--sweep", "1")[1] == "read 2 step runs again\n"


def test_events_as_json(program: Program) -> None:
    code, out, err = program(*SWEEP, "--format", "csv", "--json", "--repeat", "2")
    assert (code, err) == (0, "")
    told = events(out)
    assert all({"at", "event", "text"} <= set(event) for event in told)
    assert [e["event"] for e in told if e["event"].startswith("trial")] == [
        "trial",
        "trial-end",
    ] * 2
    assert (told[0]["event"], told[0]["trials"]) == ("plan", 2)
    assert (told[-1]["event"], told[-1]["format"]) == ("page", "csv")
    end = next(event for event in told if event["event"] == "end")
    assert (end["sweep"], end["ok"]) == (1, 2)


def test_failures_and_a_page_of_them(program: Program) -> None:
    code, _, err = program(*SWEEP, "--set", "READ_MODE=exit", "--format", "csv", "--no-ceiling")
    assert code == 1
    assert "read: failed: it exited with status 1" in err
    assert "sweep 1: 1 failed" in err


def test_a_command_that_cannot_be_made_fails_its_step_and_not_the_sweep(program: Program) -> None:
    code, _, err = program("sweep", "fake-unbuilt", "--format", "none")
    assert code == 1
    assert "load: failed: step load of fake-unbuilt: fake 1.2.3 was built without fake_other" in err
    assert "read: skipped: load did not finish" in err


def test_a_ceiling_is_measured_first_and_a_step_that_reaches_it_marked(program: Program) -> None:
    assert program("sweep", "fake-capped", "--variants", "None", "--format", "none",
                   "--set", "PAUSE=0.01")[0] == 0  # fmt: skip
    with open_store("results") as store:
        (ceiling,) = store.ceilings("local")
        assert (ceiling.metric, ceiling.value, ceiling.workload) == ("operations", 50000, "fake")
        (trial,) = store.page_rows("fake-capped").trials
    assert [[mark.name for mark in step.taints] for step in trial.steps] == [
        ["device-saturated"], ["device-saturated"],
    ]  # fmt: skip
    assert "500,000, 1000% of the 50,000 that fio reached" in trial.steps[0].taints[0].evidence


@pytest.mark.parametrize("of", ["its device", MEMORY])
def test_a_step_is_held_against_its_own_device_and_memory(program: Program, of: str) -> None:
    assert program("sweep", "fake-capped", "--variants", "None", "--format", "none",
                   "--no-ceiling", "--set", "PAUSE=0.01")[0] == 0  # fmt: skip

    def marks() -> set[str]:
        assert program("parse", "--all")[0] == 0
        with open_store("results") as store:
            (trial,) = store.page_rows("fake-capped").trials
            return {taint.name for step in trial.steps for taint in step.taints}

    def measured(device: str, value: float = 0.001) -> None:
        with open_store("results") as store:
            store.add_ceiling(CeilingRow("local", device, "operations", value, 5.0, None))

    with open_store("results") as store:
        (trial,) = store.page_rows("fake-capped").trials
    assert trial.facts is not None
    assert trial.facts.device
    measured("another-disk")
    assert "device-saturated" not in marks()
    device = trial.facts.device if of == "its device" else MEMORY
    measured(device)
    assert "device-saturated" in marks()
    measured(device, 1e12)
    assert "device-saturated" not in marks(), "the newest counts"


def test_a_plan_for_people(program: Program) -> None:
    code, out, err = program("plan", "fake", "--set", f"DISK={5 << 29}", "--axis", "LIMIT=5,60")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == [
        "#", "workload", "engine", "version", "from", "variant", "host", "rep", "steps",
    ]  # fmt: skip
    assert len([line for line in lines if "None LIMIT=" in line]) == 2
    assert "4 trials, 4 database loads" in lines
    sizes = "disk: about 2.5 GiB at once; memory: unknown"
    assert f"{sizes}; time: unknown, builds not counted" in lines
    assert not Path("results").exists()

    document = json.loads(program("plan", "fake", "--json", "--variants", "DIO")[1])
    assert document["loads"] == 1
    assert document["trials"][0]["steps"] == ["load", "read"]
    assert document["obstacles"] == []


def test_a_plan_with_every_command(program: Program) -> None:
    versions = ["--versions", "7.2.2,6.11.4", "--source", "crate"]
    chosen = ["--variants", "None", "--scale", "smoke", "--commands"]
    code, out, _ = program("plan", "rocksdb-flash", *versions, *chosen)
    assert code == 0
    assert "# rocksdb-flash rocksdb 7.2.2 None" in out
    assert "--benchmarks=fillrandom,stats" in out
    assert "#   hard_rate_limit=3: dropped: removed in 7.0" in out


def test_a_sweep_file(program: Program) -> None:
    Path("sweeps").mkdir()
    Path("sweeps/nightly.toml").write_text(
        'name = "nightly"\nworkloads = ["fake"]\nvariants = ["None"]\nrepeat = 2\n'
        '[engines]\nfake = ["system"]\n[set]\nPAUSE = "0.01"\n'
    )
    document = json.loads(program("plan", "nightly", "--json", "--set", "LIMIT=7")[1])
    assert [trial["repetition"] for trial in document["trials"]] == [1, 2]
    chosen = ["--versions", "system", "--exclude", "version=1.2.3", "--as-shipped", "--repeat", "1"]
    code, _, err = program("plan", "nightly", *chosen)
    assert code == 3
    assert "selects nothing" in err
    document = json.loads(
        program("plan", "nightly", "--json", "--no-ceiling", "--order", "grouped")[1]
    )
    assert len(document["trials"]) == 2


def test_reading_files(program: Program) -> None:
    Path("ok.log").write_text(
        "readrandom   :       2.000 micros/op 500000 ops/sec; 107.0 MB/s (316 of 500 found)\n"
    )
    Path("odd.log").write_text(
        "WARNING: Assertions are enabled; benchmarks unnecessarily slow\n"
        "readrandom   :       2.000 micros/op 500000 ops/sec; (600 of 500 found)\n"
    )
    code, out, _ = program("read", "db_bench", "ok.log")
    assert code == 0
    assert "readrandom" in out
    assert "500,000 ops/s" in out
    one = json.loads(program("read", "db_bench", "ok.log", "--json")[1])
    assert {"phase": "readrandom", "run": 1, "role": None, "metric": "ops_per_sec",
            "value": 500000.0, "unit": "ops/s"} in one["measurements"]  # fmt: skip
    both = json.loads(program("read", "db_bench", "ok.log", "odd.log", "--json")[1])
    assert [document["file"] for document in both] == ["ok.log", "odd.log"]
    assert both[1]["problems"] == ["readrandom: 600 keys were found of 500 asked for"]
    out = program("read", "db_bench", "odd.log")[1]
    assert "  invalid: readrandom: 600 keys were found of 500 asked for\n" in out
    assert "  warning: " in out


def test_an_unexpected_error_shows_its_traceback_and_debug_shows_every_one(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchrunner", "--debug", "status"])
    from benchrunner.errors import MissingStoreError

    with pytest.raises(MissingStoreError):
        main()


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (
            OSError(28, "No space left on device", "/data/x"),
            1,
            "error: no space is left for /data/x\n",
        ),
        (OSError(28, "No space left on device"), 1, "error: no space is left for the results\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_what_main_makes_of_errors(
    program: Program,
    monkeypatch: pytest.MonkeyPatch,
    raised: BaseException,
    code: int,
    message: str,
) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise raised

    monkeypatch.setattr("benchrunner.cli.cli.main", fail)
    found, _, err = program("status")
    assert found == code
    assert err.startswith(message)
    monkeypatch.setattr(
        "benchrunner.cli.cli.main", lambda **_: (_ for _ in ()).throw(OSError(5, "x"))
    )
    with pytest.raises(OSError, match="x"):
        main()


def test_whoever_reads_no_further_gets_no_traceback(bench: Bench) -> None:
    process = bench.start("list", "metrics")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait() == 1
    assert process.stderr.read() == ""
    process.stderr.close()


TICK = Event("tick", "", {"step": "read", "elapsed_s": 61.0, "ops_per_sec": 1234567.0})
BUILD = Event("build-progress", "", {"version": "RocksDB 7.2.2", "done": 3, "total": 700})


def test_lines_for_a_log() -> None:
    assert live_text(TICK) == "read: 1:01 min, 1,234,567 ops/sec"
    assert live_text(BUILD) == "building RocksDB 7.2.2: 3 of 700 files"
    assert duration(7322) == "2:02:02 h"
    stream = io.StringIO()
    lines = PlainLines(stream)
    lines(TICK)
    assert stream.getvalue() == "", "a log is not flooded"
    lines._quiet_until = 0.0
    lines(TICK)
    assert stream.getvalue().endswith("    read: 1:01 min, 1,234,567 ops/sec\n")
    lines(Event("note", "done"))
    assert stream.getvalue().endswith(" done\n")


def test_json_lines_leave_out_ticks(capsys: pytest.CaptureFixture[str]) -> None:
    lines = JsonLines()
    lines(TICK)
    lines(BUILD)
    assert capsys.readouterr().out == ""


def test_who_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    with progress.observer(quiet=True, as_json=False) as watch:
        assert watch is ignore
    with progress.observer(quiet=True, as_json=True) as watch:
        assert isinstance(watch, JsonLines)
    with progress.observer(quiet=False, as_json=False) as watch:
        assert isinstance(watch, PlainLines)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress.observer(quiet=False, as_json=False) as watch:
        assert isinstance(watch, Bars)


def test_the_live_rate(tmp_path: Path) -> None:
    lines = (
        b"thread 0: (9,9) ops and (100.0,90.0) ops/second in (1,1) seconds\n"
        b"thread 1: (9,9) ops and (50.5,90.0) ops/second in (1,1) seconds\n"
        b"thread 0: (9,18) ops and (120.0,90.0) ops/second in (1,2) seconds\n"
    )
    assert current_rate(lines) == 170.5
    assert current_rate(b"") is None
    (tmp_path / "stderr").write_bytes(lines)
    seen: list[Event] = []
    rate = LiveRate(LocalTransport(), seen.append)
    tick = Event("tick", "", {"run_dir": str(tmp_path), "stderr_bytes": len(lines)})
    rate(tick)
    assert not seen, "nobody can read that fast"
    rate._looked_at -= 2
    rate(tick)
    rate(Event("note", "done"))
    assert [event.data.get("ops_per_sec") for event in seen] == [170.5, None]
