"""``benchrunner hosts restore`` and ``clean``: what crashed controllers left on a real host."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from hosts_support import HERE, Lab, held, lab, supervisor, words
from sshd_support import sshd
from test_store_support import add_sweep

from benchrunner import workdir
from benchrunner.launchers import LaunchRequest
from benchrunner.launchers.direct import DirectLauncher
from benchrunner.launchers.supervisor import PROGRAM
from benchrunner.model import Command
from benchrunner.probes.settings import BlockDevices
from benchrunner.probes.tuning import JOURNAL, HostSettings, tune
from benchrunner.store import open_store

__all__ = ["lab", "sshd"]
pytestmark = pytest.mark.ssh
SWAPPINESS = Path("/proc/sys/vm/swappiness")


# ---------------------------------------------------------------- restore


def test_nothing_is_left_changed(lab: Lab) -> None:
    lab.trust()
    assert lab.ok("restore", "nvme1") == "no setting of nvme1 is left changed\n"
    assert not lab.work.exists()
    lab.work.mkdir()
    (lab.work / "thesis.tex").write_text("x")
    assert "is not a folder of benchrunner" in lab.fails(2, "restore", "nvme1")


@pytest.mark.skipif(not os.access(SWAPPINESS, os.W_OK), reason="wants to write /proc/sys: root")
def test_what_a_crashed_controller_left_is_put_back(lab: Lab) -> None:
    lab.trust()
    lab.prepared()
    before = SWAPPINESS.read_text().strip()
    other = str(int(before) + 1 if int(before) < 100 else int(before) - 1)
    try:
        crashed = HostSettings(HERE, str(lab.work), "alice, process 1 on laptop")
        tune(crashed, {"swappiness": other}, BlockDevices())
        printed = lab.ok("check", "nvme1")
        assert (
            "swappiness changed by alice, process 1 on laptop, who has not put it back" in printed
        )
        assert "mend: benchrunner hosts restore nvme1\n" in printed
        with held(lab):
            printed = lab.fails(1, "restore", "nvme1")
        assert "is in use by" in printed
        assert "a sweep of somebody else" in printed
        assert SWAPPINESS.read_text().strip() == other
        line = f"swappiness: {SWAPPINESS} is {before} again, and was {other}"
        assert lab.ok("restore", "nvme1") == f"put back    {line}\n"
        assert SWAPPINESS.read_text().strip() == before
    finally:
        SWAPPINESS.write_text(before)
    assert lab.ok("restore", "nvme1") == "no setting of nvme1 is left changed\n"


def test_what_cannot_be_put_back_is_told(lab: Lab) -> None:
    lab.trust()
    lab.prepared()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    common = {"old": "7", "new": "8", "by": "alice", "at": 1.0}
    entries = [
        {"setting": "swappiness", "path": str(SWAPPINESS), "boot_id": "earlier", **common},
        {"setting": "swappiness", "path": "/etc/passwd", "boot_id": boot, **common},
    ]
    journal = lab.work / JOURNAL
    journal.write_text(json.dumps({"version": 1, "entries": entries}))
    out = lab.ok("restore", "nvme1")
    both = "was 7, and was set to 8"
    assert f"left alone  swappiness: /proc/sys/vm/swappiness {both}: the host was rebooted" in out
    assert f"left alone  swappiness: /etc/passwd {both}: it is no setting" in out
    journal.write_text("what is this")
    assert "is no journal of settings that can be read" in lab.fails(2, "restore", "nvme1")


# ---------------------------------------------------------------- clean


def test_clean_of_a_host_where_nobody_has_been(lab: Lab) -> None:
    lab.trust()
    assert "nothing of benchrunner's is left on nvme1\n" in lab.ok("clean", "nvme1")
    assert not lab.work.exists()
    lab.work.mkdir()
    (lab.work / "trials").mkdir()
    assert "is not a folder of benchrunner" in lab.fails(2, "clean", "nvme1")


def test_leftovers_go_and_what_is_wanted_stays(lab: Lab) -> None:
    lab.trust()
    lab.prepared()
    data = lab.folder / "data"
    workdir.claim(HERE, str(data), "work directory")
    lab.host(data={str(data): ""})
    with open_store("results") as store:
        sweep = add_sweep(store)
        (wanted, *_) = [trial.id for trial in store.trials(sweep)]
    old, kept, foreign = lab.trial("9-old"), lab.trial(wanted), lab.trial("9-odd")
    (foreign / workdir.MARKER).unlink()
    workdir.claim(HERE, str(data / "trials" / "9-old"), "trial")
    handle = lab.run(lab.trial("9-running"), "sleep", "60")
    lost = lab.trial("9-lost")
    os.kill(lab.run(lost, "sleep", "60").pid, signal.SIGKILL)
    try:
        dry = words(lab.ok("clean", "nvme1", "--dry-run"))
        assert "would go 2.9 MiB 9-old\n" in dry
        assert "would free 5." in dry
        assert old.exists()
        with held(lab):
            assert "is in use by" in lab.fails(1, "clean", "nvme1")
        assert old.exists()

        out = words(lab.ok("clean", "nvme1"))
    finally:
        DirectLauncher(HERE, str(supervisor())).stop(handle, 0.1)
    assert "removed 2.9 MiB 9-old\n" in out
    assert "removed 2.9 MiB 9-lost\n" in out
    resume = f"sweep {sweep} has not ended: benchrunner resume {sweep}"
    assert f"kept 2.9 MiB {wanted} ({resume})\n" in out
    assert f"9-running ({lab.work}/trials/9-running/runs/1/01-load still runs)\n" in out
    assert f"9-odd ({foreign} has no .benchrunner file)\n" in out
    assert "freed 5." in out
    assert not old.exists()
    assert not lost.exists()
    assert not (data / "trials" / "9-old").exists()
    assert (kept / "db" / "000001.sst").exists()
    assert (foreign / "db").exists()
    assert "removed 2.9 MiB 9-running" in words(lab.ok("clean", "nvme1")), "ended"
    with open_store("results") as store:
        assert store.lease("nvme1") is None


def test_clean_without_a_store_says_what_it_does_not_know(lab: Lab) -> None:
    lab.trust()
    lab.prepared()
    lab.trial("1-x")
    _, out, err = lab.program("hosts", "clean", "nvme1")
    assert err == "note: --data ./results has no store, so no unfinished sweep is known\n"
    assert words(out) == "removed 2.9 MiB 1-x\nfreed 2.9 MiB\n"
    assert not Path("results").exists()


def test_clean_all_takes_the_cache_along(lab: Lab) -> None:
    lab.trust()
    program = lab.prepared()
    cache = lab.work / "cache"
    (cache / "builds").mkdir()
    request = LaunchRequest(
        f"{cache}/builds/key", "build/key", Command(("sleep", "60"), {}), "/", interval_s=5.0
    )
    launcher = DirectLauncher(HERE, str(supervisor()))
    handle = launcher.start(request)
    assert f"the cache  ({cache}/builds/key still runs)" in lab.ok("clean", "nvme1", "--all")
    launcher.stop(handle, 0.1)
    out = lab.ok("clean", "nvme1", "--all", "--dry-run")
    assert out.startswith("would go")
    (cache / "holiday.jpg").touch()
    assert "holds what is not benchrunner's" in lab.ok("clean", "nvme1", "--all")
    (cache / "holiday.jpg").unlink()
    assert Path(program).exists()
    assert "the cache\nfreed" in lab.ok("clean", "nvme1", "--all")
    assert sorted(path.name for path in lab.work.iterdir()) == [workdir.MARKER, "trials"]
    assert list((lab.work / "trials").iterdir()) == []


def test_clean_all_is_not_for_this_machine(lab: Lab) -> None:
    printed = lab.fails(2, "clean", "local", "--all")
    assert "--all is for remote hosts, and host local is this machine" in printed


def test_clean_of_this_machine(lab: Lab) -> None:
    work = lab.folder / "results" / "work"
    workdir.claim(HERE, str(work), "work directory")
    folder = work / "trials" / "1-x"
    workdir.claim(HERE, str(folder), "trial")
    cached = lab.folder / "home" / "cache" / "supervisor" / supervisor().parent.name
    cached.mkdir(parents=True)
    shutil.copy(supervisor(), cached / PROGRAM)
    lab.host("local", address="", user=None, key_files=None, agent=None, work_dir=None)
    assert "removed" in lab.ok("clean", "local")
    assert not folder.exists()
    assert lab.ok("restore", "local") == "no setting of local is left changed\n"
    assert "the first" not in lab.ok("check", "local")
    assert "this machine: it has no key to trust" in lab.fails(1, "trust", "local")
