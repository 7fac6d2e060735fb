"""A workload as one job runs it: engines, and steps over a list."""

from __future__ import annotations

import doctest
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrunner import unfolding
from benchrunner.definitions import Step, Sweep, Workload
from benchrunner.errors import ConfigurationError
from benchrunner.unfolding import (
    all_steps,
    engines_of,
    expanded_steps,
    is_expanded,
    list_values,
    with_value,
)


def a_workload(**changes: Any) -> Workload:
    values: dict[str, Any] = {
        "name": "many",
        "title": "Many",
        "engines": ["one", "two", "three"],
        "params": {"THREADS": "1,2,4", "MODES": "slow,fast", "NUM": 5},
        "steps": [
            Step(name="load", tool="kvbench", state="creates"),
            Step(name="run", tool="kvbench", each="THREADS", state="changes", seconds="{THREADS}"),
            Step(name="mode", tool="kvbench", each="MODES"),
        ],
    }
    return Workload(**(values | changes))


def names(**params: str) -> list[str]:
    workload = a_workload()
    return [step.name for step in expanded_steps(workload, {**workload.params, **params})]


def test_doctests() -> None:
    assert doctest.testmod(unfolding).failed == 0


def test_a_step_over_a_list_is_one_step_for_each_value_in_order() -> None:
    assert names() == ["load", "run-1", "run-2", "run-4", "mode-slow", "mode-fast"]
    assert names(THREADS=" 64, 8") == ["load", "run-64", "run-8", "mode-slow", "mode-fast"]


def test_an_expanded_step_knows_its_family_and_keeps_all_else() -> None:
    step = expanded_steps(a_workload(), a_workload().params)[2]
    assert is_expanded(step)
    assert (step.family, step.value, step.each) == ("run", 2, "THREADS")
    assert (step.tool, step.state, step.seconds) == ("kvbench", "changes", "{THREADS}")
    assert with_value(step, {"THREADS": "1,2,4", "NUM": 5}) == {"THREADS": 2, "NUM": 5}


def test_other_steps_see_the_list_itself() -> None:
    load = expanded_steps(a_workload(), a_workload().params)[0]
    assert not is_expanded(load)
    assert with_value(load, {"THREADS": "1,2"}) == {"THREADS": "1,2"}


def test_steps_of_several_jobs_stand_in_the_order_of_values() -> None:
    workload = a_workload()
    jobs = [{**workload.params, "THREADS": "8,1"}, {**workload.params, "THREADS": "16,2,1"}]
    found = [step.name for step in all_steps(workload, jobs)]
    assert found == ["load", "run-1", "run-2", "run-8", "run-16", "mode-slow", "mode-fast"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "THREADS is empty: it must hold at least one value"),
        (" , ", "THREADS is empty"),
        ("0", "THREADS=0: '0' is not a whole number from 1 on"),
        ("1,,2", "THREADS=1,,2: '' is not a whole number from 1 on"),
        ("1,-2", "'-2' is not a whole number"),
        ("1,x", "'x' is not a whole number"),
        ("1.5", "'1.5' is not a whole number"),
        ("1,2,1", "THREADS=1,2,1: 1 is there twice"),
        ("01", "'01' is not a whole number"),
    ],
)
def test_bad_lists_get_one_line(value: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        names(THREADS=value)
    assert message in error.value.message
    assert "\n" not in error.value.message
    assert error.value.hint


def test_a_list_of_words_takes_words() -> None:
    assert names(MODES="7,b")[-2:] == ["mode-7", "mode-b"]
    with pytest.raises(ConfigurationError, match=r"MODES=a b: 'a b' is not a word"):
        names(MODES="a b")


@given(st.lists(st.integers(1, 10**8), min_size=1, max_size=12, unique=True))
def test_a_written_list_is_read_as_it_was(values: list[int]) -> None:
    assert list_values("N", ",".join(map(str, values)), numbers=True) == values


def test_a_sweep_takes_all_engines_unless_it_names_some() -> None:
    workload = a_workload()
    assert engines_of(workload, Sweep(name="s", workloads=["many"])) == ["one", "two", "three"]
    named = Sweep(name="s", workloads=["many"], engines={"three": ["1"], "one": [], "other": []})
    assert engines_of(workload, named) == ["one", "three"]
    single = a_workload(engine="one", engines=[])
    assert engines_of(single, named) == ["one"]
