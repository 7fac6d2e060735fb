"""Real sweeps of the installed db_bench and fio, from the command line to the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fault_support import Bench, events

from benchrunner.catalog import Catalog

_LATENCY = "p50 p75 p99 p99.9 p99.99"
_READ = f"ops/sec mb/sec usec/op {_LATENCY}"
_WRITE = f"ops/sec mb/sec W-Amp W-MB/s usec/op {_LATENCY}"
FLASH_TABLES = {
    "bulkload": f"Time {_READ} Stall-time Stall% du -s -k",
    "readrandom": _READ,
    "multireadrandom": f"ops/sec {_LATENCY}",
    "fwdrange": _READ,
    "revrange": _READ,
    "overwrite": f"{_WRITE} Stall-time Stall% du -s -k",
    "readwhilewriting": f"{_WRITE} du -s -k",
    "fwdrangewhilewriting": f"{_WRITE} du -s -k",
    "revrangewhilewriting": f"{_WRITE} du -s -k",
}
"""Column titles of the source page, test by test."""
pytestmark = pytest.mark.slow


def read_tables(markdown: str) -> list[list[dict[str, str]]]:
    """The tables of versions on a page, each a list of rows by column title."""
    tables: list[list[dict[str, str]]] = []
    titles: list[str] = []
    for line in markdown.splitlines():
        cells = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", c).strip() for c in line.split("|")[1:-1]]
        if cells[:2] == ["Version", "Opts"]:
            titles = cells
            tables.append([])
        elif not cells:
            titles = []
        elif titles and not cells[0].startswith("---"):
            tables[-1].append(dict(zip(titles, cells, strict=True)))
    return tables


def page_files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def measurements(bench: Bench) -> dict[int, dict[Any, float]]:
    with bench.store() as store:
        return {
            step.id: store.measurements(step.id)
            for trial in store.trials()
            for step in store.step_runs(trial.id)
        }


def test_the_flash_page_from_one_command(bench: Bench) -> None:
    # One second a step, so writers get more to write and smaller memtables than the preset's:
    # even on a busy machine something is flushed, and W-Amp has a meaning.
    parameters = {"DURATION": 1, "NUM_KEYS": 100_000, "NUM_THREADS": 1, "MB_WRITE_PER_SEC": 10,
                  "WRITE_BUFFER_SIZE": "512KiB"}  # fmt: skip
    settings = [word for key, value in parameters.items() for word in ("--set", f"{key}={value}")]
    arguments = ["rocksdb-flash", "--versions", "system", "--variants", "None,DIO",
                 "--scale", "smoke", *settings]  # fmt: skip
    done = bench.run("sweep", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    told = events(done.stdout)
    assert told[0]["event"] == "plan"
    ended = [event for event in told if event["event"] == "step-end"]
    assert [event["state"] for event in ended] == ["ok"] * 22
    written = {event["path"] for event in told if event["event"] == "page"}
    assert written
    assert all(Path(path).is_file() for path in written)

    page = bench.data / "pages" / "rocksdb-flash"
    markdown = (page / "README.md").read_text()
    tables = [rows for rows in read_tables(markdown) if "p50" in rows[0]]
    for (name, titles), rows in zip(FLASH_TABLES.items(), tables, strict=True):
        assert [(row["Version"], row["Opts"]) for row in rows] == [
            ("7.8.3", "None"), ("7.8.3", "DIO"),
        ]  # fmt: skip
        for row in rows:
            shown = [title for title in row if title != "Run"]
            assert " ".join(shown) == f"Version Opts {titles}", name
            assert "-" not in row.values(), (name, row)
            assert "" not in row.values(), (name, row)
    assert "Assertions are enabled" in markdown, "Debian's program is not fit for verdicts"
    assert "fio-3" in markdown or "fio" in markdown
    assert list((page / "charts").iterdir())
    assert not list((bench.data / "work" / "trials").iterdir())

    before, numbers = page_files(page), measurements(bench)
    assert bench.run("parse", "--all").stdout == "read 22 step runs again\n"
    assert measurements(bench) == numbers
    assert bench.run("report", "--page", "rocksdb-flash").returncode == 0
    again = page_files(page)
    assert set(again) == set(before)
    assert [name for name in before if before[name] != again[name]] == []

    planned = bench.run("plan", *arguments, "--json")
    assert json.loads(planned.stdout)["seconds"] > 10, "as measured"


def test_the_compare_page(bench: Bench) -> None:
    workload = Catalog().workload("rocksdb-compare")
    durations = [name for name in workload.params if name.startswith("DURATION")]
    settings = [word for name in durations for word in ("--set", f"{name}=1")]
    done = bench.run(
        "sweep", "rocksdb-compare", "--versions", "system", "--variants", "None",
        "--scale", "smoke", "--no-ceiling", "--format", "markdown", *settings,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with bench.store() as store:
        (trial,) = store.trials()
        steps = store.step_runs(trial.id)
        assert [step.step for step in steps] == list(trial.job.steps)
        assert {step.state.value for step in steps} == {"ok"}
    (page,) = (bench.data / "pages" / "rocksdb-compare").glob("README.md")
    tables = [rows for rows in read_tables(page.read_text()) if "ops/sec" in rows[0]]
    assert tables
    for row in (row for rows in tables for row in rows):
        assert row["ops/sec"] not in ("", "-"), row
