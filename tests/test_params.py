from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrunner.compatibility import check_requirement, satisfies, within
from benchrunner.params import typed


@pytest.mark.parametrize(
    ("value", "default", "expected"),
    [
        ("6GiB", 0, 6 * 1024**3),
        ("6GiB", "1MiB", 6 * 1024**3),
        ("64K", 0, 65536),
        ("-1", 0, -1),
        (5, "1MiB", 5),
        ("0.25", 1.0, 0.25),
        (2, 1.0, 2.0),
        ("lz4", "zstd", "lz4"),
        ("0", True, False),
        (True, False, True),
    ],
)
def test_a_value_has_the_type_of_its_default(value: Any, default: Any, expected: Any) -> None:
    found = typed(value, default, where="--set X")

    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("version", "requirement", "holds"),
    [
        ("6.19.3", ">=6.19", True),
        ("6.18.9", ">=6.19", False),
        ("6.19", ">=6.19.2", False),
        ("10.1.0", ">=6.19", True),
        ("6.19.3", ">6.19", False),
        ("6.19.3", "==6.19", True),
        ("6.19.3", ">=6.10,<7.0", True),
        ("main", ">=99", True),
        ("main", "<=99", False),
        ("v7.2.2", "<7.2.3", True),
        ("8.0.0-rc1", ">=8.0", True),
        ("1.0", "", True),
    ],
)
def test_requirements(version: str, requirement: str, holds: bool) -> None:
    check_requirement(requirement, where="steps.x.requires")

    assert satisfies(version, requirement) is holds


def test_bounds_that_are_no_versions_bind_nothing() -> None:
    assert within("7.2.2", "main", None)


@given(
    st.tuples(st.integers(6, 11), st.integers(0, 30)),
    st.tuples(st.integers(6, 11), st.integers(0, 30)),
)
def test_versions_compare_as_numbers(one: tuple[int, int], two: tuple[int, int]) -> None:
    a, b = (f"{major}.{minor}" for major, minor in (one, two))

    assert satisfies(a, f">={b}") is (one >= two)
    assert satisfies(a, f"<{b}") is (one < two)
    assert within(a, b, b) is (one == two)
