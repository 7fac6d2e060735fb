"""Far ends for the tests of ``serve``: real ones over pipes, with the client or without."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from benchrunner.launchers.supervisor import supervisor_sources
from benchrunner.transports.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

    from benchrunner.transports import Completed

BUILDS = {
    "sanitized": ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "without_pidfd": ["-O0", "-DBR_TEST_WITHOUT_PIDFD"],
}
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
NO_LIMIT_S = 60.0
MIB = 1 << 20


def compile_once(factory: pytest.TempPathFactory) -> dict[str, str]:
    """The supervisor in every build, compiled side by side; once for a whole test run."""
    folder = factory.getbasetemp() / "serve"
    if folder.exists():
        return {name: str(folder / name) for name in BUILDS}
    folder.mkdir()
    sources = sorted(str(path) for path in supervisor_sources().glob("*.c"))
    running = {
        name: subprocess.Popen(
            ["cc", "-std=c17", *WARNINGS, *flags, "-o", str(folder / name), *sources],
            stderr=subprocess.PIPE,
            text=True,
        )
        for name, flags in BUILDS.items()
    }
    for name, process in running.items():
        _, messages = process.communicate()
        assert process.returncode == 0, f"{name}: {messages}"
    return {name: str(folder / name) for name in BUILDS}


@dataclass
class Far:
    """One running ``serve``, what it says on stderr, and a client of it."""

    program: str
    process: subprocess.Popen[bytes]
    stderr: Path
    serving: Serving

    def shell(self, script: str, **how: Any) -> Completed:
        """Runs a script."""
        return self.serving.run(["sh", "-c", script], **{"timeout_s": NO_LIMIT_S, **how})

    def supervise(self, run_dir: Path, script: str) -> int:
        """Starts a supervised run through the client; returns the supervisor's pid."""
        done = self.serving.run(
            [self.program, "start", "--run-dir", str(run_dir), "--", "sh", "-c", script],
            timeout_s=NO_LIMIT_S,
        )
        assert (done.exit_code, done.stderr) == (0, b"")
        pid: int = json.loads(done.stdout)["pid"]
        return pid


def begin(program: str, stderr: Path) -> subprocess.Popen[bytes]:
    """A ``serve`` of which the caller has the pipes."""
    with stderr.open("wb") as file:
        return subprocess.Popen(
            [program, "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            bufsize=0,
        )


def streams(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """Its stdin and stdout."""
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def client(
    process: subprocess.Popen[bytes],
    on_close: Callable[[], object] | None = None,
    patience_s: float = 30.0,
) -> Serving:
    """A client that ends by closing stdin, if nothing else is said."""
    to_it, from_it = streams(process)
    return Serving(
        lambda most: os.read(from_it.fileno(), most),
        to_it.write,
        "the far end",
        on_close or to_it.close,
        patience_s,
    )


def end(process: subprocess.Popen[bytes]) -> int:
    """Waits for its end and returns the exit code."""
    for stream in streams(process):
        stream.close()
    return process.wait(20)


def opened(program: str, tmp_path: Path) -> Iterator[Far]:
    stderr = tmp_path / "serve.stderr"
    process = begin(program, stderr)
    far = Far(program, process, stderr, client(process))
    yield far
    far.serving.close()
    assert (end(process), stderr.read_text()) == (0, "")


def mark(name: str) -> str:
    """A value for MARK that no other test run uses."""
    return f"br-serve-{os.getpid()}-{name}"


def processes_with(marked: str) -> list[int]:
    """Pids of the processes whose environment has the mark."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - names are wanted
        with contextlib.suppress(OSError):
            if f"MARK={marked}\0".encode() in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(int(pid))
    return found


def eventually(is_so: Callable[[], bool]) -> None:
    """Waits until something is so."""
    until = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < until, "it never came to be so"
        time.sleep(0.005)


def sleeps(marked: str) -> Callable[[], bool]:
    """Whether a command with that mark runs now, told by the name that only exec gives."""
    return lambda: any(
        Path(f"/proc/{pid}/comm").read_text() == "sleep\n" for pid in processes_with(marked)
    )


@dataclass
class Raw:
    """The frames themselves."""

    process: subprocess.Popen[bytes]

    def send(self, *requests: dict[str, Any] | bytes) -> None:
        """Writes requests at once."""
        lines = [r if isinstance(r, bytes) else json.dumps(r).encode() + b"\n" for r in requests]
        streams(self.process)[0].write(b"".join(lines))

    def line(self) -> dict[str, Any]:
        """Reads a frame and drops its bytes, which are counted in it."""
        stdout = streams(self.process)[1]
        answer: dict[str, Any] = json.loads(stdout.readline())
        left = sum(answer.get(name, 0) for name in ("bytes", "stdout_bytes", "stderr_bytes"))
        while left > 0:
            left -= len(stdout.read(left))
        return answer
