"""Processes that we start and that never outlive us, and folders that we share with others.

A command runs in a process group of its own. The group ends when its time is up, when we are
interrupted, and (through ``setpriv --pdeathsig``, else by its broken pipe) when we are killed.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchrunner.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

_GRACE_S = 5.0
_PACKAGES = {"apt-get": "apt", "dpkg-source": "dpkg-dev"}
_COMPLAINT = re.compile(r"error|fatal|ERROR:|E:|npm (?:error|ERR!) (?!code )")
"""How a line begins in which cargo, git, pip, apt or npm says what is wrong."""


class TimeUpError(Exception):
    """A command was ended because it took longer than it may."""


def run_logged(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    limit_s: float,
    on_line: Callable[[bytes], None],
) -> int:
    """Runs a command to its end and hands over every line that it prints; returns its status.

    Raises:
        TimeUpError: It took longer than ``limit_s``; its group has been ended.
    """
    expired = threading.Event()
    with subprocess.Popen(
        [*dies_with_us(), *argv], cwd=cwd, env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    ) as process:  # fmt: skip

        def expire() -> None:
            expired.set()
            end_group(process)

        timer = threading.Timer(limit_s, expire)
        timer.start()
        try:
            assert process.stdout is not None  # noqa: S101
            for line in process.stdout:
                on_line(line)
            process.wait()
        except BaseException:
            end_group(process)
            raise
        finally:
            timer.cancel()
            timer.join()
    if expired.is_set():
        raise TimeUpError
    return process.returncode


def tool_output(
    argv: Sequence[str],
    timeout_s: float,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """What a package client prints.

    Raises:
        SourceError: It is not installed, failed, or took too long.
    """
    program = argv[0]
    name = " ".join(argv[:3])
    if shutil.which(program) is None:
        package = _PACKAGES.get(program, program)
        raise SourceError(f"{program} is not installed", f"apt-get install -y {package}")
    with subprocess.Popen(
        [*dies_with_us(), *argv], cwd=cwd, env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            output, complaint = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            end_group(process)
            raise SourceError(
                f"{name} gave no answer within {timeout_s:g} s", "check the network"
            ) from None
        except BaseException:
            end_group(process)
            raise
    if process.returncode != 0:
        raise SourceError(f"{name} failed: {telling_line(complaint)}")
    return output


def telling_line(text: str) -> str:
    r"""The line of a complaint that says what is wrong: the first error, else the last line.

    >>> telling_line("Updating index\nerror: could not find `x`\n")
    'error: could not find `x`'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    why = next((line for line in lines if _COMPLAINT.match(line)), "")
    return why or (lines or ["it printed nothing"])[-1]


def dies_with_us() -> list[str]:
    """The command prefix that ends a command when this process is gone, ``kill -9`` included."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []


def end_group(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """Ends a process and all of its group: asked first, killed after a few seconds."""
    try:
        _signal_group(process.pid, signal.SIGTERM)
        process.wait(timeout=_GRACE_S)
    except subprocess.TimeoutExpired:
        pass
    finally:
        _signal_group(process.pid, signal.SIGKILL)


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return  # the last of the group has ended by itself


@contextmanager
def uninterrupted() -> Iterator[list[int]]:
    """Ctrl-C and a polite end wait until the block has ended; a second one does not wait.

    Yields:
        Numbers of the signals that have come: who is told to stop looks there, and stops.
    """
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield seen  # signals reach the main thread only
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, _frame: object) -> None:
        seen.append(number)
        if len(seen) > 1:
            raise KeyboardInterrupt

    for number in before:
        signal.signal(number, note)
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def exclusive(lock: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """One process at a time; others wait, and are told once that they do. Dies with its holder."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
