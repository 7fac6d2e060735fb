"""How a stream to ``br-supervise serve`` ends, and what both sides make of it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from serving_support import (
    MIB,
    NO_LIMIT_S,
    Far,
    begin,
    client,
    compile_once,
    end,
    eventually,
    mark,
    opened,
    processes_with,
    sleeps,
)

from benchrunner.transports.serving import Serving, StreamLostError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.native


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The supervisor in every build."""
    return compile_once(tmp_path_factory)


@pytest.fixture
def far(programs: dict[str, str], tmp_path: Path) -> Iterator[Far]:
    """A far end that must end well, whatever the test does with it."""
    yield from opened(programs["sanitized"], tmp_path)


# ---------------------------------------------------------------- the end of the stream


def test_the_end_kills_commands_and_not_supervised_runs(far: Far, tmp_path: Path) -> None:
    run = tmp_path / "run"
    pid = far.supervise(run, "sleep 1000")
    with ThreadPoolExecutor(1) as threads:
        doomed = threads.submit(far.shell, "sleep 1000 & wait", env={"MARK": mark("4")})
        eventually(sleeps(mark("4")))
        far.serving.close()
        with pytest.raises(StreamLostError, match="far end is lost: it was closed") as caught:
            doomed.result()
    assert caught.value.may_have_run
    assert end(far.process) == 0
    eventually(lambda: processes_with(mark("4")) == [])
    os.kill(pid, 0)
    assert not (run / "status.json").exists()
    subprocess.run([far.program, "stop", "--run-dir", run, "--grace", "0"], check=True)
    with pytest.raises(StreamLostError) as caught:
        far.serving.size("/")
    assert far.serving.is_lost
    assert not caught.value.may_have_run


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_end_it_like_the_end_of_its_input(far: Far, number: int) -> None:
    far.serving.greeting()
    with ThreadPoolExecutor(1) as threads:
        doomed = threads.submit(far.shell, "sleep 1000", env={"MARK": mark("5")})
        eventually(sleeps(mark("5")))
        far.process.send_signal(number)
        with pytest.raises(StreamLostError, match="lost: it ended"):
            doomed.result()
    assert far.process.wait(20) == 0
    eventually(lambda: processes_with(mark("5")) == [])


def test_commands_die_with_a_killed_far_end(programs: dict[str, str], tmp_path: Path) -> None:
    process = begin(programs["sanitized"], tmp_path / "stderr")
    serving = client(process)
    with ThreadPoolExecutor(1) as threads:
        doomed = threads.submit(
            serving.run, ["sleep", "1000"], timeout_s=NO_LIMIT_S, env={"MARK": mark("6")}
        )
        eventually(sleeps(mark("6")))
        process.kill()
        with pytest.raises(StreamLostError):
            doomed.result()
    eventually(lambda: processes_with(mark("6")) == [])
    serving.close()
    assert end(process) == -9


def test_a_frozen_far_end_is_noticed(programs: dict[str, str], tmp_path: Path) -> None:
    process = begin(programs["sanitized"], tmp_path / "stderr")
    serving = client(process, process.kill, patience_s=0.3)
    assert serving.size("/") is not None
    process.send_signal(signal.SIGSTOP)
    with ThreadPoolExecutor(1) as threads:
        stuck = threads.submit(
            serving.run, ["cat"], input=bytes(8 * MIB), timeout_s=0.1
        )  # more than the pipe holds
        with pytest.raises(StreamLostError, match=r"nothing was heard of it for 0\.3 s"):
            serving.run(["true"], timeout_s=0.1)
        with pytest.raises(StreamLostError):
            stuck.result()
    serving.close()
    assert end(process) == -9


def test_a_long_command_is_no_frozen_far_end(programs: dict[str, str], tmp_path: Path) -> None:
    process = begin(programs["sanitized"], tmp_path / "stderr")
    serving = client(process, patience_s=0.2)
    assert serving.run(["sleep", "1"], timeout_s=NO_LIMIT_S).exit_code == 0
    serving.close()
    assert end(process) == 0


def test_the_greeting_says_who_answers(far: Far) -> None:
    greeting = far.serving.greeting()
    assert greeting.pid == far.process.pid
    assert greeting.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    version = subprocess.run([far.program, "--version"], capture_output=True, check=True).stdout
    assert version == f"br-supervise {greeting.version}\n".encode()


def pretend(script: str, patience_s: float = 20.0) -> tuple[subprocess.Popen[bytes], Serving]:
    """A far end that is something else."""
    process = subprocess.Popen(
        ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    return process, client(process, process.kill, patience_s)


GREETING = """echo '{"serve":1,"version":"1","boot_id":"b","pid":1}';"""


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("echo Welcome!; exec cat", r"lost: it said b'Welcome!' instead of a greeting\n"),
        ("""echo '{"serve":99}'; exec cat""", r"b'\{\"serve\":99\}' instead of a greeting\n"),
        ("head -c 3000000 /dev/zero; exec cat", r"lost: it said b'\\x00.* without end\n"),
        ("exit 1", r"lost: it ended\n"),
        ("exec sleep 1000", r"lost: no greeting came within 0\.2 s\n"),
    ],
)
def test_another_greeting_is_refused(script: str, sentence: str) -> None:
    process, serving = pretend(script, patience_s=0.2 if "sleep" in script else 20.0)
    with pytest.raises(StreamLostError, match=sentence) as caught:
        serving.greeting()
    assert caught.value.hint.startswith("see whether the host answers")
    serving.close()
    end(process)


@pytest.mark.parametrize("noise", ["noise", "[1]", "{"])
def test_noise_in_between_ends_it(noise: str) -> None:
    process, serving = pretend(f"{GREETING} read line; echo '{noise}'; exec cat")
    with pytest.raises(StreamLostError, match="lost: it said b"):
        serving.size("/")
    serving.close()
    end(process)


def test_the_first_failure_of_sending_is_told() -> None:
    def refuse(_data: bytes) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    over = threading.Event()
    serving = Serving(lambda _most: bytes(not over.wait(20)), refuse, "x", over.set)
    with pytest.raises(StreamLostError, match="the connection to x is lost: broken pipe"):
        serving.size("/")
    serving.close()
