"""``parse``: seconds and memory for a db_bench log of 100 MB, against ``wc -l`` of the same file.

The logs are made of what db_bench really printed (``tests/cases/db_bench``), its interval repeated
with a clock that goes on: that is what logs of this size are, one run of hours with a report every
second. Each parse is a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, Target, number
from benchmarks.pairs import estimate, interleave
from benchmarks.processes import ROOT, output, python, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.processes import Options

CASES = ROOT / "tests" / "cases" / "db_bench"
SIZE_BYTES = 100_000_000
QUICK_BYTES = 10_000_000
THREADS = 64
_INTERVAL = re.compile(r".* \.\.\. thread \d+: .* seconds\n")
_CLOCK = re.compile(r"thread \d+: \((\d+),\d+\)(.*) in \(([\d.]+),[\d.]+\) seconds")

PARSE = """
import json, sys, time
from pathlib import Path
from benchrunner.parse import parse_output

def peak_kib():
    # Not ru_maxrss: a new process inherits that of its parent.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

before = peak_kib()
began = time.perf_counter()
parsed = parse_output("db_bench", Path(sys.argv[1]))
seconds = time.perf_counter() - began
found = {m.metric for m in parsed.measurements}
print(json.dumps({"seconds": seconds, "growth_kib": peak_kib() - before,
                  "complete": {"ops_per_sec", "p99_us"} <= found}))
"""


def parse(options: Options) -> Iterator[Figure]:
    """Three logs: interval lines with statistics dumps, interval lines alone, progress."""
    size = QUICK_BYTES if options.quick else SIZE_BYTES
    for name, pieces in LOGS.items():
        path = options.directory / f"{name}.log"
        small = _write(path, pieces(), size // 10)
        small_growth = _parse(path)[1]
        written = _write(path, pieces(), size)
        sizes = _sizes(written, small, small_growth)
        target = None if options.quick else Target(at_most=2)
        yield _figure(f"parse {name}", path, options.count(7), sizes, target)
        path.unlink()


def _sizes(written: int, small: int, small_growth: float) -> str:
    return (
        f"of {written / 1e6:.0f} MB; a log of {small / 1e6:.0f} MB grows {number(small_growth)} MiB"
    )


def _figure(name: str, path: Path, count: int, sizes: str, target: Target | None) -> Figure:
    growths: list[float] = []

    def ours() -> float:
        taken, growth = _parse(path)
        growths.append(growth)
        return taken

    pairs = interleave(ours, lambda: seconds(["wc", "-l", str(path)]), count)
    return Figure(
        name, estimate(pairs.ours), "s", target, pairs.ratio, "wc -l",
        f"peak memory grows {number(max(growths))} MiB {sizes}",
    )  # fmt: skip


def _parse(path: Path) -> tuple[float, float]:
    """Seconds and growth of peak memory, MiB."""
    found = json.loads(output(python(PARSE, str(path))))
    if not found["complete"]:
        raise RuntimeError(f"{path} was not understood")
    return found["seconds"], found["growth_kib"] / 1024


def _write(path: Path, pieces: Iterator[str], size: int) -> int:
    """Head, as many further pieces as fit, and the end of the log, which comes first of all."""
    end = next(pieces)
    written = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        for piece in pieces:
            written += file.write(piece)
            if written >= size - len(end):
                break
        written += file.write(end)
    return written


def dump_pieces() -> Iterator[str]:
    """One run with a report and a statistics dump each second."""
    lines = _log("7.8.3-combined")
    first, last = _interval_lines(lines)[:2]
    end = _interval_lines(lines)[2]
    yield "".join(lines[last + 1 : end])
    yield "".join(lines[:first])
    dump = "".join(lines[first + 1 : last])
    clock = _Clock(lines[first])
    while True:
        yield clock.line(0) + dump + clock.line(1)
        clock.tick()


def interval_pieces() -> Iterator[str]:
    """One run of many threads, each with a report every second and no dumps."""
    lines = _log("7.8.3-combined")
    first, last, end = _interval_lines(lines)[:3]
    yield "".join(lines[last + 1 : end])
    yield "".join(lines[:first])
    clock = _Clock(lines[first])
    while True:
        yield "".join(clock.line(thread) for thread in range(THREADS))
        clock.tick()


def progress_pieces() -> Iterator[str]:
    """One run without interval reports: progress with carriage returns, as on a terminal."""
    case = CASES / "7.8.3-readwhilewriting"
    head, dots, rest = (case / "stderr").read_bytes().decode().partition("... finished ")
    width = rest.index("\r") + len(dots)
    yield "\n" + (case / "stdout").read_text(encoding="utf-8")
    yield head
    operations = 0
    while True:
        operations += 100_000
        yield f"{dots}{operations} ops".ljust(width) + "\r"


LOGS: dict[str, Callable[[], Iterator[str]]] = {
    "dumps": dump_pieces,
    "intervals": interval_pieces,
    "progress": progress_pieces,
}


class _Clock:
    """A real interval line, with a time that goes on."""

    def __init__(self, line: str) -> None:
        match = _CLOCK.search(line)
        if match is None:
            raise RuntimeError(f"not an interval line: {line}")
        self._before = line[: match.start()]
        self._done, self._rates, self._span = int(match[1]), match[2], float(match[3])
        self._ticks = 1

    def tick(self) -> None:
        """One interval later."""
        self._ticks += 1

    def line(self, thread: int) -> str:
        """The line of a thread now."""
        done, at = self._done * self._ticks, self._span * self._ticks
        return (
            f"{self._before}thread {thread}: ({self._done},{done}){self._rates}"
            f" in ({self._span:.6f},{at:.6f}) seconds\n"
        )


def _log(case: str) -> list[str]:
    return (CASES / case / "stdout").read_text(encoding="utf-8").splitlines(keepends=True)


def _interval_lines(lines: list[str]) -> list[int]:
    return [index for index, line in enumerate(lines) if _INTERVAL.match(line)]
