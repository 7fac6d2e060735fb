"""Sweeps over SSH when nothing goes wrong: one host, several, divided, shared by controllers."""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from fault_support import FAKE, PATIENCE_S, Bench, wait_for
from remote_support import RemoteBench, check_clean, check_settled, ended, remote, without_job

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.native

__all__ = ["remote"]


def test_two_hosts_at_once_give_what_this_machine_gives(
    remote: RemoteBench, tmp_path_factory: pytest.TempPathFactory, cache: Path
) -> None:
    here = Bench(tmp_path_factory.mktemp("here"), cache)
    assert here.sweep("fake-capped").returncode == 0
    remote.add("alpha")
    remote.add("beta")
    done = remote.sweep("fake-capped", *remote.on_hosts())
    assert done.returncode == 0, done.stderr
    check_settled(remote, trials=4)
    with remote.store() as store:
        hosts = [trial.job.host for trial in store.trials()]
        raw = [store.step_runs(trial.id) for trial in store.trials()]
    for name in ("alpha", "beta"):
        rows = [row for row, host in zip(remote.rows(), hosts, strict=True) if host == name]
        assert without_job(rows) == without_job(here.rows())
    folders = [remote.data / "raw" / str(step.raw_path) for steps in raw for step in steps]
    assert len(folders) == 8
    assert all(any(path.name.startswith("stdout") for path in f.iterdir()) for f in folders)


def test_the_page_of_two_hosts_has_the_shape_of_one(remote: RemoteBench) -> None:
    remote.add("alpha")
    remote.add("beta")
    done = remote.sweep("fake", *remote.on_hosts("--format", "markdown"))
    assert done.returncode == 0, done.stderr
    text = "".join(path.read_text() for path in (remote.data / "pages").rglob("*.md"))
    assert text.count("500000") >= 4
    assert "alpha" in text
    assert "beta" in text


def test_jobs_are_divided_over_hosts(remote: RemoteBench) -> None:
    remote.add("alpha")
    remote.add("beta")
    done = remote.sweep("fake", *remote.on_hosts("--spread", "--variants", "None,DIO"))
    assert done.returncode == 0, done.stderr
    check_settled(remote, trials=2)
    with remote.store() as store:
        assert Counter(t.job.host for t in store.trials()) == {"alpha": 1, "beta": 1}


def test_jobs_are_not_divided_over_hosts_that_differ(remote: RemoteBench) -> None:
    remote.add("alpha")
    odd = remote.folder / "odd"
    odd.mkdir()
    # Facts are what the host's own programs say; this one's says another machine.
    (odd / "uname").write_text("#!/bin/sh\necho riscv64\n")
    (odd / "uname").chmod(0o755)
    remote.add("beta", env={"PATH": f"{odd}:{FAKE / 'bin'}:{os.environ['PATH']}"})
    done = remote.sweep("fake", *remote.on_hosts("--spread", "--variants", "None,DIO"))
    assert done.returncode == 2
    assert "error: hosts alpha and beta differ, so --spread would mix them: " in done.stderr
    assert "riscv64" in done.stderr
    assert not remote.executed()


def test_a_new_host_gets_the_supervisor_and_a_second_sweep_finds_it(remote: RemoteBench) -> None:
    host = remote.add("alpha", prepared=False)
    for _ in range(2):
        assert remote.sweep("fake", *remote.on_hosts()).returncode == 0
    check_settled(remote, trials=2)
    (folder,) = (host.work / "cache" / "supervisor").iterdir()
    assert [path.name for path in folder.iterdir()] == ["br-supervise"]


def test_a_far_host(remote: RemoteBench) -> None:
    _, network = remote.disturbed()
    network.delay_s = 0.05
    done = remote.sweep("fake", *remote.on_hosts())
    assert done.returncode == 0, done.stderr
    check_settled(remote)


def test_an_engine_that_is_not_installed_there_is_a_failed_trial(remote: RemoteBench) -> None:
    remote.add("alpha", env={"PATH": os.environ["PATH"]})
    done = remote.sweep("fake", *remote.on_hosts())
    assert done.returncode == 1
    (trial,) = remote.rows()
    assert trial["state"] == "failed"
    assert re.search(r"fake_bench is not installed on \S*alpha", trial["reason"])
    check_clean(remote)


def neighbour(remote: RemoteBench, cache: Path) -> RemoteBench:
    """Another store, on the same hosts."""
    other = RemoteBench(remote.folder / "other", cache, hosts=remote.hosts, closing=remote.closing)
    other.folder.mkdir()
    for name in ("hosts", "home"):
        (other.folder / name).symlink_to(remote.folder / name)
    return other


@pytest.mark.parametrize("stores", [1, 2])
def test_a_second_controller_waits_and_then_runs(
    remote: RemoteBench, cache: Path, stores: int
) -> None:
    remote.add("alpha")
    other = neighbour(remote, cache) if stores == 2 else remote
    first = remote.started(steps=1, PAUSE=8)
    second = other.start(*other.sweep_arguments("fake", *other.on_hosts()))
    refused = other.sweep("fake", *other.on_hosts("--no-wait"))
    assert refused.returncode == 1
    assert " is in use by " in refused.stderr
    assert f", process {first.pid} on " in refused.stderr
    assert "  try: wait for it to end, or end that process" in refused.stderr
    said = ended(second)
    assert "waiting for host alpha: in use by " in said
    assert f", process {first.pid} on " in said
    ended(first)
    other.resumed()
    check_settled(remote, trials=1 if stores == 2 else 3)
    check_settled(other, trials=2 if stores == 2 else 3)


def test_a_step_that_another_store_left_is_respected(remote: RemoteBench, cache: Path) -> None:
    host = remote.add("alpha")
    other = neighbour(remote, cache)
    first = remote.started(PAUSE=10)
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=PATIENCE_S)
    refused = other.sweep("fake", *other.on_hosts("--no-wait"))
    assert refused.returncode == 1
    assert "resume with the store that it belongs to" in refused.stderr
    wait_for("the end of the step", lambda: list(host.work.rglob("02-read/status.json")))
    assert "took over host alpha from " in other.resumed()
    # Its own trial is finished by the store that it belongs to, and only by that.
    remote.resumed()
    check_settled(remote)
    check_settled(other)
