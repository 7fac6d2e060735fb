"""Does an output contradict itself? Measurements and the step's context in, sentences out.

Pure. What is found makes the step run invalid: stored and shown, never a number. Each sentence
names the figures that do not fit together. Tables copied by hand fail these checks too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchrunner.model import Measurement

_PERCENTILES = ("p50_us", "p75_us", "p99_us", "p99_9_us", "p99_99_us", "max_us")

MAX_THREAD_TIME_EXCESS = 0.002
"""usec/op x operations is the sum of the threads' own times, and none of them is longer than the
run: the product cannot exceed threads x 1e6. Clock reads around the loop take far less."""

MAX_THREAD_TIME_LACK = 0.02
"""With --duration all threads stop together, but for what the next two constants say."""
MAX_START_SKEW_S = 0.5
"""Threads start one after the other; matters for short runs."""
OPS_BETWEEN_CLOCKS = 1000
"""A thread looks at the clock every 1000 operations, so it may stop that much later."""
SLOWEST_THREAD = 2.0
"""Its operations may take that much longer than the mean, on a machine with too much to do."""

MIN_DURATION_PART = 0.98
"""A run that ended before its duration was ended by its number of operations."""

USEC_DIGIT_US = 0.0005
"""Half of the last digit of usec/op as db_bench prints it; a page prints one decimal (0.05)."""

MAX_ELAPSED_EXCESS_S = 0.2
"""Rounding of RocksDB's uptime (0.05) and of two clocks read at different moments."""


@dataclass(frozen=True, slots=True)
class StepContext:
    """What is known of a step besides its output; ``None`` where it is not."""

    threads: int | None = None
    """Threads whose operations are counted."""
    seconds: float | None = None
    """Asked run time (``--duration``); ``None`` for a run of a fixed number of operations."""
    wall_s: float | None = None
    """Of the whole process."""
    phase: str | None = None
    """The phase that ``threads`` and ``seconds`` are about; ``None``: every phase."""
    usec_digit_us: float = USEC_DIGIT_US


Values = dict[str, float]


def find_problems(
    measurements: Iterable[Measurement], context: StepContext | None = None
) -> tuple[str, ...]:
    """Every contradiction, one sentence each; empty when the output is consistent."""
    context = context or StepContext()
    groups: dict[tuple[str | None, int, str | None], Values] = {}
    for phase, run, role, metric, value in measurements:
        groups.setdefault((phase, run, role), {})[metric] = value
    problems: list[str] = []
    for (phase, run, role), values in groups.items():
        name = _name(phase, run, role)
        problems += _order(name, values)
        problems += _found(name, values)
        problems += _rate(name, values)
        problems += _clocks(name, values, context)
        if role in (None, "reader") and context.phase in (None, phase):
            problems += _thread_time(name, values, context)
            problems += _shifted(name, values, context)
    return tuple(problems)


def _name(phase: str | None, run: int, role: str | None) -> str:
    parts = [phase or "the process"]
    parts += [f"run {run}"] if run > 1 else []
    parts += [role] if role else []
    return ", ".join(parts)


def _order(name: str, values: Values) -> list[str]:
    """Percentiles may be equal, never fall."""
    present = [metric for metric in _PERCENTILES if metric in values]
    return [
        f"{name}: {low} {values[low]:g} us is above {high} {values[high]:g} us"
        for low, high in pairwise(present)
        if values[low] > values[high]
    ]


def _found(name: str, values: Values) -> list[str]:
    found, asked = values.get("found_count"), values.get("asked_count")
    if found is None or asked is None or found <= asked:
        return []
    return [f"{name}: {found:.0f} keys were found of {asked:.0f} asked for"]


def _rate(name: str, values: Values) -> list[str]:
    """Operations over seconds against ops/sec, both rounded; seconds to as many digits as seen."""
    operations, elapsed_s = values.get("operations"), values.get("elapsed_s")
    ops_per_sec = values.get("ops_per_sec")
    if not operations or not elapsed_s or ops_per_sec is None:
        return []
    # redis-benchmark prints hundredths; db_bench, thousandths, of which some look like those.
    half_digit_s = 0.005 if round(elapsed_s, 2) == elapsed_s else 0.0005
    if elapsed_s <= half_digit_s:
        return []
    low = operations / (elapsed_s + half_digit_s) - 1.0
    high = operations / (elapsed_s - half_digit_s) * (1.0 + 1e-6)  # it is rounded, too
    if low <= ops_per_sec <= high:
        return []
    return [
        f"{name}: {operations:.0f} operations in {elapsed_s:g} s are "
        f"{operations / elapsed_s:.0f} ops/sec, not {ops_per_sec:.0f}"
    ]


def _clocks(name: str, values: Values, context: StepContext) -> list[str]:
    if context.wall_s is None:
        return []
    limit = context.wall_s + MAX_ELAPSED_EXCESS_S
    return [
        f"{name}: {metric} {values[metric]:g} is longer than the process ran ({context.wall_s:g} s)"
        for metric in ("elapsed_s", "uptime_s")
        if values.get(metric, 0.0) > limit
    ]


def _thread_time(name: str, values: Values, context: StepContext) -> list[str]:
    usec, ops = values.get("usec_per_op"), values.get("ops_per_sec")
    if usec is None or ops is None or not context.threads:
        return []
    digit = context.usec_digit_us
    # ops/sec is cut to an integer: the true rate is up to one higher.
    low, high = max(0.0, usec - digit) * ops, (usec + digit) * (ops + 1.0)
    full = context.threads * 1e6
    if low > full * (1.0 + MAX_THREAD_TIME_EXCESS) or high < full * _least_part(values, context):
        expected = f"{full / ops:.1f}" if ops else "nothing"
        return [
            f"{name}: usec/op {usec:g} x ops/sec {ops:.0f} is not {context.threads} threads x 1e6; "
            f"usec/op should be near {expected}"
        ]
    return []


def _least_part(values: Values, context: StepContext) -> float:
    """How much of threads x 1e6 must be there; nothing unless a duration ended the run.

    Threads that each do a number of operations finish at different times.
    """
    elapsed_s = _elapsed_s(values)
    if context.seconds is None or elapsed_s is None:
        return 0.0
    if elapsed_s < MIN_DURATION_PART * context.seconds:
        return 0.0
    late_s = SLOWEST_THREAD * OPS_BETWEEN_CLOCKS * values["usec_per_op"] / 1e6
    skew_s = MAX_START_SKEW_S + late_s
    return max(0.0, 1.0 - MAX_THREAD_TIME_LACK - skew_s / elapsed_s)


def _elapsed_s(values: Values) -> float | None:
    """As printed from 7.3 on; before, timed calls x operations per call / operations per second."""
    if "elapsed_s" in values:
        return values["elapsed_s"] or None
    calls, mean_us = values.get("latency_count"), values.get("mean_us")
    thread_us_per_s = values["usec_per_op"] * values["ops_per_sec"]
    if calls is None or mean_us is None or thread_us_per_s == 0:
        return None
    return calls * mean_us / thread_us_per_s


def _shifted(name: str, values: Values, context: StepContext) -> list[str]:
    """A row without usec/op whose p50 is exactly what usec/op must be, and p75 many times it.

    That is a table cut one column too far; a latency distribution like it does not occur with
    all threads busy, because its mean would be far above the time per operation.
    """
    ops, p50, p75 = values.get("ops_per_sec"), values.get("p50_us"), values.get("p75_us")
    if "usec_per_op" in values or not ops or p50 is None or p75 is None or not context.threads:
        return []
    expected = context.threads * 1e6 / ops
    if abs(p50 - expected) > 0.1 or p75 < 5 * p50:
        return []
    return [
        f"{name}: p50 {p50:g} us is what usec/op must be ({context.threads} x 1e6 / {ops:.0f}) and "
        f"p75 is {p75:g} us: the row looks shifted by one column"
    ]
