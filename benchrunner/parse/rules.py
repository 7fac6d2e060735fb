"""Output read by a tool's TOML rules: ``split`` starts a phase, ``pattern`` names its values.

Pure. For tools whose lines a regular expression can say; others have a parser of their own. A line
that a ``problem`` rule knows (an error, a refused connection) makes the output invalid.
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
from benchrunner.units import parse_bits_per_s, parse_count, parse_duration_s, parse_size_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchrunner.definitions import Output
    from benchrunner.parse.text import Text

PARSER_VERSION = 2
_NOT_METRICS = frozenset({"phase", "role"})
_READERS: Mapping[str, Callable[[str], float]] = {
    "size": parse_size_bytes,
    "count": parse_count,
    "bits": parse_bits_per_s,
    "duration": parse_duration_s,
}


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    use: str
    """``split``, ``pattern`` or ``problem``."""
    read: Mapping[str, str]
    scale: Mapping[str, float]

    def value(self, metric: str, text: str) -> float | None:
        """What a matched text stands for; ``None`` when it is no such number."""
        if metric not in self.read:
            value = number(text.replace(",", ""))
        else:
            try:
                value = number(repr(float(_READERS[self.read[metric]](text))))
            except (ConfigurationError, OverflowError):
                return None
        if value is None or metric not in self.scale:
            return value
        # 9.97 ms is 9.97 again, not 9.969999999999999 of having been seconds in between.
        return float(f"{value * self.scale[metric]:.15g}")


@dataclass(slots=True)
class _State:
    phase: str | None = None
    run: int = 1
    runs: Counter[str] = field(default_factory=Counter)
    values: dict[tuple[str | None, int, str | None, str], float] = field(default_factory=dict)
    phases: list[tuple[str | None, int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def start(self, phase: str) -> None:
        """A phase begins; its second occurrence is its second run."""
        self.runs[phase] += 1
        self.phase, self.run = phase, self.runs[phase]
        self.phases.append((phase, self.run))


def parse_rules(stdout: Text, rules: Sequence[Output], stderr: Text = ()) -> Parsed:
    """The values that the rules find, line by line; the last value of a metric in a phase counts.

    The end of a text that is no whole line may be cut in the middle of a number: a rule is believed
    there only when something follows what it matched.

    Raises:
        OutputNotRecognisedError: no rule matched any line.
        ConfigurationError: a rule's regular expression is wrong.
    """
    compiled = [_compiled(rule) for rule in rules]
    state = _State()
    for text in (stdout, stderr):
        lines = Lines(text)
        for line in lines:
            for rule in compiled:
                if match := rule.pattern.search(line):
                    _take(state, rule, match)
        for rule in compiled:
            match = rule.pattern.search(lines.rest)
            if match and (match.end() < len(lines.rest) or rule.use == "problem"):
                _take(state, rule, match)
    if not state.values and not state.problems:
        raise OutputNotRecognisedError(
            f"none of the tool's {len(rules)} output rules found a value in the text",
            "compare the patterns in the tool's TOML file with the stored stdout",
        )
    measurements = tuple(Measurement(*key, value) for key, value in state.values.items())
    missing = _missing(state, rules) if state.values else []
    return Parsed(measurements, problems=(*state.problems, *missing))


def _compiled(rule: Output) -> _Rule:
    use = next((use for use in ("split", "pattern", "problem") if getattr(rule, use)), "pattern")
    text = getattr(rule, use)
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ConfigurationError(
            f"output rule {text!r} is not a regular expression: {error}",
            "write it as a TOML literal string, in single quotes",
        ) from error
    return _Rule(pattern, use, rule.read, rule.scale)


def _take(state: _State, rule: _Rule, match: re.Match[str]) -> None:
    groups = match.groupdict()
    if rule.use == "problem":
        if (complaint := match[0].strip()) not in state.problems:
            state.problems.append(complaint)
    elif rule.use == "split":
        state.start(groups.get("phase") or match[0].strip())
    elif groups.get("phase"):
        state.phase, state.run = groups["phase"], max(1, state.runs[groups["phase"]])
    for metric, text in groups.items():
        value = rule.value(metric, text) if text and metric not in _NOT_METRICS else None
        if value is not None:
            state.values[state.phase, state.run, groups.get("role"), metric] = value


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
