"""hostbench, `native/hostbench`: its hashes, its loops, its words. No figure is held to a time."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
import zlib
from hashlib import shake_128
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hostbench_support import BUILDS, Program, build

from benchmarks.hostbench import others, ours, pages_are_huge, theirs
from benchrunner.parse.hostbench import parse_hostbench

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.native, pytest.mark.slow]

SWITCH_PROCESSOR = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
os.execv(sys.argv[2], sys.argv[2:])
"""
HASHES = ["murmur3-32", "murmur3-128", "jhash", "fnv1a-64", "crc32c-table", "crc32c"]


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Program]:
    folder = tmp_path_factory.mktemp("hostbench")
    return {name: build(folder, name) for name in BUILDS}


@pytest.fixture(params=BUILDS)
def hostbench(request: pytest.FixtureRequest, builds: dict[str, Program]) -> Program:
    return builds[request.param]


@pytest.fixture
def plain(builds: dict[str, Program]) -> Program:
    return builds["plain"]


# ---------------------------------------------------------------- hashes


def hashed(program: Program, name: str, data: bytes) -> str:
    ran = program(f"--hash={name}", stdin=data)
    assert (ran.code, ran.stderr) == (0, ""), ran
    return ran.stdout.strip()


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        # RFC 3720, appendix B.4
        ("crc32c", bytes(32), "8a9136aa"),
        ("crc32c", b"\xff" * 32, "62a8ab43"),
        ("crc32c", bytes(range(32)), "46dd794e"),
        ("crc32c", bytes(range(31, -1, -1)), "113fdb5c"),
        ("crc32c", b"123456789", "e3069283"),
        ("crc32c", b"", "00000000"),
        # The vectors of the FNV internet draft
        ("fnv1a-64", b"", "cbf29ce484222325"),
        ("fnv1a-64", b"a", "af63dc4c8601ec8c"),
        ("fnv1a-64", b"foobar", "85944171f73967e8"),
        # lookup3's own self-test
        ("jhash", b"", "deadbeef"),
        ("jhash", b"Four score and seven years ago", "17770551"),
        # MurmurHash3, seed 0
        ("murmur3-32", b"", "00000000"),
        ("murmur3-32", b"hello", "248bfa47"),
        ("murmur3-32", b"hello, world", "149bbb7f"),
        ("murmur3-128", b"", "0" * 32),
        ("murmur3-128", b"hello", "cbd8a7b341bd9b025b1e906a48ae1d19"),
        ("murmur3-128", b"hello, world", "342fac623a5ebc8e4cdcbc079642414d"),
    ],
)
def test_published_vectors(hostbench: Program, name: str, data: bytes, expected: str) -> None:
    assert hashed(hostbench, name, data) == expected
    if name == "crc32c":
        assert hashed(hostbench, "crc32c-table", data) == expected


def noise(size: int) -> bytes:
    """Bytes without a pattern, always the same."""
    return shake_128(b"noise").digest(size)


def crc32c(data: bytes) -> str:
    """Bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return f"{crc ^ 0xFFFFFFFF:08x}"


def fnv1a(data: bytes) -> str:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def rotated(value: int, by: int) -> int:
    return (value << by | value >> (32 - by)) % 2**32


def murmur3_32(data: bytes) -> str:
    value = 0
    for at in range(0, len(data), 4):
        word = int.from_bytes(data[at : at + 4], "little")
        value ^= rotated(word * 0xCC9E2D51 % 2**32, 15) * 0x1B873593 % 2**32
        if at + 4 <= len(data):
            value = (rotated(value, 13) * 5 + 0xE6546B64) % 2**32
    value ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        value = (value ^ value >> shift) * factor % 2**32
    return f"{value ^ value >> 16:08x}"


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("crc32c", crc32c),
        ("crc32c-table", crc32c),
        ("fnv1a-64", fnv1a),
        ("murmur3-32", murmur3_32),
    ],
)
def test_every_length_agrees_with_a_plain_model(
    plain: Program, name: str, model: Callable[[bytes], str]
) -> None:
    """Blocks, their rests and both sides of every boundary."""
    for size in [*range(34), 63, 64, 65, 1000]:
        data = noise(size)
        assert hashed(plain, name, data) == model(data), size


@pytest.mark.parametrize("name", HASHES)
def test_a_hash_depends_on_every_byte(plain: Program, name: str) -> None:
    data = noise(40)
    whole = hashed(plain, name, data)
    for at in range(0, len(data), 3):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        assert hashed(plain, name, changed) != whole, at
    assert hashed(plain, name, data + b"\0") != whole


def test_an_unknown_hash_lists_the_known_ones(plain: Program) -> None:
    ran = plain("--hash=crc32")
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr == (
        f"hostbench: there is no hash 'crc32' here; there are {', '.join(HASHES)}\n"
    )
    assert hashed(plain, "crc32c", b"x") != f"{zlib.crc32(b'x'):08x}"


# ---------------------------------------------------------------- what is measured


def test_every_benchmark_runs_and_is_read(hostbench: Program) -> None:
    # Long enough for two threads to take turns on a processor that has others to run as well.
    quick = ["--seconds=0.02", "--repetitions=3", "--max_size=24k", "--threads=2"]
    ran = hostbench("--json", *quick)
    assert (ran.code, ran.stderr) == (0, ""), ran
    listed = hostbench("--list", *quick).stdout.splitlines()
    assert list(ran.benchmarks) == [line.split()[0] for line in listed]
    parsed = parse_hostbench([ran.stdout])
    skipped = {name: one["skipped"] for name, one in ran.benchmarks.items() if "skipped" in one}
    # Where the kernel has no huge pages, and nothing else.
    assert all("/huge/" in name for name in skipped), skipped
    measured = {m.phase for m in parsed.measurements if m.metric == "spread_pct"}
    assert measured == ran.benchmarks.keys() - skipped.keys()
    for name in measured:
        one = ran.benchmarks[str(name)]
        assert len(one["repetitions"]) == 3
        assert min(one["repetitions"]) > 0
        assert one["iterations"] >= 1


def test_sizes_are_a_staircase_with_half_steps(plain: Program) -> None:
    ran = plain("--list", "--pages=normal", "--max_size=16k", "--benchmarks=latency/*,read/*")
    assert [line.split()[0] for line in ran.stdout.splitlines()] == [
        *[f"latency/normal/{size}KiB" for size in (4, 6, 8, 12, 16)],
        *[f"read/normal/{size}KiB" for size in (4, 8, 16)],
        *([f"read/normal/16KiB/{os.cpu_count()}-threads"] if (os.cpu_count() or 1) > 1 else []),
    ]


def test_larger_blocks_are_not_faster_than_those_in_the_first_cache(plain: Program) -> None:
    names = ["latency/normal/8KiB", "latency/normal/32MiB"]
    found = plain.measured(",".join(names), "--max_size=32m", "--seconds=0.01")
    near, far = (found[name] for name in names)
    assert min(near["repetitions"]) < min(far["repetitions"])
    # A load from the first cache takes some cycles, not one and not fifty.
    best = min(near["repetitions"]) * near["clock_ghz"]
    assert 2 < best < 50


def test_huge_pages_are_huge_or_skipped_and_normal_ones_are_not(plain: Program) -> None:
    found = plain.measured("read/*/2MiB", "--min_size=2m", "--max_size=2m", "--threads=1")
    assert found["read/normal/2MiB"]["huge_page_pct"] == 0
    huge = found["read/huge/2MiB"]
    assert "no huge pages" in huge["skipped"] if "skipped" in huge else huge["huge_page_pct"] == 100


def test_more_repetitions_are_all_there_and_their_median_is_the_result(plain: Program) -> None:
    (one,) = plain.measured("syscall", "--repetitions=6").values()
    ordered = sorted(one["repetitions"])
    assert len(ordered) == 6
    assert one["ns_per_op"] == (ordered[2] + ordered[3]) / 2
    spread = 100 * (ordered[-1] - ordered[0]) / one["ns_per_op"]
    assert one["spread_pct"] == pytest.approx(spread)
    (single,) = plain.measured("syscall", "--repetitions=1").values()
    assert "spread_pct" not in single


@pytest.mark.parametrize("wall", ["true", "false"])
def test_the_clock_that_was_asked_for_is_in_the_settings(plain: Program, wall: str) -> None:
    ran = plain("--json", "--benchmarks=syscall", "--seconds=0.001", f"--wall={wall}")
    assert ran.document["settings"]["wall"] is (wall == "true")


def test_people_get_a_line_each(plain: Program) -> None:
    ran = plain("--benchmarks=syscall,latency/normal/4KiB", "--seconds=0.001", "--repetitions=2")
    assert (ran.code, ran.stderr) == (0, "")
    latency, call = ran.stdout.splitlines()
    assert re.fullmatch(r"latency/normal/4KiB +[\d.]+ ns +\+- +[\d.]+ % +[\d.]+ cycles", latency)
    assert re.fullmatch(r"syscall +[\d.]+ ns +\+- +[\d.]+ %", call)


def test_too_little_memory_skips_a_benchmark_with_the_reason(plain: Program) -> None:
    done = subprocess.run(
        [plain.path, "--json", "--min_size=512m", "--max_size=512m", "--seconds=0.001",
         "--benchmarks=latency/normal/512MiB,syscall"],
        capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20)),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    parsed = parse_hostbench([done.stdout])
    assert parsed.facts["skipped latency/normal/512MiB"] == "the kernel gave no 512 MiB of memory"
    assert {m.phase for m in parsed.measurements} == {"syscall"}


def test_more_memory_than_is_free_is_not_even_asked_for(plain: Program) -> None:
    (one,) = plain.measured("latency/normal/256GiB", "--min_size=256g", "--max_size=256g").values()
    assert re.fullmatch(r"it needs 262144 MiB of memory and \d+ MiB are free", one["skipped"])


def test_a_killed_run_leaves_no_process(plain: Program) -> None:
    """The other side of a context switch ends with its parent."""
    asked = ["--json", "--benchmarks=switch/process-*", "--seconds=60", "--repetitions=1"]
    running = subprocess.Popen([plain.path, *asked], stdout=subprocess.DEVNULL)
    children: list[str] = []
    try:
        for _ in range(1000):
            file = Path(f"/proc/{running.pid}/task/{running.pid}/children")
            if children := file.read_text().split():
                break
            time.sleep(0.01)
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()
    assert children
    for _ in range(1000):
        if not any(Path(f"/proc/{child}").exists() for child in children):
            return
        time.sleep(0.01)
    pytest.fail(f"{children} still run")


# ---------------------------------------------------------------- the command line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nosuch=1"], "unknown option --nosuch; try --help"),
        (["fast"], "unexpected argument 'fast'; options begin with --"),
        (["--benchmarks=latency/x"], "no benchmark is called 'latency/x'; --list prints them"),
        (["--benchmarks="], "--benchmarks names nothing; try --list"),
        (["--max_size"], "--max_size needs a value"),
        (["--max_size=4x"], "--max_size takes a whole number, or one with k, m or g, not '4x'"),
        (["--max_size=-1"], "--max_size takes a whole number, or one with k, m or g, not '-1'"),
        (
            ["--max_size=99999999999g"],
            "--max_size takes a whole number, or one with k, m or g, not '99999999999g'",
        ),
        (["--max_size=1k"], "--max_size must not be below --min_size"),
        (["--max_size=512g"], "--max_size must be at most 256g"),
        (["--min_size=1"], "--min_size must be at least 1k"),
        (["--repetitions=0"], "--repetitions must be from 1 to 1000"),
        (["--threads=0"], "--threads must be from 1 to 4096"),
        (["--hash_size=0"], "--hash_size must be from 1 to 1g"),
        (["--seconds=0"], "--seconds takes seconds, above 0 and at most 3600, not '0'"),
        (["--seconds=nan"], "--seconds takes seconds, above 0 and at most 3600, not 'nan'"),
        (["--pages=large"], "--pages takes normal, huge or both, not 'large'"),
        (["--pages="], "--pages names nothing; it takes normal, huge or both"),
        (["--json=maybe"], "--json takes true or false, not 'maybe'"),
    ],
)
def test_bad_input_gets_one_clear_line(
    hostbench: Program, arguments: list[str], message: str
) -> None:
    ran = hostbench(*arguments)
    assert (ran.code, ran.stdout, ran.stderr) == (2, "", f"hostbench: {message}\n")


def test_a_value_may_stand_in_the_next_word(plain: Program) -> None:
    apart = plain("--list", "--benchmarks", "syscall")
    assert apart == plain("--list", "--benchmarks=syscall")
    assert apart.stdout.split()[0] == "syscall"


def test_help_and_version(hostbench: Program) -> None:
    text = hostbench("--help").stdout
    readme = (Path(__file__).parents[1] / "native" / "hostbench" / "README.md").read_text()
    for option in re.findall(r"^  (--\w+)", text, re.MULTILINE):
        assert f"`{option}" in readme, option
    assert hostbench("--version").stdout == "hostbench 1.0\n"


def test_a_full_disk_is_an_error(plain: Program) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [plain.path, "--json", "--benchmarks=syscall", "--seconds=0.001"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "hostbench: cannot write to standard output\n"


def test_threads_default_to_the_processors_that_it_may_use(plain: Program) -> None:
    one = sorted(os.sched_getaffinity(0))[:1]
    done = subprocess.run(
        [sys.executable, "-c", SWITCH_PROCESSOR, str(one[0]), plain.path, "--list"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "-threads" not in done.stdout


# ---------------------------------------------------------------- against other programs

CASES = Path(__file__).parent / "cases"


@pytest.mark.parametrize(
    ("figure", "case", "expected"),
    [
        ("read, RAM", "sysbench/1.0.20-memory-read", 6233.53),
        ("write, cache", "sysbench/1.0.20-memory-write", 5110.15),
        ("system call", "perf-bench/6.1-syscall", 437.982),
        ("switch by pipe", "perf-bench/6.1-pipe", 5437.175),
    ],
)
def test_other_programs_are_understood(figure: str, case: str, expected: float) -> None:
    (other,) = [one for one in others(quick=True) if one.figure == figure]
    assert theirs(["cat", str(CASES / case / "stdout")], other) == pytest.approx(expected)


def test_what_hostbench_is_held_against_exists_and_gives_a_figure(plain: Program) -> None:
    for other in others(quick=True):
        name = other.benchmark.replace("PAGES", "normal")
        argv = [str(plain.path), "--json", f"--benchmarks={name}", "--min_size=512k"]
        quick = ["--max_size=64m", "--threads=1", "--seconds=0.001", "--repetitions=1"]
        assert ours([*argv, *quick]) > 0


def test_a_program_that_prints_something_else_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="echo hello printed no"):
        theirs(["echo", "hello"], others(quick=True)[0])


@pytest.mark.parametrize(
    ("text", "huge"), [("[always] madvise", True), ("always [madvise]", False)]
)
def test_which_pages_others_get_is_asked_of_the_kernel(
    tmp_path: Path, text: str, huge: bool
) -> None:
    file = tmp_path / "enabled"
    assert not pages_are_huge(file)
    file.write_text(text)
    assert pages_are_huge(file) is huge
