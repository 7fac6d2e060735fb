"""Sizes, counts, rates, durations and a page's figures: laws and examples."""

from __future__ import annotations

import doctest
import math
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrunner import units
from benchrunner.definitions import Metric
from benchrunner.errors import ConfigurationError
from benchrunner.units import (
    DASH,
    format_duration_s,
    format_size,
    format_value,
    parse_bits_per_s,
    parse_count,
    parse_duration_s,
    parse_size_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable

METRICS = {
    name: Metric.model_validate(text)
    for name, text in tomllib.loads(
        (Path(__file__).parent.parent / "benchrunner" / "metrics.toml").read_text()
    ).items()
}


@given(st.integers(0, 2**63))
def test_sizes_come_back(size: int) -> None:
    assert parse_size_bytes(format_size(size)) == pytest.approx(size, rel=1e-15)


@given(st.integers(0, 2**20), st.sampled_from("KMGT"))
def test_whole_sizes_come_back_exactly(number: int, prefix: str) -> None:
    size = parse_size_bytes(f"{number}{prefix}iB")
    assert parse_size_bytes(format_size(size)) == size


@given(st.integers(0, 10**9))
def test_durations_come_back(milliseconds: int) -> None:
    assert round(parse_duration_s(format_duration_s(milliseconds / 1000)) * 1000) == milliseconds


@given(st.floats(0, 1e8), st.integers(0, 6))
def test_figures_are_as_near_as_their_digits(value: float, digits: int) -> None:
    text = format_value(value, "ratio", digits)
    assert abs(float(text) - value) <= 0.5 * 10.0**-digits * (1 + 1e-9)
    assert not text.startswith("-")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("16MiB", 16 << 20),
        ("6GiB", 6 << 30),
        ("126K", 126 << 10),
        ("6.34 MB", round(6.34 * 2**20)),
        ("114k", 114 << 10),
        ("0.00 KB", 0),
        ("4096", 4096),
        ("1TB", 1 << 40),
        (" 7 B ", 7),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "count"), [("126K", 126e3), ("1.5M", 1.5e6), ("117k", 117e3), ("9", 9)]
)
def test_counts(text: str, count: float) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize(
    ("text", "rate"), [("15.1Gbit/s", 15.1e9), ("940 Mbits/sec", 940e6), ("1bps", 1)]
)
def test_bit_rates(text: str, rate: float) -> None:
    assert parse_bits_per_s(text) == rate


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:04:43.188", 283.188),
        ("00:00:1.234", 1.234),
        ("100:00:00", 360000.0),
        ("2:30", 150.0),
        ("~2.5us", 2.5e-6),
        ("2.5\u00b5s", 2.5e-6),
        ("285980msec", 285.98),
        ("1h30m", 5400.0),
        ("1 h 30 min", 5400.0),
        ("90s", 90.0),
        ("5400", 5400.0),
        ("120ns", 1.2e-7),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_size_bytes, "6 apples", "'6 apples' is not a size\n  try: write it like 16MiB"),
        (parse_count, "-1", "'-1' is not a count\n  try: write it like 126K"),
        (parse_bits_per_s, "15GB", "'15GB' is not a bit rate\n  try: write it like 15.1Gbit/s"),
        (parse_duration_s, "1h30x", "'1h30x' is not a duration\n  try: write it like 00:04:43.188"),
        (parse_duration_s, "", "'' is not a duration\n  try: write it like 00:04:43.188"),
        (parse_duration_s, "soon", "'soon' is not a duration\n  try: write it like 00:04:43.188"),
    ],
)
def test_what_means_nothing_is_an_error(
    parse: Callable[[str], float], text: str, message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse(text)
    assert str(caught.value).startswith(message)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_size_bytes, parse_count, parse_bits_per_s, parse_duration_s):
        with suppress(ConfigurationError):
            assert parse(text) >= 0


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("ops_per_sec", 136915.0, "136915"),
        ("mb_per_sec", 34.72, "34.7"),
        ("usec_per_op", 467.44, "467.4"),
        ("p50_us", 615.49, "615.5"),
        ("p75_us", 772.8, "772.8"),
        ("p99_us", 1270.4, "1270"),
        ("p99_9_us", 1801.0, "1801"),
        ("p99_99_us", 2840.0, "2840"),
        ("w_amp_lsm", 9.5, "9.5"),
        ("compaction_write_mb_per_sec", 149.69, "149.7"),
        ("stall_time_s", 283.188, "00:04:43.188"),
        ("stall_pct", 5.26, "5.3"),
        ("du_kib", 158540048.0, "158540048"),
        ("test_time_s", 4020.6, "4021"),
    ],
)
def test_a_pages_figures_look_like_the_seed_pages(metric: str, value: float, text: str) -> None:
    assert format_value(value, METRICS[metric].unit, METRICS[metric].digits) == text


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_nothing_measured_is_a_dash(value: float | None) -> None:
    assert format_value(value, "us") == DASH == "-"


def test_no_negative_zero() -> None:
    assert format_value(-0.04, "%") == "0.0"
    assert format_value(-0.06, "%") == "-0.1"


def test_documentation_examples() -> None:
    assert doctest.testmod(units).failed == 0
