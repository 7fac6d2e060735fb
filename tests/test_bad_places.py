"""Disks and folders that do not suit: refused before a start, or survived."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from fault_support import Bench

from benchrunner.model import TrialState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of eight MiB."""
    yield from mounted(tmp_path / "small", "tmpfs", "size=8m")


@pytest.fixture
def without_direct_io(tmp_path: Path) -> Iterator[Path]:
    """A file system that refuses O_DIRECT."""
    yield from mounted(tmp_path / "ramfs", "ramfs", "mode=755")


def mounted(path: Path, kind: str, options: str) -> Iterator[Path]:
    path.mkdir()
    done = subprocess.run(
        ["mount", "-t", kind, "-o", options, kind, str(path)], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("only root may mount a file system")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def test_the_results_disk_is_full(bench: Bench, small_disk: Path) -> None:
    hosts = bench.folder / "hosts"
    hosts.mkdir()
    (hosts / "local.toml").write_text(f'name = "local"\nwork_dir = "{bench.folder}/work"\n')
    bench.data.symlink_to(small_disk)
    full = bench.sweep("fake", LOAD_MODE="big")
    assert full.returncode == 1
    assert full.stderr.count("error: ") == 1
    assert "error: no space is left for the raw output " in full.stderr
    assert "  try: free some space, then benchrunner resume\n" in full.stderr
    assert list((bench.folder / "work" / "trials").glob("*/runs/1/01-load/status.json"))
    assert not list(bench.data.rglob("*.part*")), "what did not fit is not left lying"

    again = bench.run("resume", "--format", "none")
    assert (again.returncode, "no space is left" in again.stderr) == (1, True)
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    resumed = bench.run("resume", "--format", "none")
    assert resumed.returncode == 0, resumed.stderr
    (trial,) = bench.rows()
    assert [step[1] for step in trial["steps"]] == ["ok", "ok"]
    assert list(bench.executed().values()) == [1, 1]


def test_the_store_is_full(bench: Bench, small_disk: Path) -> None:
    bench.data.symlink_to(small_disk)
    hosts = bench.folder / "hosts"
    hosts.mkdir()
    (hosts / "local.toml").write_text(f'name = "local"\nwork_dir = "{bench.folder}/work"\n')
    assert bench.sweep("fake", fault="step-begun:2").returncode == -9
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    full = bench.run("resume", "--format", "none")
    assert full.returncode == 1
    assert full.stderr.count("error: ") == 1
    assert "error: no space is left for " in full.stderr
    filler.unlink()
    assert bench.run("resume", "--format", "none").returncode == 0
    assert list(bench.executed().values()) == [1, 1]


def test_a_file_system_without_direct_io_skips_what_needs_it(
    bench: Bench, without_direct_io: Path
) -> None:
    databases = ["--db-dir", str(without_direct_io / "databases"), "--variants", "None,DIO"]
    done = bench.sweep("fake", *databases, DISK=0)
    assert done.returncode == 0, done.stderr
    with bench.store() as store:
        found = {trial.job.variant: (trial.state, trial.reason) for trial in store.trials()}
    assert found["None"] == (TrialState.OK, "")
    assert found["DIO"][0] is TrialState.SKIPPED
    assert "direct" in found["DIO"][1].lower() or "O_DIRECT" in found["DIO"][1]
    assert "trial skipped: " in done.stderr


def test_a_database_folder_that_is_not_ours(bench: Bench) -> None:
    foreign = bench.folder / "precious"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("years of work")
    arguments = ["fake", "--db-dir", str(foreign), "--variants", "None"]
    sentence = (
        f"{foreign} on this machine is not a folder of benchrunner: it has no .benchrunner file"
    )
    planned = bench.run("plan", *arguments)
    assert planned.returncode == 2
    assert planned.stderr == f"obstacle: {sentence}\n  try: name a new or an empty folder\n"
    swept = bench.run("sweep", *arguments)
    assert swept.returncode == 2
    assert swept.stderr == f"error: {sentence}\n  try: name a new or an empty folder\n"
    both = bench.run("sweep", *arguments, "--set", f"DISK={2**60}")
    assert both.stderr.startswith(f"error: {sentence} (and 1 more: benchrunner plan shows all)\n")
    planned = bench.run("plan", *arguments, "--set", f"DISK={2**60}", "--json")
    told = json.loads(planned.stdout)["obstacles"]
    assert [sorted(one) for one in told] == [["try", "what"], ["try", "what"]]
    assert told[0]["what"] == sentence
    assert [path.name for path in foreign.iterdir()] == ["thesis.tex"]
    assert not bench.data.exists(), "nothing is stored"


def test_too_little_disk(bench: Bench) -> None:
    arguments = ["fake", "--variants", "None", "--set", f"DISK={2**60}"]
    planned = bench.run("plan", *arguments)
    assert planned.returncode == 2
    assert "disk: about 1024 PiB at once; memory: unknown; time: unknown" in planned.stdout
    assert planned.stderr.startswith("obstacle: host local has ")
    assert ", and a trial needs about 1024 PiB\n  try: name another folder with" in planned.stderr
    swept = bench.run("sweep", *arguments)
    assert swept.returncode == 2
    assert "and a trial needs about 1024 PiB\n  try: name another folder with" in swept.stderr
    assert not bench.data.exists()


def test_a_host_elsewhere_and_a_relative_folder(bench: Bench) -> None:
    hosts = bench.folder / "hosts"
    hosts.mkdir()
    (hosts / "far.toml").write_text('name = "far"\naddress = "bench@far"\n')
    (hosts / "odd.toml").write_text('name = "odd"\nwork_dir = "work"\n')
    far = bench.run("sweep", "fake", "--host", "far")
    assert far.returncode == 2
    expected = "error: host far is bench@far and has no work_dir\n"
    assert far.stderr.startswith(expected)
    (hosts / "serving.toml").write_text('name = "serving"\nroles = ["server"]\n')
    serving = bench.run("plan", "fake", "--host", "serving")
    assert serving.returncode == 2
    assert serving.stderr.startswith("error: host serving is no client (roles: server), and ")
    odd = bench.run("plan", "fake", "--host", "odd")
    assert odd.returncode == 2
    assert odd.stderr == (
        "error: host odd: work_dir: work is not an absolute path\n  try: write it from / on\n"
    )
    assert not bench.data.exists()


def test_a_plan_knows_how_long_steps_took_before(bench: Bench) -> None:
    assert bench.sweep("fake", PAUSE=0.3).returncode == 0
    known = ["fake", "--variants", "None", "--set", f"LOG={bench.log}"]
    planned = bench.run("plan", *known, "--set", "PAUSE=0.3", "--json")
    seconds = json.loads(planned.stdout)["seconds"]
    with bench.store() as store:
        (trial,) = store.trials()
        walls = [
            store.measurements(s.id)[None, 1, None, "wall_s"] for s in store.step_runs(trial.id)
        ]
    assert seconds == pytest.approx(sum(walls))
    other = json.loads(bench.run("plan", *known, "--set", "PAUSE=9", "--json").stdout)
    assert other["seconds"] is None, "other parameters, other times"


def test_results_below_a_path_with_spaces_and_a_store_by_url(tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "my results, all of them"
    folder.mkdir()
    bench = Bench(folder, cache)
    assert bench.sweep("fake", fault="step-begun").returncode == -9
    url = f"sqlite:///{bench.data}/store.db"
    arguments = bench.command("resume", "--format", "none")
    arguments[arguments.index("--data") + 1] = url
    done = subprocess.run(
        arguments, capture_output=True, text=True, check=False, cwd=folder,
        env={**os.environ, **bench.environment()},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert list(bench.data.glob("raw/*/1/01-load/stdout.gz"))
    assert not (folder / "results" / "results").exists()
