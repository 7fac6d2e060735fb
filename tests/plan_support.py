"""Workloads and plans made by a test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchrunner.catalog import Catalog
from benchrunner.definitions import Engine, Host, Step, Sweep, Tool, Variant, Workload
from benchrunner.model import Plan, SourceRef
from benchrunner.plan import make_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

SHIPPED = Catalog(working_directory=Path("/"), search_path=())


def refs(*versions: str) -> dict[str, Sequence[SourceRef]]:
    return {"rocksdb": [SourceRef("rocksdb", v, "crate", f"some-crate@{v}") for v in versions]}


def a_workload(**changes: Any) -> Workload:
    values: dict[str, Any] = {
        "name": "mine",
        "title": "Mine",
        "engine": "rocksdb",
        "params": {"NUM": 1000, "CACHE": "6GiB", "RATIO": 0.5, "SYNC": False, "CODEC": "zstd"},
        "scale": {"published": {}, "smoke": {"NUM": 10, "CACHE": "1MiB"}},
        "variants": [Variant(name="None"), Variant(name="DIO", options={"direct": True})],
        "estimate": {"disk": "NUM * 3 // 2"},
        "steps": [
            Step(name="load", tool="db_bench", state="creates", args={"num": "{NUM}"}, seconds=10),
            Step(name="compact", tool="db_bench", state="changes", part_of="load"),
            Step(name="read", tool="db_bench", args={"cache": "{CACHE}"}, seconds="{NUM / 100}"),
        ],
    }
    return Workload(**(values | changes))


class Known:
    """Definitions made by a test, and the shipped ceiling and tools."""

    def __init__(self, *workloads: Workload) -> None:
        self._workloads = {workload.name: workload for workload in workloads}

    def workload(self, name: str) -> Workload:
        return self._workloads.get(name) or SHIPPED.workload(name)

    def tool(self, name: str) -> Tool:
        return SHIPPED.tool(name)

    def engine(self, name: str) -> Engine:
        return SHIPPED.engine(name)

    def host(self, name: str) -> Host:
        if name.startswith("host"):
            return Host(name=name)
        return SHIPPED.host(name)


def plan_of(*versions: str, workload: Workload | None = None, **sweep: Any) -> Plan:
    values: dict[str, Any] = {"name": "s", "workloads": ["mine"], **sweep}
    return make_plan(Sweep(**values), Known(workload or a_workload()), refs(*versions))


def cells(plan: Plan) -> list[tuple[str, str, int]]:
    return [(t.job.version, t.job.variant, t.repetition) for t in plan.trials]
