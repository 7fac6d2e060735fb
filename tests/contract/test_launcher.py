"""What every launcher must do, with the real supervisor; see ``conftest.LAUNCHERS``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchrunner.errors import LaunchError
from benchrunner.launchers import LaunchRequest, RunState
from benchrunner.model import Command, Handle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchrunner.launchers import Launcher

pytestmark = pytest.mark.native

SLEEP = ("sleep", "1000")


@pytest.fixture
def request_for(tmp_path: Path, launcher: Launcher) -> Iterator[Callable[..., LaunchRequest]]:
    """Makes requests whose runs are ended after the test, whatever became of them."""
    run_dirs = []

    def make(*argv: str, name: str = "run", **changes: Any) -> LaunchRequest:
        run_dir = str(tmp_path / "runs" / name)
        run_dirs.append(run_dir)
        request = LaunchRequest(run_dir, f"test/{name}", Command(argv), cwd=str(tmp_path))
        return replace(request, **changes)

    yield make
    for run_dir in run_dirs:
        handle = launcher.find(run_dir)
        if handle is not None:
            launcher.stop(handle, 0)


def until(condition: Callable[[], Any]) -> None:
    """Waits for something that another process does."""
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come about within 10 s")


def alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def child_pid(run_dir: str) -> int:
    """Pid of the command that the supervisor started."""
    path = Path(run_dir) / "child.json"
    until(path.exists)
    return int(json.loads(path.read_text())["pid"])


def status_of(state: RunState) -> dict[str, Any]:
    """The status of a run that is over."""
    assert state.status is not None
    return dict(state.status)


# ---------------------------------------------------------------- start and wait


def test_a_run_leaves_its_output_and_how_it_ended(
    launcher: Launcher, request_for: Callable[..., LaunchRequest]
) -> None:
    request = request_for("sh", "-c", "echo hello; echo oops >&2; exit 3")
    ended = launcher.wait(launcher.start(request))
    assert (ended.state, ended.stdout_bytes, ended.stderr_bytes) == ("finished", 6, 5)
    status = status_of(ended)
    assert (status["state"], status["exit_code"], status["signal"]) == ("exited", 3, None)
    assert (Path(request.run_dir) / "stdout").read_text() == "hello\n"


def test_everything_asked_for_reaches_the_supervisor(
    launcher: Launcher, request_for: Callable[..., LaunchRequest], tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    request = request_for(
        "sh", "-c", 'echo "$A|$HOME|$(pwd)"',
        command=Command(("/bin/sh", "-c", 'echo "$A|$HOME|$(pwd)"'), {"A": "x y=$z"}),
        cwd=str(tmp_path / "a"), timeout_s=1234567.5, grace_s=0.125, interval_s=0.5,
        du_dirs=(str(tmp_path / "a"), str(tmp_path)), device_dir=str(tmp_path), clear_env=True,
    )  # fmt: skip
    launcher.wait(launcher.start(request))
    assert (Path(request.run_dir) / "stdout").read_text() == f"x y=$z||{tmp_path}/a\n"
    record = json.loads((Path(request.run_dir) / "command.json").read_text())
    expected = {
        "run_id": "test/run", "argv": list(request.command.argv), "env": {"A": "x y=$z"},
        "clear_env": True, "cwd": str(tmp_path / "a"), "timeout_s": 1234567.5, "grace_s": 0.125,
        "interval_s": 0.5, "du": [str(tmp_path / "a"), str(tmp_path)],
    }  # fmt: skip
    assert {key: record[key] for key in expected} == expected
    assert record["device"]["directory"] == str(tmp_path)


def test_a_run_folder_is_used_once(
    launcher: Launcher, request_for: Callable[..., LaunchRequest]
) -> None:
    request = request_for("true")
    launcher.wait(launcher.start(request))
    with pytest.raises(LaunchError, match=r"runs/run on .* holds a run already") as caught:
        launcher.start(request)
    assert caught.value.hint == "each run needs a new folder"


def test_a_running_one_is_not_started_twice(
    launcher: Launcher, request_for: Callable[..., LaunchRequest]
) -> None:
    handle = launcher.start(request_for(*SLEEP))
    with pytest.raises(LaunchError, match="holds a run already"):
        launcher.start(request_for(*SLEEP))
    assert launcher.poll(handle).state == "running"


def test_ticks_tell_state_and_age_until_the_end(
    launcher: Launcher, request_for: Callable[..., LaunchRequest], tmp_path: Path
) -> None:
    script = "echo x; while [ ! -e go ]; do sleep 0.01; done"
    handle = launcher.start(request_for("sh", "-c", script))
    ticks: list[tuple[RunState, float]] = []

    def tick(state: RunState, age_s: float) -> None:
        ticks.append((state, age_s))
        if len(ticks) == 5:
            (tmp_path / "go").touch()

    assert launcher.wait(handle, tick).state == "finished"
    assert {state.state for state, _ in ticks} == {"running"}
    assert ticks[-1][0].stdout_bytes == 2
    ages = [age_s for _, age_s in ticks]
    assert ages == sorted(ages)
    assert ages[0] >= 0


def test_the_end_of_the_watcher_is_not_the_end_of_the_run(
    launcher: Launcher, request_for: Callable[..., LaunchRequest]
) -> None:
    handle = launcher.start(request_for(*SLEEP))

    def interrupt(_state: RunState, _age_s: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launcher.wait(handle, interrupt)
    assert launcher.poll(handle).state == "running"


# ---------------------------------------------------------------- what goes wrong


def test_the_time_limit_ends_every_process(
    launcher: Launcher, request_for: Callable[..., LaunchRequest], tmp_path: Path
) -> None:
    script = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 1000' & trap '' TERM; wait; wait"
    handle = launcher.start(request_for("sh", "-c", script, timeout_s=0.3, grace_s=0.1))
    assert status_of(launcher.wait(handle))["state"] == "timeout"
    assert not alive(int((tmp_path / "pid").read_text()))


def test_a_program_that_is_not_there_is_a_result_with_a_reason(
    launcher: Launcher, request_for: Callable[..., LaunchRequest]
) -> None:
    request = request_for("no-such-program")
    try:
        reason = status_of(launcher.wait(launcher.start(request)))["error"]
    except LaunchError as error:
        reason = error.message
    assert "cannot execute no-such-program: No such file or directory" in reason


def test_a_folder_that_cannot_be_made_is_named(
    launcher: Launcher, request_for: Callable[..., LaunchRequest]
) -> None:
    request = request_for("true", run_dir="/proc/no/such/run")
    with pytest.raises(LaunchError, match=r"the run in /proc/no/such/run on .*: mkdir: cannot"):
        launcher.start(request)


def test_stop_ends_a_run_and_says_so(
    launcher: Launcher, request_for: Callable[..., LaunchRequest]
) -> None:
    handle = launcher.start(request_for(*SLEEP))
    stopped = launcher.stop(handle, 5)
    assert stopped.state == "finished"
    assert status_of(stopped)["state"] == "killed"
    assert launcher.stop(handle, 5) == stopped


def test_nothing_started_is_absent(launcher: Launcher, tmp_path: Path) -> None:
    assert launcher.find(str(tmp_path / "none")) is None
    never = Handle(str(tmp_path / "none"), os.getpid(), 1)
    assert launcher.poll(never) == RunState("absent")
    assert launcher.stop(never, 0) == RunState("absent")


# ---------------------------------------------------------------- found again

STARTER = """
import os, signal, sys
from benchrunner.launchers import LaunchRequest
from benchrunner.launchers.direct import DirectLauncher
from benchrunner.model import Command
from benchrunner.transports.local import LocalTransport
supervisor, run_dir, cwd = sys.argv[1:]
launcher = DirectLauncher(LocalTransport(), supervisor)
command = Command(("sh", "-c", "while [ ! -e go ]; do sleep 0.01; done; echo done"))
handle = launcher.start(LaunchRequest(run_dir, "adopted", command, cwd=cwd))
print(handle.pid, handle.start_time, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_run_outlives_the_controller_and_is_adopted(
    launcher: Launcher, supervisor: str, tmp_path: Path
) -> None:
    run_dir = str(tmp_path / "run")
    starter = subprocess.run(
        [sys.executable, "-c", STARTER, supervisor, run_dir, str(tmp_path)],
        stdout=subprocess.PIPE, check=False,
    )  # fmt: skip
    assert starter.returncode == -signal.SIGKILL
    pid, start_time = map(int, starter.stdout.split())
    handle = launcher.find(run_dir)
    assert handle == Handle(run_dir, pid, start_time)
    assert launcher.poll(handle).state == "running"
    (tmp_path / "go").touch()
    assert status_of(launcher.wait(handle))["exit_code"] == 0
    assert (tmp_path / "run" / "stdout").read_text() == "done\n"
    assert launcher.find(run_dir) == handle


def test_a_run_whose_supervisor_was_killed_is_lost_and_its_processes_are_ended(
    launcher: Launcher, request_for: Callable[..., LaunchRequest], tmp_path: Path
) -> None:
    script = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 1000' & wait"
    request = request_for("sh", "-c", script)
    handle = launcher.start(request)
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    left_behind = int((tmp_path / "pid").read_text())
    os.kill(handle.pid, signal.SIGKILL)
    assert launcher.wait(handle).state == "lost"
    assert launcher.find(request.run_dir) == handle
    stopped = launcher.stop(handle, 1)
    assert status_of(stopped)["state"] == "lost"
    assert status_of(stopped)["error"] == "the supervisor is gone and has left no status.json"
    assert not alive(left_behind)
    assert not alive(child_pid(request.run_dir))


def test_after_a_reboot_the_same_pid_means_nothing(
    launcher: Launcher, request_for: Callable[..., LaunchRequest]
) -> None:
    request = request_for(*SLEEP)
    handle = launcher.start(request)
    record = Path(request.run_dir) / "command.json"
    original = record.read_text()
    boot_id = json.loads(original)["boot_id"]
    record.write_text(original.replace(boot_id, "0" * 36))
    assert launcher.poll(handle).state == "lost"
    record.write_text(original)
    assert launcher.poll(handle).state == "running"


def test_another_process_with_the_same_pid_is_not_the_run(
    launcher: Launcher, request_for: Callable[..., LaunchRequest]
) -> None:
    handle = launcher.start(request_for(*SLEEP))
    other = replace(handle, start_time=handle.start_time + 1)
    assert launcher.poll(other).state == "lost"


def test_a_damaged_record_is_a_lost_run(launcher: Launcher, tmp_path: Path) -> None:
    for name, text in (("cut", '{"run_id": "x", "superv'), ("list", "[]")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "command.json").write_text(text)
        handle = launcher.find(str(tmp_path / name))
        assert handle == Handle(str(tmp_path / name), 0, 0)
        assert launcher.poll(handle).state == "lost"
        stopped = launcher.stop(handle, 0)
        assert status_of(stopped)["error"] == "command.json cannot be read"


def test_a_damaged_status_is_no_status(
    launcher: Launcher, request_for: Callable[..., LaunchRequest]
) -> None:
    request = request_for("true")
    handle = launcher.start(request)
    launcher.wait(handle)
    (Path(request.run_dir) / "status.json").write_text('{"state": "exi')
    until(lambda: launcher.poll(handle).state == "lost")
