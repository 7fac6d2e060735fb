"""The page of a host's numbers, from real programs: fio, redis-server, nginx, wrk, iperf3, openssl.

``make test`` has a reduced page, every line of the source once; the parts are tested one by one.
"""

from __future__ import annotations

import csv
import re
import socket
from typing import TYPE_CHECKING

import pytest
from fault_support import ROOT, Bench

from benchrunner.catalog import Catalog
from benchrunner.model import StepState
from benchrunner.report.input import StepView
from benchrunner.report.lines import cache_bytes, phase_for_cache

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Program = Callable[..., tuple[int, str, str]]

CACHES = {"L1d": "48K", "L1i": "32K", "L2": "2048K", "L3": "16M"}


class HostBench(Bench):
    """The shipped catalog, ports of its own."""

    def command(self, *arguments: str) -> list[str]:
        words = super().command(*arguments)
        at = words.index("--catalog") if "--catalog" in words else None
        return words if at is None else words[:at] + words[at + 2 :]

    def sweep_numbers(self, *more: str) -> str:
        ports = {name: free_port() for name in ("REDIS_PORT", "HTTP_PORT", "NET_PORT")}
        settings = [word for name, port in ports.items() for word in ("--set", f"{name}={port}")]
        done = self.run("sweep", "host-numbers", "--scale", "test", *settings, *more)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def lines(self) -> dict[str, dict[str, str]]:
        """Line and metric -> row of the page's CSV file."""
        path = self.data / "pages" / "host-numbers" / "csv" / "lines.csv"
        with path.open() as file:
            return {f"{row['table']}/{row['line']}/{row['metric']}": row
                    for row in csv.DictReader(file)}  # fmt: skip


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.fixture
def bench(tmp_path: Path, cache: Path) -> HostBench:
    return HostBench(tmp_path, cache)


def steps_of(bench: Bench) -> dict[str, StepState]:
    with bench.store() as store:
        (trial,) = store.trials()
        return {row.step: row.state for row in store.step_runs(trial.id)}


# ---------------------------------------------------------------- every line of the source


def published_lines() -> list[str]:
    """What the workload says of the source's figures, without spaces."""
    page = Catalog().workload("host-numbers").page
    return [f"{line.title}: {line.published}".replace(" ", "")
            for table in page.lines for line in table.lines]  # fmt: skip


@pytest.mark.parametrize(
    ("title", "figure"),
    [
        ("synchronous sequential write - fsync (1MB bs)", "248 ops/s, (248MB/s)"),
        ("asynchronous random write + fsync", "~800 ops/s, (217MB/s)"),
        ("io_uring sequential read", "~15k ops/s, (3876MB/s)"),
        ("Net read/write TCP", "~500k ops/s (15.1Gbit/s)"),
        ("System call", "114.8ns"),
        ("jhash", "1542.84 MiB/sec"),
        ("HDD Drive (2000s)", "~120MB/s @ 7200rps (R/W)"),
    ],
)
def test_the_source_s_own_figures_stand_beside_ours(title: str, figure: str) -> None:
    assert f"{title}: {figure}".replace(" ", "") in published_lines()


def test_every_test_of_redis_benchmark_in_the_source_has_a_line() -> None:
    text = (ROOT / "tests" / "cases" / "redis-benchmark" / "2023" / "stdout").read_text()
    names = set(re.findall(r"====== (.+?) ======", text))
    page = Catalog().workload("host-numbers").page
    lines = {line.phase for table in page.lines for line in table.lines if line.step == "redis"}
    assert lines == names
    assert len(names) == 20


def test_every_measured_step_of_the_workload_is_on_the_page() -> None:
    workload = Catalog().workload("host-numbers")
    shown = {line.step for table in workload.page.lines for line in table.lines}
    assert {step.name for step in workload.steps if step.measure} <= shown


# ---------------------------------------------------------------- choosing


def test_only_takes_groups_and_knows_near_misses(in_process: Program) -> None:
    code, out, err = in_process("plan", "host-numbers", "--only", "redis,hash")
    assert code == 0, err
    assert "  5" in out
    code, _, err = in_process("plan", "host-numbers", "--only", "io,reddis")
    assert code == 2
    assert "--only: host-numbers has no group 'reddis'; did you mean 'redis'?" in err
    code, _, err = in_process("plan", "rocksdb-flash", "--only", "io")
    assert code == 2
    assert "--only io: rocksdb-flash has no groups of steps" in err


# ---------------------------------------------------------------- caches


def step_with(phases: dict[str, float]) -> StepView:
    measurements: dict[tuple[str | None, int, str | None, str], float] = {
        (phase, 1, None, "block_bytes"): size for phase, size in phases.items()
    }
    return StepView(StepState.OK, measurements=measurements)


def test_a_line_of_a_cache_shows_a_block_that_fits_well_into_it() -> None:
    sizes = {f"latency/normal/{kib}KiB": kib * 1024.0 for kib in (4, 16, 24, 32, 64, 1024, 2048)}
    step = step_with({**sizes, "latency/huge/16KiB": 16384.0})
    pattern = "latency/normal/*"
    assert phase_for_cache(step, pattern, "L1", CACHES) == "latency/normal/24KiB"
    assert phase_for_cache(step, pattern, "L2", CACHES) == "latency/normal/1024KiB"
    assert phase_for_cache(step, pattern, "L3", CACHES) == "latency/normal/2048KiB"
    assert phase_for_cache(step, pattern, "RAM", CACHES) is None, "the L3 could hold half of it"
    large = step_with({**sizes, "latency/normal/32MiB": float(32 << 20)})
    assert phase_for_cache(large, pattern, "RAM", CACHES) == "latency/normal/32MiB"
    assert phase_for_cache(step, pattern, "L1", {}) is None, "a host that does not tell"


def test_what_several_threads_read_is_another_figure() -> None:
    step = step_with({"read/normal/1MiB": 1048576.0, "read/normal/1MiB/2-threads": 1048576.0})
    assert phase_for_cache(step, "read/normal/*", "L2", CACHES) == "read/normal/1MiB"


@pytest.mark.parametrize(("text", "size"), [("48K", 49152), ("16M", 16777216), ("512", 512)])
def test_sizes_as_the_kernel_writes_them(text: str, size: int) -> None:
    assert cache_bytes(text) == size


# ---------------------------------------------------------------- for real


@pytest.mark.slow
def test_the_whole_page_from_real_programs(bench: HostBench) -> None:
    sections = "io,fsync,rocksdb,redis,http,net,hash,system,memory"
    bench.sweep_numbers("--repeat", "2", "--only", sections)
    lines = bench.lines()
    for line, metric in (
        ("Through the page cache/synchronous sequential read", "read_iops"),
        ("Through the page cache/io_uring random write + fsync", "write_mb_per_sec"),
        ("O_DIRECT/libaio random read", "read_iops"),
        ("/fsync", "fsync_per_sec"),
        ("/Read while writing keys in random order", "ops_per_sec"),
        ("/SET", "ops_per_sec"),
        ("/LRANGE_600 (first 600 elements)", "p99_ms"),
        ("/HTTP server", "ops_per_sec"),
        ("/Net read/write TCP", "network_gbit_per_sec"),
        ("/sha3-256", "hash_mb_per_sec"),
        ("/System call", "ns_per_op"),
        ("/L1", "latency_ns"),
    ):
        row = lines[f"{line}/{metric}"]
        assert float(row["median"]) > 0, line
        assert (row["n"], row["state"]) == ("2", "ok")
        assert float(row["low"]) <= float(row["median"]) <= float(row["high"])
        assert row["spread_pct"] != ""
    folder = bench.data / "pages" / "host-numbers"
    text = (folder / "index.html").read_text()
    links = set(re.findall(r'href="(raw/[^"#]+)#(step-[^"]+)"', text))
    for page, anchor in links:
        assert f'id="{anchor}"' in (folder / page).read_text()
    assert len({anchor for _, anchor in links}) > 40
    assert (folder / "charts" / "memory-staircase-latency_ns.svg").exists()
    assert not bench.orphans()


@pytest.mark.slow
def test_a_missing_program_skips_its_section_only(bench: HostBench, tmp_path: Path) -> None:
    folder = tmp_path / "more" / "tools"
    folder.mkdir(parents=True)
    text = (ROOT / "benchrunner" / "tools" / "redis-server.toml").read_text()
    (folder / "redis-server.toml").write_text(text + 'binary = "no-redis-server"\n')
    bench.env["BENCHRUNNER_PATH"] = str(tmp_path / "more")
    bench.sweep_numbers("--only", "redis,fsync")
    assert steps_of(bench) == {
        "fsync": StepState.OK, "redis-server": StepState.SKIPPED, "redis": StepState.SKIPPED,
    }  # fmt: skip
    text = (bench.data / "pages" / "host-numbers" / "README.md").read_text()
    assert "no-redis-server is not installed: apt-get install -y redis-server" in text
