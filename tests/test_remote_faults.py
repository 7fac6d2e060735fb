"""Sweeps over SSH when something goes wrong: everything has its end once, and nothing is left over.

Real processes on both sides: the program, sshd, the supervisor, and a fake engine that counts what
was executed. The network is the test's own.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from fault_support import FAKE, PATIENCE_S, Bench, interrupt, wait_for
from remote_support import (
    RemoteBench,
    check_clean,
    check_settled,
    ended,
    remote,
    without_job,
)
from sshd_support import make_key, public

from benchrunner.model import TrialState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from remote_support import RemoteHost
    from sshd_support import DelayProxy

pytestmark = pytest.mark.native

__all__ = ["remote"]

POINTS = (
    "step-begun", "step-started", "step-running", "step-ended", "step-collected",
    "step-stored", "steps-done", "database-removed", "trial-ended",
)  # fmt: skip
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Bench:
    """What comes of it when nothing goes wrong."""
    bench = Bench(tmp_path_factory.mktemp("undisturbed"), cache)
    assert bench.sweep("fake").returncode == 0
    return bench


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=PATIENCE_S)


# ---------------------------------------------------------------- the controller dies


@pytest.mark.parametrize("point", POINTS)
def test_kill_then_resume_is_as_if_nothing_had_happened(
    remote: RemoteBench, undisturbed: Bench, point: str
) -> None:
    remote.add("alpha")
    count = 1 if point in ("steps-done", "database-removed", "trial-ended") else 2
    killed = remote.sweep("fake", *remote.on_hosts(), fault=f"{point}:{count}", PAUSE=0.4)
    assert killed.returncode == -9, killed.stderr
    if point == "trial-ended":
        assert remote.run("resume", "--format", "none").returncode == 3
        # Nothing remains to be done; the next sweep finds the lease of somebody who is dead.
        again = remote.sweep("fake", *remote.on_hosts())
        assert again.returncode == 0, again.stderr
    else:
        remote.resumed()
    check_settled(remote, trials=2 if point == "trial-ended" else 1)
    assert without_job(remote.rows()[:1]) == without_job(undisturbed.rows())


def test_kill_while_two_hosts_work(remote: RemoteBench) -> None:
    remote.add("alpha")
    remote.add("beta")
    killed = remote.sweep("fake", *remote.on_hosts(), fault="step-running:3", PAUSE=0.6)
    assert killed.returncode == -9, killed.stderr
    remote.resumed()
    check_settled(remote, trials=2)


def test_kill_when_one_of_two_hosts_has_done_its_part(remote: RemoteBench) -> None:
    remote.add("alpha")
    remote.add("beta")
    killed = remote.sweep("fake", *remote.on_hosts(), fault="stored-end-trial:1")
    assert killed.returncode == -9, killed.stderr
    remote.resumed()
    # Nobody goes to the host that is done: the next sweep there takes over from the dead.
    again = remote.sweep("fake", *remote.on_hosts())
    assert again.returncode == 0, again.stderr
    assert "took over host " in again.stderr
    check_settled(remote, trials=4)


def test_a_step_that_goes_on_without_its_controller_is_adopted(remote: RemoteBench) -> None:
    remote.add("alpha")
    process = remote.started(PAUSE=2)
    kill(process)
    assert remote.orphans(), "the step goes on"
    said = remote.resumed()
    assert "took over host alpha from " in said
    assert f", process {process.pid} on " in said
    check_settled(remote)


def test_a_host_that_was_rebooted_meanwhile(remote: RemoteBench) -> None:
    host = remote.add("alpha")
    kill(remote.started(READ_MODE="hang"))
    (record,) = host.records("read")
    content = json.loads(record.read_text())
    end_by_power(remote, content["supervisor"]["pid"])
    record.write_text(json.dumps({**content, "boot_id": "0" * 8 + "-0000-4000-8000-" + "0" * 12}))
    resumed = remote.run("resume", "--format", "none")
    assert resumed.returncode == 1
    assert "read: failed: it was lost: the host was rebooted" in resumed.stderr
    (trial,) = remote.rows()
    assert (trial["state"], trial["reason"]) == (
        "failed",
        "read: it was lost: the host was rebooted",
    )
    check_clean(remote)


def end_by_power(remote: RemoteBench, supervisor: int) -> None:
    """Everything at once, as when the power goes: nobody sees the other's end."""
    pids = [supervisor, *remote.orphans()]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, number)
    wait_for("their end", lambda: not remote.orphans())


def test_a_killed_supervisor_loses_its_step(remote: RemoteBench) -> None:
    host = remote.add("alpha")
    process = remote.started(READ_MODE="hang")
    (record,) = host.records("read")
    os.kill(json.loads(record.read_text())["supervisor"]["pid"], signal.SIGKILL)
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert "read: failed: it was lost: " in stderr
    assert remote.rows()[0]["reason"].startswith("read: it was lost: ")
    check_clean(remote)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_while_two_hosts_work(remote: RemoteBench, number: int) -> None:
    remote.add("alpha")
    remote.add("beta")
    process = remote.started(steps=3, PAUSE=2)
    code, stderr = interrupt(process, number)
    assert code == 130, stderr
    assert "error: interrupted" in stderr
    assert f"  try: benchrunner resume --data {remote.data}\n" in stderr
    with remote.store() as store:
        assert {t.state for t in store.trials()} == {TrialState.RUNNING}
        assert [store.lease(name) for name in remote.hosts] == [None, None]
    assert not remote.orphans()
    assert [host.lease() for host in remote.hosts.values()] == ["released", "released"]
    remote.resumed()
    check_settled(remote, trials=2)


# ---------------------------------------------------------------- the connection


def cut(_host: RemoteHost, network: DelayProxy) -> None:
    network.cut()


def kill_sessions(host: RemoteHost, _network: DelayProxy) -> None:
    host.sshd.kill_sessions()


def restart_later(host: RemoteHost, _network: DelayProxy) -> None:
    host.sshd.stop()
    time.sleep(2)
    host.sshd.start()


def freeze(host: RemoteHost, _network: DelayProxy) -> None:
    host.sshd.freeze()
    time.sleep(2)
    host.sshd.thaw()


def stall(_host: RemoteHost, network: DelayProxy) -> None:
    network.stall()
    time.sleep(2)
    network.resume()


@pytest.mark.parametrize("fault", [cut, kill_sessions, restart_later, freeze, stall])
def test_a_step_does_not_notice_what_the_network_does(
    remote: RemoteBench, undisturbed: Bench, fault: Callable[[RemoteHost, DelayProxy], None]
) -> None:
    host, network = remote.disturbed()
    process = remote.started(PAUSE=1)
    fault(host, network)
    ended(process)
    check_settled(remote)
    assert without_job(remote.rows()) == without_job(undisturbed.rows())


def test_a_connection_that_breaks_again_and_again(remote: RemoteBench) -> None:
    _, network = remote.disturbed()
    process = remote.started(steps=1, PAUSE=1.5)
    while process.poll() is None:
        network.cut()
        time.sleep(0.4)
    ended(process)
    check_settled(remote)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.7, 0.85, 0.95])
def test_cut_anywhere(remote: RemoteBench, share: float) -> None:
    """What was cut off before the first trial is told, and gone on with when it is asked for."""
    _, network = remote.disturbed()
    assert remote.sweep("fake", *remote.on_hosts()).returncode == 0
    passed = network.up_bytes + network.down_bytes
    network.cut_after(int(passed * share))
    done = remote.sweep("fake", *remote.on_hosts())
    if done.returncode:
        assert "error: " in done.stderr
        assert "Traceback" not in done.stderr
        remote.resumed()
    check_settled(remote, trials=2)


def test_cut_during_the_fetch_of_a_run_folder(remote: RemoteBench) -> None:
    _, network = remote.disturbed()
    process = remote.started(steps=1, LOAD_MODE="big", PAUSE=1)
    network.cut_after(4_000_000)
    stderr = process.communicate(timeout=PATIENCE_S)[1]
    assert network.down_bytes > 8_000_000
    assert process.returncode == 0, stderr
    check_settled(remote)
    with remote.store() as store:
        (trial,) = store.trials()
        raw = remote.data / "raw" / str(store.step_runs(trial.id)[0].raw_path)
    assert sum(path.stat().st_size for path in raw.iterdir()) > 8_000_000


def test_cut_while_the_supervisor_is_sent(remote: RemoteBench) -> None:
    host, network = remote.disturbed("alpha", prepared=False)
    process = remote.start(*remote.sweep_arguments("fake", *remote.on_hosts()))
    wait_for("the sources", lambda: list(host.work.glob("cache/supervisor/*/build-*/*.c")))
    network.cut()
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, stderr
    check_settled(remote)


def test_cut_as_soon_as_the_host_is_ours(remote: RemoteBench) -> None:
    host, network = remote.disturbed("alpha")
    process = remote.start(*remote.sweep_arguments("fake", *remote.on_hosts()))
    wait_for("the lease", lambda: host.lease() == "held")
    network.cut()
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, stderr
    check_settled(remote)


def test_a_host_that_stays_away_does_not_hold_up_the_other(remote: RemoteBench) -> None:
    gone = remote.add("alpha", limits={"reconnect_s": 1})
    remote.add("beta")
    process = remote.started(steps=4, PAUSE=1)
    gone.sshd.stop()
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert "error: 1 host of 2 did not finish: " in stderr
    assert f"127.0.0.1:{gone.port} did not come back within 1 s" in stderr
    assert "  try: benchrunner resume goes on with its trials once it is back" in stderr
    with remote.store() as store:
        states = {trial.job.host: trial.state for trial in store.trials()}
    assert states == {"alpha": TrialState.RUNNING, "beta": TrialState.OK}
    gone.sshd.start()
    remote.resumed()
    check_settled(remote, trials=2)


def test_ctrl_c_while_a_host_is_away(remote: RemoteBench) -> None:
    host = remote.add("alpha")
    process = remote.started(PAUSE=2)
    host.sshd.stop()
    line = read_until(process, "trying again for 40 s")
    assert "127.0.0.1" in line
    code, stderr = interrupt(process)
    assert code == 130, stderr
    assert f"  try: benchrunner resume --data {remote.data}\n" in stderr
    host.sshd.start()
    remote.resumed()
    check_settled(remote)


def read_until(process: subprocess.Popen[str], text: str) -> str:
    """The line in which a text is said."""
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return line
    raise AssertionError(f"{text} was never said")


# ---------------------------------------------------------------- who the host is


def test_an_unknown_host_key(remote: RemoteBench) -> None:
    remote.add("alpha")
    remote.known_hosts.write_text("")
    check_refused(remote, "benchrunner hosts trust alpha")


def test_a_changed_host_key(remote: RemoteBench) -> None:
    host = remote.add("alpha")
    host.sshd.change_host_key()
    check_refused(remote, "benchrunner hosts trust alpha")
    assert public(host.sshd.host_keys["ed25519"]) not in remote.known_hosts.read_text()


def test_a_wrong_key(remote: RemoteBench) -> None:
    host = remote.add("alpha")
    host.sshd.authorize(make_key(remote.folder / "another"))
    check_refused(remote, "ssh-copy-id -i ")


def test_a_host_that_is_not_there(remote: RemoteBench) -> None:
    host = remote.add("alpha")
    host.sshd.stop()
    check_refused(remote, f"127.0.0.1:{host.port}")


def check_refused(remote: RemoteBench, hint: str) -> None:
    """One line that says what, and nothing stored, started or left."""
    done = remote.sweep("fake", *remote.on_hosts())
    assert done.returncode in (1, 2), done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert hint in done.stderr
    assert "127.0.0.1" in line
    assert "Traceback" not in done.stderr
    assert remote.run("status").returncode == 2
    assert not remote.executed()


def test_a_key_that_changes_while_a_sweep_goes_on(remote: RemoteBench) -> None:
    host = remote.add("alpha", limits={"reconnect_s": 30})
    process = remote.started(PAUSE=2)
    host.sshd.change_host_key()
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert "benchrunner hosts trust alpha" in stderr
    key = public(host.sshd.host_keys["ed25519"])
    remote.known_hosts.write_text(f"{host.address} {key}\n")
    remote.resumed()
    check_settled(remote)


# ---------------------------------------------------------------- the host lacks something


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that is easily filled."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], check=False,
        capture_output=True,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip("needs the right to mount")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """A file that takes all space there is."""
    path = folder / "ballast"
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    return path


@AS_ROOT
def test_a_disk_that_is_full_before_anything_starts(remote: RemoteBench, small_disk: Path) -> None:
    host = remote.add("alpha", prepared=False)
    host.work = small_disk / "work"
    remote.define(host)
    host.prepare()
    fill(small_disk)
    done = remote.sweep("fake", *remote.on_hosts())
    assert done.returncode == 2
    assert f"error: host alpha has 0 bytes free at {host.work}, and a trial needs" in done.stderr
    assert not remote.executed()


@AS_ROOT
def test_a_disk_that_becomes_full_during_a_step(remote: RemoteBench, small_disk: Path) -> None:
    """It is told, and once there is space what was not done is done."""
    host = remote.add("alpha", prepared=False)
    host.work = small_disk / "work"
    remote.define(host)
    host.prepare()
    process = remote.started(steps=1, PAUSE=1)
    ballast = fill(small_disk)
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1, stderr
    assert "o space left on device" in stderr
    assert "Traceback" not in stderr
    ballast.unlink()
    remote.run("resume", "--format", "none")
    (trial,) = remote.rows()
    assert TrialState(trial["state"]).final
    assert set(remote.executed().values()) == {1}
    check_clean(remote)


@AS_ROOT
def test_a_read_only_work_directory(remote: RemoteBench, small_disk: Path) -> None:
    host = remote.add("alpha", prepared=False)
    host.work = small_disk / "work"
    remote.define(host)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    done = remote.sweep("fake", *remote.on_hosts())
    assert done.returncode in (1, 2)
    where = f"root cannot write to {host.work}: read-only file system"
    assert f"error: host alpha: {where}\n" in done.stderr
    assert "Traceback" not in done.stderr
    assert not remote.executed()


def bare_path(folder: Path, *more: str) -> str:
    """A PATH with everything but compilers."""
    folder.mkdir()
    for directory in ("/bin", "/usr/bin", *more):
        for program in os.scandir(directory):
            link = folder / program.name
            if program.name not in ("cc", "gcc", "c99", "c++", "g++", "make") and not (
                link.is_symlink() or "gcc" in program.name
            ):
                link.symlink_to(program.path)
    return str(folder)


def test_a_host_without_compiler_gets_the_supervisor_that_is_made_here(remote: RemoteBench) -> None:
    path = bare_path(remote.folder / "bare", str(FAKE / "bin"))
    host = remote.add("alpha", prepared=False, env={"PATH": path})
    done = remote.sweep("fake", *remote.on_hosts())
    assert done.returncode == 0, done.stderr
    check_settled(remote)
    made = list(remote.cache.glob("supervisor/*/br-supervise"))
    (sent,) = host.work.glob("cache/supervisor/*/br-supervise")
    assert sent.read_bytes() in [path.read_bytes() for path in made]


def built_engine(remote: RemoteBench) -> Path:
    """An engine whose program is compiled, and does what the fake one does; its tree."""
    tree = remote.folder / "tree"
    for folder in (tree, *(remote.folder / name for name in ("engines", "tools", "workloads"))):
        folder.mkdir()
    program = json.dumps(str(FAKE / "bin" / "fake_bench"))
    (tree / "main.c").write_text(
        "#include <unistd.h>\n"
        f"int main(int argc, char **argv) {{ (void)argc; return execv({program}, argv); }}\n"
    )
    (tree / "Makefile").write_text("built_bench: main.c\n\t$(CC) -o $@ $<\n")
    (remote.folder / "engines" / "built.toml").write_text(
        'name = "built"\ntitle = "Built engine"\n[[source]]\nkind = "path"\n'
        '[build]\ncommands = [["make", "built_bench"]]\nkeep = ["built_bench"]\n'
    )
    (remote.folder / "tools" / "built_bench.toml").write_text(
        'name = "built_bench"\nengine = "built"\nargv = ["{binary}"]\nparser = "db_bench"\n'
    )
    workload = (FAKE / "workloads" / "fake.toml").read_text()
    workload = workload.replace('"fake"', '"built"').replace('"fake_bench"', '"built_bench"')
    (remote.folder / "workloads" / "built.toml").write_text(workload)
    return tree


@pytest.mark.parametrize("where", ["host", "controller"])
def test_an_engine_is_built_there_or_sent_to_a_host_without_compiler(
    remote: RemoteBench, where: str
) -> None:
    path = os.environ["PATH"] if where == "host" else bare_path(remote.folder / "bare")
    host = remote.add("alpha", build=where, env={"PATH": path})
    tree = built_engine(remote)
    done = remote.sweep("built", *remote.on_hosts("--versions", str(tree)))
    assert done.returncode == 0, done.stderr
    check_settled(remote)
    assert list((host.work / "cache").rglob("built_bench"))


def test_a_host_without_compiler_that_shall_build(remote: RemoteBench) -> None:
    remote.add("alpha", env={"PATH": bare_path(remote.folder / "bare")})
    tree = built_engine(remote)
    done = remote.sweep("built", *remote.on_hosts("--versions", str(tree)))
    assert done.returncode == 1
    (trial,) = remote.rows()
    assert trial["state"] == "failed"
    assert "cannot be built on alpha without gcc" in trial["reason"]
    assert 'build = "controller" in hosts/alpha.toml' in trial["reason"]
    check_clean(remote)


def test_cut_during_a_build(remote: RemoteBench) -> None:
    host, network = remote.disturbed()
    tree = built_engine(remote)
    text = (tree / "Makefile").read_text()
    (tree / "Makefile").write_text(f"{text}\t@echo x >>{remote.folder}/builds; sleep 1.5\n")
    process = remote.start(
        *remote.sweep_arguments("built", *remote.on_hosts("--versions", str(tree)))
    )
    wait_for("the build", (remote.folder / "builds").exists)
    network.cut()
    ended(process)
    check_settled(remote)
    assert (remote.folder / "builds").read_text() == "x\n"
    assert list((host.work / "cache").rglob("built_bench"))
