"""What a long operation tells whoever watches it: a kind, a sentence for people, data for programs.

The pipeline and its stages emit events; the command line draws bars, prints lines or writes JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal[
    "plan", "build", "build-progress", "build-end", "host", "trial", "preparation", "step",
    "service", "tick", "step-end", "trial-end", "note", "warning", "page", "end",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. ``text`` is complete without ``data``, and the other way round."""

    kind: Kind
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)


Observer = Callable[[Event], None]


def ignore(_event: Event) -> None:
    """An observer that does not look."""
