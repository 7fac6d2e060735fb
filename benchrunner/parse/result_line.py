"""db_bench's result and summary lines: one line in, named values out.

Pure. Every value is taken together with the unit printed after it, never by position, so both
result-line forms (before and from 7.3) and a line that is cut short read the same way.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from benchrunner.parse.figure import number

_RESULT = re.compile(r"(?P<phase>\S+)\s*: +(?P<usec_per_op>\S+) micros/op(?P<rest>.*)")
_VALUES = {
    "ops_per_sec": re.compile(r"(\S+) ops/sec"),
    "mb_per_sec": re.compile(r"(\S+) MB/s"),
    "elapsed_s": re.compile(r"(\S+) seconds "),
    "operations": re.compile(r"(\S+) operations;"),
}
_FOUND = re.compile(r"\((\d+) of (\d+) found[,)]")
_SUMMARY = re.compile(
    r"(?P<phase>\S+) \[(?P<kind>AVG|MEDIAN|CI95) +(?P<runs>\d+) runs\] : (?P<rest>.*)"
)
_INTERVAL = re.compile(r"\((?P<low>-?[\d.]+), (?P<high>-?[\d.]+)\) (?P<unit>ops/sec|MB/sec)")
_CENTRE = re.compile(
    r"(?P<value>[\d.]+)(?: \(\S{1,2} (?P<ci95>[\d.]+)\))? (?P<unit>ops/sec|MB/sec)"
)
"""``136915 (plus-minus 120) ops/sec``; the sign is two characters where UTF-8 was read as Latin-1.

``ms/op`` of recent versions is only 1000 / (ops/sec), so it is not read.
"""
_METRIC = {"ops/sec": "ops_per_sec", "MB/sec": "mb_per_sec"}
_ROLE = {"AVG": "average", "MEDIAN": "median", "CI95": "average"}


class Result(NamedTuple):
    """What one result line says about one phase."""

    phase: str
    values: dict[str, float]


class Summary(NamedTuple):
    """What one AVG, MEDIAN or CI95 line says about several runs of one phase."""

    phase: str
    role: str
    values: dict[str, float]


def parse_result(line: str) -> Result | None:
    """The values of ``name : N micros/op N ops/sec ...``; ``None`` when it is another line.

    A value that is no number (``inf``, ``-9223372036854775808`` for a phase that took no time) is
    left out.
    """
    match = _RESULT.match(line)
    if match is None:
        return None
    rest = match["rest"]
    found = {name: pattern.search(rest) for name, pattern in _VALUES.items()}
    texts = {name: hit[1] for name, hit in found.items() if hit}
    texts["usec_per_op"] = match["usec_per_op"]
    if hits := _FOUND.search(rest):
        texts["found_count"], texts["asked_count"] = hits[1], hits[2]
    values = {name: value for name, text in texts.items() if (value := number(text)) is not None}
    asked = values.get("asked_count")
    if asked:
        values["found_ratio"] = values["found_count"] / asked
    return Result(match["phase"], values)


def parse_summary(line: str) -> Summary | None:
    """The values of ``name [AVG 3 runs] : ...`` in any of its forms; else ``None``.

    A confidence interval is ``..._ci95`` (half its width) or ``..._ci95_low`` and ``_high``, as
    printed: both are rounded, so one computed from the other would differ in the last digit.
    """
    match = _SUMMARY.match(line)
    if match is None:
        return None
    values = {"runs_summarised": float(match["runs"])}
    for part in match["rest"].split(";"):
        values.update(_part(part))
    return Summary(match["phase"], _ROLE[match["kind"]], values)


def _part(text: str) -> dict[str, float]:
    if bounds := _INTERVAL.search(text):
        # A wide interval around few runs may reach below zero; that is what was computed.
        metric = _METRIC[bounds["unit"]]
        low, high = _signed(bounds["low"]), _signed(bounds["high"])
        return {f"{metric}_ci95_low": low, f"{metric}_ci95_high": high}
    centre = _CENTRE.search(text)
    value = number(centre["value"]) if centre else None
    if centre is None or value is None:
        return {}
    metric = _METRIC[centre["unit"]]
    half = number(centre["ci95"])
    return {metric: value} if half is None else {metric: value, f"{metric}_ci95": half}


def _signed(text: str) -> float:
    negative = text.startswith("-")
    value = number(text.removeprefix("-")) or 0.0
    return -value if negative else value
