"""Commands that never outlive us: time limit, interruption, kill -9; locks between processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchrunner.errors import SourceError
from benchrunner.processes import TimeUpError, exclusive, run_logged, telling_line, tool_output

CHILD_AND_WAIT = "sleep 60 & echo $! > child; echo started; wait"


def run_shell(script: str, folder: Path, limit_s: float = 30.0) -> tuple[int, list[bytes]]:
    lines: list[bytes] = []
    status = run_logged(["sh", "-c", script], folder, dict(os.environ), limit_s, lines.append)
    return status, lines


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def assert_ends(pid: int) -> None:
    deadline = time.monotonic() + 20
    while not ended(pid):
        assert time.monotonic() < deadline, f"process {pid} goes on"
        time.sleep(0.02)


def test_lines_of_both_streams_and_the_status_are_handed_over(tmp_path: Path) -> None:
    assert run_shell("echo out; echo err >&2; exit 3", tmp_path) == (3, [b"out\n", b"err\n"])


def test_a_command_that_takes_too_long_ends_with_its_children(tmp_path: Path) -> None:
    with pytest.raises(TimeUpError):
        run_shell(CHILD_AND_WAIT, tmp_path, limit_s=0.5)
    assert_ends(int((tmp_path / "child").read_text()))


def test_an_interruption_ends_the_command_and_its_children(tmp_path: Path) -> None:
    def interrupt(_line: bytes) -> None:
        raise KeyboardInterrupt

    command = ["sh", "-c", CHILD_AND_WAIT]
    with pytest.raises(KeyboardInterrupt):
        run_logged(command, tmp_path, dict(os.environ), 30.0, interrupt)
    assert_ends(int((tmp_path / "child").read_text()))


def test_kill_9_of_the_caller_ends_the_command(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys\n"
        "from benchrunner.processes import run_logged\n"
        "run_logged(['sh', '-c', 'echo $$; exec sleep 60'], pathlib.Path('.'), dict(os.environ),\n"
        "           60, lambda line: print(line.decode(), end='', flush=True))\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True
    ) as caller:
        assert caller.stdout is not None
        command = int(caller.stdout.readline())
        assert not ended(command)
        caller.send_signal(signal.SIGKILL)
    assert_ends(command)


def test_a_client_is_told_from_its_first_error(tmp_path: Path) -> None:
    assert tool_output(["sh", "-c", "pwd"], 10, cwd=tmp_path).strip() == str(tmp_path)
    with pytest.raises(SourceError) as caught:
        tool_output(["sh", "-c", "echo error: no >&2; exit 1"], 10)
    assert caught.value.message.endswith("failed: error: no")
    assert telling_line("") == "it printed nothing"
    with pytest.raises(SourceError, match="no-such-client is not installed"):
        tool_output(["no-such-client"], 10)


def test_the_second_of_two_waits_and_is_told(tmp_path: Path) -> None:
    lock = tmp_path / "locks" / "one.lock"
    code = (
        "import sys, pathlib\n"
        "from benchrunner.processes import exclusive\n"
        "with exclusive(pathlib.Path(sys.argv[1])):\n"
        "    print('held', flush=True); sys.stdin.read()\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    with subprocess.Popen(
        [sys.executable, "-c", code, str(lock)],
        env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as holder:  # fmt: skip
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        told: list[str] = []

        def let_go() -> None:
            told.append("waiting")
            holder.kill()

        with exclusive(lock, let_go):
            assert told == ["waiting"], "the lock of a killed holder is free"
    with exclusive(lock, lambda: told.append("again")):
        assert told == ["waiting"]
