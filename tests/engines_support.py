"""A catalog of engines that a driver on the path stands for, and a small workload over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ENGINE = """
name = "{name}"
title = "{name}"
[[source]]
kind = "system"
binary = "{binary}"
debian = "{binary}"
[data]
mapped = {mapped}
[args]
engine = "{engine}"
engine_opt = {options}
"""
WORKLOAD = """
name = "small"
title = "Small"
engines = [{engines}]
[params]
NUM = 2000
KEY_SIZE = 16
VALUE_SIZE = 100
THREADS = "1,2"
SECONDS = "1"
[[variants]]
name = "local"
[[variants]]
name = "interleave"
needs = ["numactl"]
wrap = ["numactl", "--interleave=all"]
[args.const]
db = "{{db_dir}}"
num = "{{NUM}}"
seed = 5
verify = true
driver_cost = false
[[steps]]
name = "load"
tool = "kvbench"
state = "creates"
use = ["const"]
args = {{ benchmarks = "fillseqbatch" }}
phase = "fillseqbatch"
threads = 1
[[steps]]
name = "run"
each = "THREADS"
tool = "kvbench"
state = "changes"
use = ["const"]
args = {{ benchmarks = "readwhilewriting", use_existing_db = true, threads = "{{THREADS}}", duration = "{{SECONDS}}" }}
phase = "readwhilewriting"
threads = "{{THREADS}}"
seconds = 1
"""  # noqa: E501


def write_engine(
    catalog: Path, name: str, engine: str = "", binary: str = "kvbench", **more: str
) -> None:
    """An engine file; ``engine`` is the driver's word for it."""
    text = ENGINE.format(
        name=name, engine=engine or name, binary=binary,
        mapped=more.get("mapped", "false"), options=more.get("options", "[]"),
    )  # fmt: skip
    path = catalog / "engines" / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def write_workload(catalog: Path, *engines: str) -> Path:
    """The workload over these engines."""
    path = catalog / "workloads" / "small.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(WORKLOAD.format(engines=", ".join(f'"{name}"' for name in engines)))
    return path
