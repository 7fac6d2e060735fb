"""Which version knows which flag, and what becomes of a flag that one does not know.

Pure. In: flags asked for, a version's knowledge, a workload's rules. Out: one note for each flag:
given, translated, or dropped with a reason. What no version knows is a typing mistake: refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from benchrunner.compatibility import within
from benchrunner.errors import ConfigurationError
from benchrunner.expressions import expand, to_text
from benchrunner.model import FlagNote
from benchrunner.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchrunner.definitions import Rule, Scalar, Tool


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What one version's program accepts: its own ``--help`` if asked, else the matrix's word."""

    version: str
    listed: frozenset[str] | None = None
    """Flags of the binary's ``--help``; ``None`` when there is no binary yet (a dry run)."""
    matrix: Mapping[str, Any] = field(default_factory=dict)
    """``{"range": [first, last], "flags": {flag: {"first": "6.10", "last": "11.8"}}}``."""

    def knows(self, flag: str) -> bool | None:
        """Whether this version accepts a flag; ``None`` when nothing is known about any flag."""
        if self.listed is not None:
            return flag in self.listed
        if not self.matrix:
            return None
        entry = self.matrix["flags"].get(flag)
        if entry is None:
            return False
        oldest, newest = self.matrix.get("range", (None, None))
        since = None if entry["first"] == oldest else entry["first"]
        until = None if entry["last"] == newest else entry["last"]
        return within(self.version, since, until)

    def everyone(self) -> frozenset[str]:
        """Flags that any version is known to accept."""
        return frozenset(self.matrix.get("flags", ())) | (self.listed or frozenset())

    def versions(self, flag: str) -> str:
        """Which versions accept a flag, in words.

        >>> Knowledge("7.2", matrix={"flags": {"x": {"first": "7.4", "last": "7.9"}}}).versions("x")
        'known by 7.4 to 7.9'
        """
        entry = self.matrix.get("flags", {}).get(flag)
        if entry is None:
            return "no list says which versions do"
        return f"known by {entry['first']} to {entry['last']}"


@dataclass(frozen=True, slots=True)
class Policy:
    """What a workload says about flags that a version does not know."""

    rules: Sequence[Rule]
    drop_unknown: bool
    pinned: frozenset[str]
    """Flags that only fix a default: where there is no flag, there is nothing to fix."""
    where: str
    """The step and workload, for messages."""
    names: Mapping[str, Scalar] = field(default_factory=dict)
    """What values of rules may use, besides ``asked``."""


def decide(
    asked: Mapping[str, Scalar], tool: Tool, knowledge: Knowledge, policy: Policy
) -> tuple[FlagNote, ...]:
    """What becomes of every flag asked for, in order.

    Raises:
        ConfigurationError: A flag is refused, or no version knows it.
    """
    notes = []
    for flag, value in asked.items():
        rule = _rule_for(flag, knowledge, policy.rules)
        if rule is not None:
            notes.append(_by_rule(rule, value, asked, tool, knowledge, policy))
        elif knowledge.knows(flag) is False:
            notes.append(_unknown(flag, value, knowledge, policy))
        else:
            notes.append(_given(flag, value, tool))
    return tuple(notes)


def written(flag: str, value: Scalar, tool: Tool) -> str | None:
    """A flag as the tool reads it; ``None`` where only leaving it out says "false"."""
    if tool.flag_style == "long" and isinstance(value, bool):
        return f"--{flag}" if value else None
    return f"--{flag}={to_text(value)}"


def _given(flag: str, value: Scalar, tool: Tool) -> FlagNote:
    text = written(flag, value, tool)
    if text is None:
        return FlagNote(flag, to_text(value), None, "dropped", "left out: that is how it is false")
    return FlagNote(flag, to_text(value), text, "given")


def _rule_for(flag: str, knowledge: Knowledge, rules: Sequence[Rule]) -> Rule | None:
    """The first rule that speaks of a flag in this version.

    ``set`` speaks of it in any case, the others only where the version does not know it; a rule
    with bounds is believed when nothing is known.
    """
    known = knowledge.knows(flag)
    for rule in rules:
        if rule.flag != flag or not within(knowledge.version, rule.since, rule.until):
            continue
        bounded = rule.since is not None or rule.until is not None
        if rule.action == "set" or known is False or (known is None and bounded):
            return rule
    return None


def _by_rule(
    rule: Rule,
    value: Scalar,
    asked: Mapping[str, Scalar],
    tool: Tool,
    knowledge: Knowledge,
    policy: Policy,
) -> FlagNote:
    text = to_text(value)
    because = rule.reason or f"the workload's rule for {knowledge.version}"
    if rule.action == "refuse":
        raise ConfigurationError(
            f"{policy.where}: {knowledge.version} cannot run with --{rule.flag}={text}: {because}",
            f"leave {knowledge.version} out, or the flag",
        )
    if rule.action == "drop":
        return FlagNote(rule.flag, text, None, "dropped", because)
    target = rule.to or rule.flag
    if target != rule.flag and target in asked:
        return FlagNote(rule.flag, text, None, "dropped", f"--{target} is given itself")
    if knowledge.knows(target) is False:
        return replace(_unknown(target, value, knowledge, policy), flag=rule.flag)
    where = f"{policy.where}, rule.{rule.flag}"
    names = {**policy.names, "asked": value}
    told = value if rule.value is None else expand(rule.value, names, where=where)
    given = written(target, told, tool)
    return FlagNote(rule.flag, text, given, "translated", because)


def _unknown(flag: str, value: Scalar, knowledge: Knowledge, policy: Policy) -> FlagNote:
    text, version = to_text(value), knowledge.version
    candidates = knowledge.everyone() | {rule.flag for rule in policy.rules}
    near = did_you_mean(flag, candidates) if flag not in candidates else ""
    if knowledge.matrix and flag not in candidates:
        raise ConfigurationError(
            f"{policy.where}: no version knows --{flag}{near}",
            "correct the flag's name in the workload",
        )
    versions = knowledge.versions(flag)
    if flag in policy.pinned or policy.drop_unknown:
        return FlagNote(flag, text, None, "dropped", f"{version} does not know it; {versions}")
    raise ConfigurationError(
        f"{policy.where}: {version} does not know --{flag}={text}; {versions}{near}",
        f'add a [[rule]] for {flag} to the workload, or unknown_flags = "drop"',
    )
