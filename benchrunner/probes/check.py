"""The answer of one check: is it so, how do we know, and which command would mend it."""

from __future__ import annotations

from dataclasses import dataclass

from benchrunner.model import Taint


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. ``ok`` is ``None`` when it cannot be told."""

    name: str
    """Words joined by hyphens; becomes the taint's name."""
    ok: bool | None
    evidence: str
    remedy_command: str = ""
    required: bool = True
    """Whether nothing works without it; otherwise numbers or some sources suffer."""
    purpose: str = ""
    packages: tuple[str, ...] = ()
    """Debian packages whose installation is the remedy."""


def taint_of(check: Check) -> Taint | None:
    """The reason for distrust that a failed check is; ``None`` when it did not fail."""
    if check.ok is not False:
        return None
    return Taint(check.name, check.evidence, check.remedy_command)
