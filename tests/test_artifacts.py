"""The artifacts of a sweep: built once, stored, refused for one workload and good for another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from source_support import tiny_engine, tiny_tree

from benchrunner.artifacts import Artifacts
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
        fields = {"engine": engine.name, "source": self.ref(engine), "params": params}
        return cast("Job", SimpleNamespace(**fields))


def subject(engine: Engine, compression: str) -> Subject:
    workload = SimpleNamespace(name="w", compression=compression)
    return cast("Subject", SimpleNamespace(engine=engine, workload=workload))


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
    assert "build failed" in sweep.told[-1].text
