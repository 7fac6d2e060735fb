"""Output read by a tool's TOML rules: ``split`` starts a phase, ``pattern`` names its values.

Pure. For tools whose lines a regular expression can say; others have a parser of their own.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchrunner.errors import ConfigurationError, OutputNotRecognisedError
from benchrunner.model import Measurement, Parsed
from benchrunner.parse.figure import number
from benchrunner.parse.text import Lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchrunner.definitions import Output
    from benchrunner.parse.text import Text

PARSER_VERSION = 1
_NOT_METRICS = frozenset({"phase", "role"})


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    splits: bool
    scale: Mapping[str, float]


@dataclass(slots=True)
class _State:
    phase: str | None = None
    run: int = 1
    runs: Counter[str] = field(default_factory=Counter)
    values: dict[tuple[str | None, int, str | None, str], float] = field(default_factory=dict)
    phases: list[tuple[str | None, int]] = field(default_factory=list)

    def start(self, phase: str) -> None:
        """A phase begins; its second occurrence is its second run."""
        self.runs[phase] += 1
        self.phase, self.run = phase, self.runs[phase]
        self.phases.append((phase, self.run))


def parse_rules(stdout: Text, rules: Sequence[Output], stderr: Text = ()) -> Parsed:
    """The values that the rules find, line by line; the last value of a metric in a phase counts.

    A line without its end is not read: it may be cut in the middle of a number.

    Raises:
        OutputNotRecognisedError: no rule matched any line.
        ConfigurationError: a rule's regular expression is wrong.
    """
    compiled = [_compiled(rule) for rule in rules]
    state = _State()
    for text in (stdout, stderr):
        for line in Lines(text):
            for rule in compiled:
                if match := rule.pattern.search(line):
                    _take(state, rule, match)
    if not state.values:
        raise OutputNotRecognisedError(
            f"none of the tool's {len(rules)} output rules found a value in the text",
            "compare the patterns in the tool's TOML file with the stored stdout",
        )
    measurements = tuple(Measurement(*key, value) for key, value in state.values.items())
    return Parsed(measurements, problems=tuple(_missing(state, rules)))


def _compiled(rule: Output) -> _Rule:
    text = rule.split or rule.pattern
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ConfigurationError(
            f"output rule {text!r} is not a regular expression: {error}",
            "write it as a TOML literal string, in single quotes",
        ) from error
    return _Rule(pattern, bool(rule.split), rule.scale)


def _take(state: _State, rule: _Rule, match: re.Match[str]) -> None:
    groups = match.groupdict()
    if rule.splits:
        state.start(groups.get("phase") or match[0].strip())
    elif groups.get("phase"):
        state.phase, state.run = groups["phase"], max(1, state.runs[groups["phase"]])
    for metric, text in groups.items():
        value = None if metric in _NOT_METRICS else number((text or "").replace(",", ""))
        if value is not None:
            key = (state.phase, state.run, groups.get("role"), metric)
            state.values[key] = value * rule.scale.get(metric, 1.0)


def _missing(state: _State, rules: Sequence[Output]) -> list[str]:
    required = [metric for rule in rules for metric in rule.require]
    seen = {(phase, run, metric) for phase, run, _, metric in state.values}
    phases = state.phases or sorted({(p, r) for p, r, _ in seen}, key=str)
    return [
        f"{metric} is missing" + (f" in phase {phase}, run {run}" if phase else "")
        for phase, run in phases
        for metric in required
        if (phase, run, metric) not in seen
    ]
