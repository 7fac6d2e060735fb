"""The footnotes of an outcome: why numbers are missing, and why others are doubtful. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchrunner.report.footnotes import Footnotes
    from benchrunner.report.lookup import Outcome


def marks_of(outcome: Outcome, notes: Footnotes) -> tuple[int, ...]:
    """Return the numbers of the notes, each told once on a page."""
    texts = [_sentence(text) for text in outcome.failures]
    for taint in outcome.taints:
        remedy = f" Remedy: {_sentence(taint.remedy)}" if taint.remedy else ""
        texts.append(f"{taint.name}: {_sentence(taint.evidence)}{remedy}")
    return tuple(notes.number(text) for text in texts)


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."
