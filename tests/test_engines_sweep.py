"""Sweeps of several engines with the real driver, from the command line to the store."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from engines_support import write_engine, write_workload
from kvbench_support import SOURCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fault_support import Bench

    from benchrunner.store.rows import StepRow, TrialRow
    from benchrunner.store.whole import Store

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver with two engines, in a folder of its own for the path."""
    folder = tmp_path_factory.mktemp("driver")
    compiler = "ccache g++" if shutil.which("ccache") else "g++"
    subprocess.run(
        ["make", "-j2", f"OUT={folder}", "ENGINES=null lmdb", "CXXFLAGS=-O1", f"CXX={compiler}"],
        cwd=SOURCE, check=True, capture_output=True,
    )  # fmt: skip
    return folder


@pytest.fixture
def engines(bench: Bench, driver: Path) -> Bench:
    """A results folder, and a catalog with engines of which some cannot be had or used."""
    catalog = bench.folder
    write_engine(catalog, "null")
    write_engine(catalog, "lmdb", mapped="true")
    write_engine(catalog, "tiny", "lmdb", options='["map_size=64k"]')
    write_engine(catalog, "absent", binary="no-such-driver")
    write_workload(catalog, "null", "lmdb", "tiny", "absent")
    bench.env["PATH"] = f"{driver}:/usr/sbin:/usr/bin:/sbin:/bin"
    return bench


def trials(store: Store) -> dict[tuple[str, str], TrialRow]:
    return {(trial.job.engine, trial.job.variant): trial for trial in store.trials()}


def steps(store: Store, trial: TrialRow) -> dict[str, StepRow]:
    return {row.step: row for row in store.step_runs(trial.id)}


def test_engines_threads_and_placements_in_one_sweep(engines: Bench) -> None:
    done = engines.run("sweep", "small", "--threads", "1,2", "--format", "none")
    assert done.returncode == 1, done.stderr
    assert "2 failed, 4 ok, 2 skipped" in done.stderr, "one engine's database is too small"
    with engines.store() as store:
        found = trials(store)
        assert {key: trial.state.value for key, trial in found.items()} == {
            (engine, variant): state
            for engine, state in (
                ("null", "ok"), ("lmdb", "ok"), ("tiny", "failed"), ("absent", "skipped"),
            )
            for variant in ("local", "interleave")
        }  # fmt: skip
        reason = found["absent", "local"].reason
        assert reason.startswith("absent cannot be had: no source of absent has a version")
        assert "no-such-driver is not installed" in reason
        assert "write error: lmdb: MDB_MAP_FULL: " in found["tiny", "local"].reason
        blocked = steps(store, found["tiny", "local"])["run-1"]
        assert (blocked.state.value, blocked.argv) == ("skipped", ())

        lmdb = found["lmdb", "interleave"]
        assert lmdb.job.steps == ("load", "run-1", "run-2")
        rows = steps(store, lmdb)
        assert rows["run-2"].argv[:2] == ("numactl", "--interleave=all")
        assert {"--threads=2", "--engine=lmdb", "--duration=1"} <= set(rows["run-2"].argv)
        numbers = store.measurements(rows["run-2"].id)
        for role, metric in (("reader", "read_rate"), ("writer", "write_rate")):
            rate = numbers["readwhilewriting", 1, role, "ops_per_sec"]
            assert numbers["readwhilewriting", 1, None, metric] == rate > 0
        process = {metric: value for (phase, *_, metric), value in numbers.items() if phase is None}
        assert process["total_kib"] == max(process["du_kib"], process["rss_max_kib"])
        facts = store.last_facts("local")
        assert facts is not None
        if len(facts.facts["numa"]["nodes"]) == 1:
            marked = {
                (trial.row.job.engine, trial.row.job.variant)
                for trial in store.page_rows("small").trials
                if "single-numa-node" in {taint.name for taint in trial.taints}
            }
            assert {variant for _, variant in marked} == {"interleave"}
            assert ("lmdb", "interleave") in marked


def test_a_host_without_numactl_skips_the_placements(engines: Bench) -> None:
    tools = engines.folder / "tools-here"
    tools.mkdir()
    for folder in ("/usr/bin", "/usr/sbin"):
        subprocess.run(["sh", "-c", f"ln -s {folder}/* {tools}/ 2>/dev/null; :"], check=True)
    (tools / "numactl").unlink(missing_ok=True)
    driver = engines.env["PATH"].partition(":")[0]
    engines.env["PATH"] = f"{driver}:{tools}"
    done = engines.run(
        "sweep", "small", "--engines", "lmdb", "--threads", "1", "--format", "none"
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with engines.store() as store:
        found = trials(store)
        assert found["lmdb", "local"].state.value == "ok"
        skipped = found["lmdb", "interleave"]
        assert (skipped.state.value, skipped.reason) == (
            "skipped", "host local has no numactl: apt-get install -y numactl",
        )  # fmt: skip


def test_the_plan_names_engines_and_what_is_left_out(engines: Bench) -> None:
    done = engines.run("plan", "small", "--variants", "local", "--commands")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[2] for line in lines[1:5]] == ["null", "lmdb", "tiny", "absent"]
    assert "left out: absent newest: absent cannot be had: " in done.stdout
    assert "--threads=2 --duration=1 --engine=lmdb --engine_opt=map_size=64k" in done.stdout


def ended(engines: Bench) -> tuple[TrialRow, dict[str, StepRow]]:
    """The only trial of a sweep, and its steps."""
    with engines.store() as store:
        (trial,) = store.trials()
        return trial, steps(store, trial)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may mount a file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_disk_that_is_full_in_the_middle_of_a_load(engines: Bench, small_disk: Path) -> None:
    done = engines.run(
        "sweep", "small", "--engines", "lmdb", "--variants", "local", "--set", "NUM=200000",
        "--db-dir", str(small_disk), "--format", "none",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    trial, rows = ended(engines)
    assert rows["load"].state.value == "failed"
    assert "write error: lmdb: " in rows["load"].reason
    assert "no space is left on the file system of " in rows["load"].reason
    assert rows["run-1"].state.value == "skipped"
    assert "no space is left on the file system of " in trial.reason
    assert not list(small_disk.rglob("*.mdb")), "its space is free again"


WRONG = """#!/bin/sh
# The driver, and between two of its runs a record of the database is not what it was.
for word; do case $word in --db=*) db=${word#--db=} ;; --use_existing_db*) again=1 ;; esac; done
[ -z "$again" ] || python3 - "$db/data.mdb" <<'PY'
import re, sys
path = sys.argv[1]
data = bytearray(open(path, "rb").read())
for found in list(re.finditer(rb"[\\x00-\\xff]{8}0{8}", bytes(data)))[:4000]:
    data[found.end() + 9] ^= 1
open(path, "wb").write(data)
PY
exec DRIVER "$@"
"""


def test_a_wrong_value_makes_the_trial_invalid(engines: Bench, driver: Path) -> None:
    place = engines.folder / "wrong"
    place.mkdir()
    (place / "kvbench").write_text(WRONG.replace("DRIVER", str(driver / "kvbench")))
    (place / "kvbench").chmod(0o755)
    engines.env["PATH"] = f"{place}:{engines.env['PATH']}"
    done = engines.run(
        "sweep", "small", "--engines", "lmdb", "--variants", "local", "--threads", "1",
        "--format", "none",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    trial, rows = ended(engines)
    assert (rows["load"].state.value, rows["run-1"].state.value) == ("ok", "invalid")
    assert trial.state.value == "invalid"
    assert "verify error: readwhilewriting: key number " in trial.reason
