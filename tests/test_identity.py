from __future__ import annotations

import json
import string
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from benchrunner.definitions import Step, Workload
from benchrunner.identity import dataset_id, digest, job_id
from benchrunner.model import Job, SourceRef

if TYPE_CHECKING:
    from collections.abc import Mapping
from plan_support import SHIPPED, a_workload, plan_of

VERSIONS = st.lists(st.sampled_from(["6.11.4", "6.28.2", "7.2.2", "main"]), min_size=1, unique=True)
AXES = st.dictionaries(
    st.sampled_from(["NUM", "CACHE"]),
    st.lists(st.integers(1, 50), min_size=1, max_size=3, unique=True),
    max_size=2,
)


@given(VERSIONS, AXES, st.randoms())
def test_ids_do_not_depend_on_the_order_of_keys(
    versions: list[str], axes: dict[str, list[int]], random: Any
) -> None:
    def shuffled(mapping: Mapping[str, Any]) -> dict[str, Any]:
        items = list(mapping.items())
        random.shuffle(items)
        return dict(items)

    mine = a_workload()
    other = a_workload(params=shuffled(mine.params))

    one = plan_of(*versions, workload=mine, axes=axes)
    two = plan_of(*versions, workload=other, axes=shuffled(axes))

    assert {t.id for t in one.trials} == {t.id for t in two.trials}
    assert all(len(t.id) == 16 and set(t.id) <= set(string.hexdigits) for t in one.trials)


def test_ids_stay_the_same_for_ever() -> None:
    (trial,) = plan_of("7.2.2", variants=["None"], set={"NUM": 7}).trials

    assert (trial.job.id, trial.id) == ("156c955343787b0f", "d047d560984ba963")


def test_everything_makes_a_job_also_the_commit_or_content_that_a_source_notes() -> None:
    content: dict[str, Any] = {"source": SourceRef("e", "1", "git", "v1"), "params": {"a": 1}}

    assert job_id(content) != job_id(
        {**content, "source": SourceRef("e", "1", "git", "v1", "commit 1234567")}
    )
    assert job_id(content) != job_id({**content, "source": SourceRef("e", "1", "git", "v2")})
    assert job_id(content) != job_id({**content, "params": {"a": 2}})


# ---------------------------------------------------------------- datasets


def a_job(workload: Workload, version: str = "7.2.2", variant: str = "None", **params: Any) -> Job:
    plan = plan_of(version, workload=workload, variants=[variant], set=params)
    return plan.trials[0].job


TOOLS = {"db_bench": SHIPPED.tool("db_bench")}


def test_a_dataset_is_what_loading_made_it() -> None:
    workload = a_workload()
    one = dataset_id(a_job(workload), workload, TOOLS)

    assert dataset_id(a_job(workload, CACHE=4096), workload, TOOLS) == one
    assert dataset_id(a_job(workload, NUM=5), workload, TOOLS) != one
    assert dataset_id(a_job(workload, "7.3.1"), workload, TOOLS) != one
    assert dataset_id(a_job(workload, variant="DIO"), workload, TOOLS) != one
    assert dataset_id(a_job(workload), workload, TOOLS, 2) == one


def test_a_seed_that_counts_repetitions_makes_another_dataset() -> None:
    steps = [
        Step(
            name="load",
            tool="db_bench",
            state="creates",
            args={"seed": "{repetition}", "benchmarks": ["fillrandom", "stats"]},
        )
    ]
    workload = a_workload(steps=steps)

    first, second = (dataset_id(a_job(workload), workload, TOOLS, n) for n in (1, 2))

    assert first != second


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_a_digest_is_of_content(content: Any) -> None:
    again = json.loads(json.dumps({"b": content, "a": 1}))

    assert digest(again) == digest({"a": 1, "b": content})
