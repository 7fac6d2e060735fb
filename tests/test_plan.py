from __future__ import annotations

from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrunner.definitions import Step, Sweep, Variant
from benchrunner.errors import ConfigurationError, NothingSelectedError
from benchrunner.model import Plan, SourceRef
from benchrunner.params import effective
from benchrunner.plan import make_plan

if TYPE_CHECKING:
    from collections.abc import Sequence
from plan_support import SHIPPED, Known, a_workload, cells, plan_of, refs

# ---------------------------------------------------------------- cells


def test_versions_take_turns_within_a_variant() -> None:
    assert cells(plan_of("6.11.4", "7.2.2")) == [
        ("6.11.4", "None", 1),
        ("7.2.2", "None", 1),
        ("6.11.4", "DIO", 1),
        ("7.2.2", "DIO", 1),
    ]


def test_repetitions_go_forward_and_back() -> None:
    plan = plan_of("1.0", "2.0", variants=["DIO"], repeat=3)

    assert [(version, rep) for version, _, rep in cells(plan)] == [
        ("1.0", 1),
        ("2.0", 1),
        ("2.0", 2),
        ("1.0", 2),
        ("1.0", 3),
        ("2.0", 3),
    ]
    assert [t.position for t in plan.trials] == [1, 2, 3, 4, 5, 6]


def test_grouped_repeats_a_job_before_the_next() -> None:
    plan = plan_of("1.0", "2.0", variants=["None"], repeat=2, order="grouped")

    assert [(version, rep) for version, _, rep in cells(plan)] == [
        ("1.0", 1),
        ("1.0", 2),
        ("2.0", 1),
        ("2.0", 2),
    ]


def test_a_job_has_every_parameter() -> None:
    (trial,) = plan_of(
        "7.2.2", variants=["None"], scale="smoke", set={"NUM": "2_000", "SYNC": "true"}
    ).trials

    assert trial.job.params == {
        "NUM": 2000,
        "CACHE": 1048576,
        "RATIO": 0.5,
        "SYNC": True,
        "CODEC": "zstd",
    }
    assert trial.job.scale == "smoke"
    assert trial.job.steps == ("load", "compact", "read")
    assert trial.job.source.ref == "some-crate@7.2.2"


def test_axes_come_after_overrides() -> None:
    plan = plan_of("1.0", variants=["None"], set={"NUM": 5}, axes={"NUM": [1, 2], "CACHE": ["1K"]})

    assert [dict(t.job.axes) for t in plan.trials] == [
        {"NUM": 1, "CACHE": 1024},
        {"NUM": 2, "CACHE": 1024},
    ]
    assert [t.job.params["NUM"] for t in plan.trials] == [1, 2]


def test_an_axis_multiplies_only_workloads_that_have_it() -> None:
    other = a_workload(
        name="other", params={}, scale={}, estimate={}, steps=[a_workload().steps[1]]
    )
    known = Known(a_workload(), other)
    sweep = Sweep(name="s", workloads=["mine", "other"], variants=["None"], axes={"NUM": [1, 2]})

    plan = make_plan(sweep, known, refs("1.0"))

    assert Counter(t.job.workload for t in plan.trials) == {"mine": 2, "other": 1}


def test_versions_that_overlap_run_once() -> None:
    assert (
        len(plan_of("1.0", "2.0", "1.0", variants=["None"], hosts=["host1", "host1"]).trials) == 2
    )


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        ([{"version": "1.0", "variant": "DIO"}], 3),
        ([{"version": "1.0"}, {"variant": "DIO"}], 1),
        ([{"NUM": 1000, "variant": "DIO"}], 2),
        ([{"NUM": 1, "version": "1.0"}], 4),
        ([{"CACHE": "6GiB", "version": "2.0"}], 2),
        ([{"workload": "other"}], 4),
        ([{}], 4),
    ],
)
def test_excluded_cells_are_left_out(exclude: list[dict[str, Any]], left: int) -> None:
    assert len(plan_of("1.0", "2.0", exclude=exclude).trials) == left


def test_an_exclude_of_another_workload_s_parameter_matches_nothing() -> None:
    other = a_workload(name="other", params={"X": 1}, scale={}, estimate={}, steps=[])
    sweep = Sweep(name="s", workloads=["mine", "other"], exclude=[{"X": 1}])
    mine = make_plan(sweep, Known(a_workload(), other), refs("1.0"))

    assert {t.job.workload for t in mine.trials} == {"mine"}


def test_a_step_that_a_version_cannot_run_is_left_out_and_told() -> None:
    steps = [
        Step(name="wait", tool="db_bench", requires=">=6.19"),
        Step(name="nowait", tool="db_bench", requires="<6.19"),
    ]

    plan = plan_of("6.11.4", "7.2.2", workload=a_workload(steps=steps))

    assert {t.job.version: t.job.steps for t in plan.trials} == {
        "6.11.4": ("nowait",),
        "7.2.2": ("wait",),
    }
    assert plan.skipped == (
        ("rocksdb 6.11.4: wait", "the step requires >=6.19"),
        ("rocksdb 7.2.2: nowait", "the step requires <6.19"),
    )


# ---------------------------------------------------------------- ceilings


def test_ceilings_come_first_and_once() -> None:
    workload = a_workload(ceiling={"workload": "fio-randread"})

    plan = plan_of(
        "1.0", "2.0", workload=workload, hosts=["host1", "host2"], scale="smoke", repeat=2
    )

    first = [(t.job.workload, t.job.host, t.repetition) for t in plan.trials[:2]]
    assert first == [("fio-randread", "host1", 1), ("fio-randread", "host2", 1)]
    assert len(plan.trials) == 2 + 2 * 2 * 2 * 2
    ceiling = plan.trials[0].job
    assert (ceiling.engine, ceiling.version, ceiling.variant) == ("fio", "system", "None")
    assert ceiling.source == SourceRef("fio", "system", "system", "fio")
    assert ceiling.params["SIZE"] == 16 * 1024**2
    assert plan.loads == 16


def test_ceilings_can_be_left_out_and_set() -> None:
    workload = a_workload(ceiling={"workload": "fio-randread"})

    without = plan_of("1.0", workload=workload, ceilings=False)
    smaller = plan_of("1.0", workload=workload, set={"SIZE": "1MiB", "NUM": 3})

    assert {t.job.workload for t in without.trials} == {"mine"}
    assert smaller.trials[0].job.params["SIZE"] == 1048576


def test_a_ceiling_without_the_scale_uses_its_own() -> None:
    workload = a_workload(
        ceiling={"workload": "fio-randread"}, scale={"tiny": {}}, default_scale="tiny"
    )

    assert plan_of("1.0", workload=workload).trials[0].job.scale == "published"


def test_a_ceiling_that_is_asked_for_itself_is_an_ordinary_workload() -> None:
    known = Known(a_workload(ceiling={"workload": "fio-randread"}))
    sweep = Sweep(name="s", workloads=["mine", "fio-randread"], scale="smoke", repeat=2)

    plan = make_plan(sweep, known, refs("1.0"))

    assert Counter(t.job.workload for t in plan.trials) == {"mine": 4, "fio-randread": 2}


# ---------------------------------------------------------------- cost


def test_what_a_plan_costs() -> None:
    plan = plan_of("1.0", "2.0", variants=["None"], repeat=2)

    assert plan.loads == 4
    assert plan.disk_bytes == 1500
    assert plan.seconds == 4 * (10 + 10)


def test_history_knows_better() -> None:
    sweep = Sweep(name="s", workloads=["mine"], variants=["None"])
    history = {("mine", "published", "compact"): 5.5, ("mine", "published", "read"): 7.0}

    plan = make_plan(sweep, Known(a_workload()), refs("1.0"), history)

    assert plan.seconds == 22.5


def test_pristine_keeps_the_loaded_state_beside() -> None:
    plan = plan_of("1.0", workload=a_workload(policy="pristine"), variants=["None"])

    assert (plan.disk_bytes, plan.loads) == (3000, 1)


def test_what_is_not_known_is_none() -> None:
    workload = a_workload(estimate={}, steps=[Step(name="x", tool="db_bench")])

    plan = plan_of("1.0", workload=workload)

    assert (plan.disk_bytes, plan.seconds, plan.loads) == (None, None, 0)


def test_an_estimate_must_be_a_number() -> None:
    with pytest.raises(ConfigurationError, match=r"estimate.disk of mine: 'zstd' is not a number"):
        plan_of("1.0", workload=a_workload(estimate={"disk": "CODEC"}))


def test_the_flash_page_at_its_scale() -> None:
    sweep = Sweep(name="s", workloads=["rocksdb-flash"], ceilings=False)

    plan = make_plan(sweep, SHIPPED, refs("6.11.4", "7.2.2"))

    assert len(plan.trials) == 4
    assert plan.loads == 4
    assert len(plan.trials[0].job.steps) == 10
    assert plan.disk_bytes is not None
    assert 300e9 < plan.disk_bytes < 400e9
    assert plan.seconds == 4 * (2 * 900e6 / 150e3 + 8 * 5400)


# ---------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("sweep", "message", "hint"),
    [
        (
            {"variants": ["DOI"]},
            "there is no variant 'DOI' in mine; did you mean 'DIO'?",
            "--variants one of DIO, None",
        ),
        (
            {"scale": "smok"},
            "workload mine has no scale 'smok'; did you mean 'smoke'?",
            "--scale one of published, smoke",
        ),
        (
            {"set": {"NUMM": 1}},
            "--set NUMM: there is no parameter 'NUMM'; did you mean 'NUM'?",
            "one of CACHE",
        ),
        ({"set": {"NUM": "many"}}, "--set NUM: 'many' is not a whole number", "400000 or 6GiB"),
        ({"set": {"NUM": True}}, "--set NUM: True is not a whole number", ""),
        ({"set": {"NUM": 1.5}}, "--set NUM: 1.5 is not a whole number", ""),
        ({"set": {"RATIO": "x"}}, "--set RATIO: 'x' is not a number", ""),
        ({"set": {"RATIO": True}}, "--set RATIO: True is not a number", ""),
        (
            {"set": {"SYNC": "maybe"}},
            "--set SYNC: 'maybe' is neither true nor false",
            "true or false",
        ),
        ({"set": {"CODEC": 5}}, "--set CODEC: expected a text, got 5", 'write "5"'),
        ({"axes": {"threads": [1]}}, "axis threads: there is no parameter 'threads'", ""),
        ({"axes": {"NUM": []}}, "axis NUM has no values", "NUM = [1, 2]"),
        (
            {"exclude": [{"verson": "1.0"}]},
            "exclude: there is no parameter 'verson'; did you mean 'version'?",
            "",
        ),
        (
            {"workloads": ["rocksdb-falsh"]},
            "there is no workload 'rocksdb-falsh'; did you mean 'rocksdb-flash'?",
            "benchrunner list workloads",
        ),
        (
            {"hosts": ["lokal"]},
            "there is no host 'lokal'; did you mean 'local'?",
            "benchrunner list hosts",
        ),
    ],
)
def test_a_wrong_sweep_is_one_clear_line(sweep: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        plan_of("1.0", **sweep)

    assert error.value.message == message
    assert hint in error.value.hint


def test_a_workload_with_none_of_the_variants() -> None:
    other = a_workload(name="other", variants=[Variant(name="numa")])
    sweep = Sweep(name="s", workloads=["mine", "other"], variants=["DIO"])

    with pytest.raises(ConfigurationError, match="workload other has none of the variants DIO"):
        make_plan(sweep, Known(a_workload(), other), refs("1.0"))


def test_a_workload_without_scales() -> None:
    with pytest.raises(ConfigurationError, match="has no scale 'smoke'") as error:
        effective(a_workload(scale={}), "smoke", {})
    assert error.value.hint == "leave --scale out"


def test_nothing_selected_says_why() -> None:
    with pytest.raises(NothingSelectedError, match="no version of rocksdb is selected for mine"):
        plan_of()
    with pytest.raises(NothingSelectedError, match="s selects nothing: every cell is excluded"):
        plan_of("1.0", exclude=[{"version": "1.0"}])
    workload = a_workload(steps=[Step(name="load", tool="db_bench", requires=">=6")])
    with pytest.raises(NothingSelectedError, match=r"rocksdb 1\.0: load: the step requires >=6"):
        plan_of("1.0", workload=workload)


# ---------------------------------------------------------------- laws

VERSIONS = st.lists(st.sampled_from(["6.11.4", "6.28.2", "7.2.2", "main"]), min_size=1, unique=True)
AXES = st.dictionaries(
    st.sampled_from(["NUM", "CACHE"]),
    st.lists(st.integers(1, 50), min_size=1, max_size=3, unique=True),
    max_size=2,
)
EXCLUDES = st.lists(
    st.fixed_dictionaries(
        {"version": st.sampled_from(["6.11.4", "7.2.2"])},
        optional={"variant": st.sampled_from(["None", "DIO"]), "NUM": st.integers(1, 5)},
    ),
    max_size=3,
)
REPEATS = st.integers(1, 4)


def planned_or_nothing(versions: Sequence[str], **sweep: Any) -> Plan | None:
    try:
        return plan_of(*versions, **sweep)
    except NothingSelectedError:
        return None


@given(VERSIONS, AXES, EXCLUDES, REPEATS, st.sampled_from(["interleaved", "grouped"]))
def test_a_plan_is_the_product_minus_excludes(
    versions: list[str], axes: dict[str, list[int]], excludes: list[Any], repeat: int, order: str
) -> None:
    plan = planned_or_nothing(versions, axes=axes, exclude=excludes, repeat=repeat, order=order)

    kept = 0
    for version, variant, *point in product(versions, ("None", "DIO"), *axes.values()):
        num = dict(zip(axes, point, strict=True)).get("NUM", 1000)
        cell = {"version": version, "variant": variant, "NUM": num}
        kept += not any(all(cell[k] == v for k, v in one.items()) for one in excludes)
    trials = plan.trials if plan else ()
    assert len(trials) == kept * repeat
    assert len({t.id for t in trials}) == len(trials)
    assert set(Counter(t.job.id for t in trials).values()) <= {repeat}


@given(VERSIONS, AXES, REPEATS)
def test_no_repetition_starts_before_the_last_one_is_through(
    versions: list[str], axes: dict[str, list[int]], repeat: int
) -> None:
    plan = plan_of(*versions, axes=axes, repeat=repeat)

    repetitions = [trial.repetition for trial in plan.trials]
    assert repetitions == sorted(repetitions)
