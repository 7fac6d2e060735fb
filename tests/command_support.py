"""Commands made from small workloads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchrunner.catalog import Catalog
from benchrunner.command import Placement, build_command
from benchrunner.definitions import Engine, Step, Tool, Workload
from benchrunner.errors import ConfigurationError
from benchrunner.model import Artifact, Command, FlagNote, Job, SourceRef

if TYPE_CHECKING:
    from collections.abc import Mapping

SHIPPED = Catalog(working_directory=Path("/"), search_path=())
HERE = Placement(db_dir="/data/db", wal_dir="/data/wal", run_dir="/data/run")
VERSIONS = ("6.11.4", "6.28.2", "7.2.2", "7.8.3", "11.8.1")


@dataclass(frozen=True)
class Subject:
    workload: Workload
    tools: Mapping[str, Tool] = field(
        default_factory=lambda: {name: SHIPPED.tool(name) for name in ("db_bench", "fio")}
    )
    flags: Mapping[str, Any] = field(default_factory=lambda: SHIPPED.flags("rocksdb"))
    engine: Engine = field(default_factory=lambda: SHIPPED.engine("rocksdb"))
    host_env: Mapping[str, str] = field(default_factory=dict)
    host_step_s: float | None = None


def a_workload(asked: dict[str, Any] | None = None, **changes: Any) -> Workload:
    values: dict[str, Any] = {
        "name": "mine",
        "title": "Mine",
        "engine": "rocksdb",
        "params": {"NUM": 1000, "SECONDS": 5, "CODEC": "zstd"},
        "steps": [Step(name="read", tool="db_bench", args={"seed": 1, **(asked or {})})],
    }
    return Workload(**(values | changes))


def a_job(workload: Workload, version: str = "7.2.2", **changes: Any) -> Job:
    job = Job(
        id="0" * 16,
        workload=workload.name,
        engine=workload.engine,
        version=version,
        source=SourceRef(workload.engine, version, "path", "/src"),
        variant=workload.variants[0].name,
        host="local",
        scale="published",
        params=dict(workload.params),
        axes={},
        steps=tuple(step.name for step in workload.steps),
        policy="carry",
    )
    return replace(job, **changes)


def an_artifact(version: str = "7.2.2", **changes: Any) -> Artifact:
    values: dict[str, Any] = {
        "id": "a",
        "engine": "rocksdb",
        "version": version,
        "source": "path",
        "ref": "/src",
        "state": "built",
        "binaries": {"db_bench": "/cache/db_bench"},
    }
    return Artifact(**(values | changes))


def command_of(
    workload: Workload, version: str = "7.2.2", *, artifact: Artifact | None = None, **job: Any
) -> Command:
    return build_command(
        workload.steps[0], Subject(workload), a_job(workload, version, **job), artifact, HERE
    )


def note(command: Command, flag: str) -> FlagNote:
    (found,) = (one for one in command.flags if one.flag == flag)
    return found


def refusal(workload: Workload, version: str = "7.2.2", **job: Any) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as error:
        command_of(workload, version, **job)
    assert "\n" not in error.value.message
    assert error.value.hint
    return error.value
