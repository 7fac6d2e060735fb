"""``kill -9`` of the controller at every boundary of the journal, then ``resume``.

Real processes: the program, the supervisor, and a fake engine that counts what was executed.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from fault_support import ROOT, Bench

if TYPE_CHECKING:
    from pathlib import Path

RUN_POINTS = (
    "step-begun", "step-started", "step-running", "step-ended", "step-collected",
    "step-stored", "steps-done", "database-removed", "trial-ended",
)  # fmt: skip
PRISTINE_POINTS = ("loaded-kept", "loaded-restored")
MEMORY_POINTS = ("memory-disk-mounted", "database-emptied")
"""``test_memory_sweeps`` has them."""
SERVICE_POINTS = (
    "service-begun", "service-started", "service-waited", "service-stopped", "service-ended",
)  # fmt: skip
"""``test_services`` has them."""
CHANGES = (
    "migrate", "add-sweep", "acquire-lease", "save-facts", "save-artifact", "begin-trial",
    "begin-step", "step-running", "end-step", "save-keys", "save-parsed", "add-ceiling",
    "end-trial", "release-lease",
)  # fmt: skip
RESUME_CHANGES = ("take-over-lease", "restart-trial")
NOT_HERE = ("add-taints", "save-setting", "renew-lease")
"""Changes that no sweep makes; ``test_store_crash`` has them."""

CASES = [
    *(f"{point}:2" for point in RUN_POINTS),
    "step-begun:1",
    "step-started:1",
    "step-ended:4",
    *(f"{moment}-{change}" for change in CHANGES for moment in ("store", "stored")),
]
BEFORE_THE_PLAN = ("store-migrate", "stored-migrate", "store-add-sweep")
AFTER_THE_END = ("trial-ended:2", "store-release-lease", "stored-release-lease")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Bench:
    """What it looks like when nothing goes wrong."""
    bench = Bench(tmp_path_factory.mktemp("undisturbed"), cache)
    done = bench.sweep("fake-capped")
    assert done.returncode == 0, done.stderr
    assert [trial["state"] for trial in bench.rows()] == ["ok", "ok"]
    assert bench.rows()[1]["steps"][1][3]["readrandom/1/None/ops_per_sec"] == 500000
    return bench


def check_as_if_nothing_had_happened(bench: Bench, undisturbed: Bench) -> None:
    """Everything is there once, and nothing is left over."""
    assert [comparable(t) for t in bench.rows()] == [comparable(t) for t in undisturbed.rows()]
    assert set(bench.executed().values()) == {1}, "a step ran twice"
    assert len(bench.executed()) == len(undisturbed.executed())
    assert not bench.orphans()
    assert not list((bench.data / "work" / "trials").iterdir()), "the host is not clean"
    assert not list(bench.data.rglob("*.partial"))
    with bench.store() as store:
        ended = Counter(e.trial_id for e in store.events() if e.what == "trial-ended")
        assert set(ended.values()) == {1}
        with undisturbed.store() as other:
            ceilings = [(c.metric, c.value, c.step) for c in other.ceilings("local")]
        assert [(c.metric, c.value, c.step) for c in store.ceilings("local")] == ceilings


def comparable(trial: dict[str, object]) -> dict[str, object]:
    """Job ids hash the parameters, and LOG is one: the only thing that differs."""
    return {key: value for key, value in trial.items() if key != "job"}


def test_every_fault_point_is_tried_here() -> None:
    code = "".join(p.read_text() for p in (ROOT / "benchrunner").rglob("*.py"))
    points = set(re.findall(r'faults\.point\("([\w-]+)"\)', code))
    assert points == {*RUN_POINTS, *PRISTINE_POINTS, *MEMORY_POINTS, *SERVICE_POINTS}
    changes = set(re.findall(r'\.write\("([\w-]+)"', code))
    assert changes == {*CHANGES, *RESUME_CHANGES, *NOT_HERE}


@pytest.mark.parametrize("fault", CASES)
def test_kill_then_resume_is_as_if_nothing_had_happened(
    bench: Bench, undisturbed: Bench, fault: str
) -> None:
    killed = bench.sweep("fake-capped", fault=fault)
    assert killed.returncode == -9, killed.stderr
    resumed = bench.run("resume", "--format", "none")
    if fault in BEFORE_THE_PLAN:
        # Nothing was promised yet, so it is asked for again.
        assert resumed.returncode in (2, 3)
        resumed = bench.sweep("fake-capped")
    if fault in AFTER_THE_END:
        assert resumed.returncode == 3
        assert "every stored sweep has ended" in resumed.stderr
    else:
        assert resumed.returncode == 0, resumed.stderr
    check_as_if_nothing_had_happened(bench, undisturbed)
    with bench.store() as store:
        left = fault in AFTER_THE_END and fault != "stored-release-lease"
        assert (store.lease("local") is not None) == left, "the next sweep takes over a dead one's"
