from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrunner.errors import ConfigurationError
from benchrunner.expressions import (
    MAX_LENGTH,
    Scalar,
    evaluate,
    expand,
    names_in,
    names_of_expression,
    to_text,
)

NAMES: dict[str, Scalar] = {
    "NUM_KEYS": 1000,
    "KEY_SIZE": 20,
    "VALUE_SIZE": 400,
    "RATIO": 0.5,
    "SYNC": False,
    "CODEC": "zstd",
}


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{NUM_KEYS}", 1000),
        ("{NUM_KEYS * (KEY_SIZE + VALUE_SIZE) * 3 // 2}", 630000),
        ("{min(NUM_KEYS, 7)}", 7),
        ("{max(1, NUM_KEYS // 64 // 100)}", 1),
        ("{int(NUM_KEYS / 3)}", 333),
        ("{round(NUM_KEYS / 3, 1)}", 333.3),
        ("{round(2.6)}", 3),
        ("{-NUM_KEYS % 7 + +1}", 2),
        ("{2 ** 10}", 1024),
        ("{NUM_KEYS if SYNC else 0}", 0),
        ("{1 if CODEC == 'zstd' and not SYNC else 0}", 1),
        ("{1 if SYNC or CODEC != 'zstd' else 2}", 2),
        ("{1 < 2 <= 2 and 3 >= 3 > 2}", True),
        ("{1 > 2}", False),
        ("{CODEC}", "zstd"),
        ("{SYNC}", False),
        ("/data/{CODEC}.{NUM_KEYS}", "/data/zstd.1000"),
        ("{SYNC} {RATIO}", "false 0.5"),
        ("{{{NUM_KEYS}}}", "{1000}"),
        ("{{}}", "{}"),
        ("plain", "plain"),
        ("", ""),
        (8388608, 8388608),
        (True, True),
        (0.5, 0.5),
    ],
)
def test_a_template_has_a_typed_value(template: Scalar, value: Scalar) -> None:
    found = expand(template, NAMES, where="args.num")

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{NUM_KEY}", "'{NUM_KEY}': there is no parameter 'NUM_KEY'; did you mean 'NUM_KEYS'?"),
        ("{zzz}", "'{zzz}': there is no parameter 'zzz'"),
        ("{}", "there is nothing between the braces"),
        ("{NUM_KEYS:,}", "it is not an expression"),
        ("{1 +}", "it is not an expression"),
        ("a { b", "'a { b' has a brace without its partner"),
        ("b }", "'b }' has a brace without its partner"),
        ("{1 // 0}", "cannot be calculated: integer division or modulo by zero"),
        ("{min(1)}", "cannot be calculated: 'int' object is not iterable"),
        ("{round(1, 1000000000)}", "cannot be calculated: cannot round to 1000000000 digits"),
        ("{1e308 * 10}", "it has no finite value"),
        ("{9 ** 9 ** 9}", "an exponent may be 64 at most"),
        ("{9 ** 64 ** 1 ** 1 * 9 ** 60}", "a number in it needs more than 256 bits"),
        ("{(-8) ** 0.5}", "it has no real value"),
        ("{'a' * 1000000}", "'a' is not a number"),
        ("{CODEC + 1}", "'zstd' is not a number"),
        ("{open('/etc/passwd')}", "there is no function 'open'"),
        ("{NUM_KEYS.__class__}", "NUM_KEYS.__class__ is not allowed here"),
        ("{[1][0]}", "[1][0] is not allowed here"),
        ("{(lambda: 1)()}", "is not allowed here"),
        ("{min(1, 2, key=int)}", "is not allowed here"),
        ("{1 << 200}", "1 << 200 is not allowed here"),
        ("{~1}", "~1 is not allowed here"),
        ("{1 in 2}", "only ==, !=, <, <=, > and >= compare"),
        ("{b'x'}", "b'x' is not allowed here"),
        ("{" + "+".join(["1"] * 90) + "}", "it is nested more than 40 deep"),
        ("{" + "1" * (MAX_LENGTH + 1) + "}", "it is longer than 500 characters"),
    ],
)
def test_a_bad_template_is_one_clear_line(template: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        expand(template, NAMES, where="steps.read.args.num")

    assert error.value.message.startswith("steps.read.args.num: ")
    assert message in error.value.message
    assert "\n" not in error.value.message


def test_an_unknown_name_says_which_there_are() -> None:
    with pytest.raises(ConfigurationError) as error:
        evaluate("NUM", {"B": 1, "A": 2}, where="estimate.disk")

    assert error.value.hint == "one of A, B"


def test_a_bare_expression_needs_no_braces() -> None:
    assert evaluate("NUM_KEYS * 9 // 10", NAMES, where="estimate.disk") == 900


def test_names_are_found_without_values() -> None:
    assert names_in("{max(A, B)} and {C if D else 1}") == {"A", "B", "C", "D"}
    assert names_in("{1 +}") == names_in(5) == names_in("none") == frozenset()
    assert names_of_expression("min(A, 2)") == {"A"}


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**6), st.booleans())
def test_arithmetic_is_python_s(a: int, b: int, flag: bool) -> None:
    names: dict[str, Scalar] = {"a": a, "b": b, "flag": flag}

    assert expand("{a // b}", names, where="x") == a // b
    assert expand("{a % b}", names, where="x") == a % b
    assert expand("{max(a, b) if flag else min(a, b)}", names, where="x") == (
        max(a, b) if flag else min(a, b)
    )


@given(st.text(max_size=60))
def test_any_text_has_a_value_or_one_error(text: str) -> None:
    with contextlib.suppress(ConfigurationError):
        assert isinstance(expand(text, NAMES, where="x"), bool | int | float | str)


@given(st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False))
def test_one_placeholder_keeps_the_value(value: Scalar) -> None:
    assert expand("{v}", {"v": value}, where="x") == value
    assert expand("<{v}>", {"v": value}, where="x") == f"<{to_text(value)}>"
