"""A benchmark that the kernel kills because memory ran out says so, and the others go on."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fault_support import PATIENCE_S, Bench

from benchrunner.model import StepState

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT_BYTES = 400 << 20
PROGRAM = """#!/bin/sh
exec python3 -c "x = b'x' * (${1#--mib=} << 20); print('ops_per_sec=%d' % len(x))"
"""
CATALOG = {
    "engines/hog.toml": """
name = "hog"
title = "Hog"
[[source]]
kind = "system"
binary = "hog"
""",
    "tools/hog.toml": """
name = "hog"
engine = "hog"
binary = "hog"
argv = ["{binary}"]
[[output]]
pattern = 'ops_per_sec=(?P<ops_per_sec>\\d+)'
require = ["ops_per_sec"]
""",
    "workloads/hog.toml": """
name = "hog"
title = "Memory"
engine = "hog"
default_scale = "one"
[scale.one]
[groups]
greedy = "Too much"
modest = "A little"
[[steps]]
name = "greedy"
group = "greedy"
tool = "hog"
args = { mib = 4000 }
[[steps]]
name = "modest"
group = "modest"
tool = "hog"
args = { mib = 1 }
""",
}


@dataclass
class Limited(Bench):
    """Runs the program in a control group with little memory."""

    group: Path = Path()

    def command(self, *arguments: str) -> list[str]:
        enter = 'echo $$ >"$0/cgroup.procs" && exec "$@"'
        words = super().command(*arguments)
        if "--catalog" in words:
            words[words.index("--catalog") + 1] = str(self.folder / "catalog")
        return ["sh", "-c", enter, str(self.group), *words]


@pytest.fixture
def group() -> Iterator[Path]:
    """A memory control group of ours, of either version."""
    name = f"benchrunner-test-{os.getpid()}"
    for root, key in (
        (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
        (Path("/sys/fs/cgroup"), "memory.max"),
    ):
        path = root / name
        try:
            path.mkdir()
        except OSError:
            continue
        if (path / key).exists():
            (path / key).write_text(str(LIMIT_BYTES))
            break
        path.rmdir()
    else:
        pytest.skip("no memory control group may be made here")
    yield path
    until = time.monotonic() + PATIENCE_S
    while (path / "cgroup.procs").read_text() and time.monotonic() < until:
        time.sleep(0.01)  # what was killed takes a moment to leave
    path.rmdir()


def test_a_step_that_is_out_of_memory_says_so_and_others_go_on(
    tmp_path: Path, cache: Path, group: Path
) -> None:
    for name, text in CATALOG.items():
        path = tmp_path / "catalog" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    program = tmp_path / "bin" / "hog"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    found = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    bench = Limited(tmp_path, cache, found, group)
    done = bench.run("sweep", "hog", "--format", "none")
    assert done.returncode == 1, done.stderr
    with bench.store() as store:
        (trial,) = store.trials()
        steps = {row.step: (row.state, row.reason) for row in store.step_runs(trial.id)}
    assert steps["greedy"] == (StepState.FAILED, "the kernel killed it because memory ran out")
    assert steps["modest"] == (StepState.OK, "")
    assert not bench.orphans()
