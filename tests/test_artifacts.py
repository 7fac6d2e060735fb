"""The artifacts of a sweep: built once, stored, refused for one workload and good for another."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from source_support import tiny_engine, tiny_tree

from benchrunner.artifacts import Artifacts, wanted_driver
from benchrunner.definitions import Tool
from benchrunner.session import Session, Settings
from benchrunner.sources import find_version

if TYPE_CHECKING:
    from pathlib import Path

    from benchrunner.definitions import Engine
    from benchrunner.events import Event
    from benchrunner.model import Job, SourceRef
    from benchrunner.run_parts import Subject

pytestmark = pytest.mark.native

ENV = {"BUILD_MARK": "/dev/null", "DEBUG_LEVEL": "0"}


class Sweep:
    """A session with the tiny engine's tree, and what an observer was told."""

    def __init__(self, folder: Path) -> None:
        self.told: list[Event] = []
        settings = Settings(
            data=str(folder / "results"), cache=folder / "cache", observer=self.told.append
        )
        self.session = Session(settings)
        self.artifacts = Artifacts(self.session)
        self.tree = tiny_tree(folder / "tiny")

    def ref(self, engine: Engine) -> SourceRef:
        found = find_version(engine, str(self.tree), self.session.settings.cache)
        assert found is not None
        return found

    def job(self, engine: Engine, **params: Any) -> Job:
        fields = {"engine": engine.name, "source": self.ref(engine), "params": params,
                  "steps": ("run",)}  # fmt: skip
        return cast("Job", SimpleNamespace(**fields))


def subject(engine: Engine, compression: str, tool: Tool | None = None) -> Subject:
    tool = tool or Tool(name="run-it", engine=engine.name)
    tools = {tool.name: tool}
    steps = [SimpleNamespace(name="run", tool=tool.name, engine=None)]
    workload = SimpleNamespace(name="w", compression=compression, steps=steps)
    return cast("Subject", SimpleNamespace(engine=engine, workload=workload, tools=tools))


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    return Sweep(tmp_path)


def test_a_version_is_built_once_and_stored(sweep: Sweep) -> None:
    engine = tiny_engine({"kind": "path"}, env=ENV)
    first = sweep.artifacts.of(sweep.job(engine), subject(engine, ""))
    second = sweep.artifacts.of(sweep.job(engine), subject(engine, ""))
    assert first is second
    assert first.state == "built", first.reason
    assert sweep.session.store.artifact(first.id) == first
    assert [event.kind for event in sweep.told if event.kind != "build-progress"] == [
        "build", "build-end",
    ]  # fmt: skip


def test_an_edited_tree_is_another_artifact(sweep: Sweep) -> None:
    engine = tiny_engine({"kind": "path"}, env=ENV)
    first = sweep.artifacts.of(sweep.job(engine), subject(engine, ""))
    (sweep.tree / "NOTES").write_text("changed")
    second = sweep.artifacts.of(sweep.job(engine), subject(engine, ""))
    assert first.id != second.id


def test_a_build_refused_for_one_workload_stays_good_for_another(sweep: Sweep) -> None:
    engine = tiny_engine({"kind": "path"}, env=ENV)
    refused = sweep.artifacts.of(sweep.job(engine, CODEC="brotli"), subject(engine, "{CODEC}"))
    assert refused.state == "refused"
    assert "without brotli" in refused.reason
    good = sweep.artifacts.of(sweep.job(engine), subject(engine, ""))
    assert good.state == "built"
    stored = sweep.session.store
    assert stored.artifact(good.id) == good
    assert stored.artifact(refused.id) == refused


def test_a_failed_build_is_stored_with_its_reason(sweep: Sweep) -> None:
    engine = tiny_engine({"kind": "path"}, env=ENV, commands=[["make", "no-such-target"]])
    failed = sweep.artifacts.of(sweep.job(engine), subject(engine, ""))
    assert failed.state == "failed"
    assert "no-such-target" in failed.reason
    assert sweep.session.store.artifact(failed.id) == failed
    assert re.match(r"the build of \S.* failed: ", sweep.told[-1].text)


def test_the_driver_is_wanted_where_a_step_takes_it_from_the_job() -> None:
    engine = tiny_engine({"kind": "path"}, driver="kvbench")
    generic = Tool(name="generic", binary="kvbench", of_job=True)
    assert wanted_driver(subject(engine, "")) == ""
    assert wanted_driver(subject(engine, "", Tool(name="kvbench", engine="tiny"))) == ""
    assert wanted_driver(subject(engine, "", generic)) == "kvbench"
    assert wanted_driver(subject(tiny_engine({"kind": "path"}), "", generic)) == ""
