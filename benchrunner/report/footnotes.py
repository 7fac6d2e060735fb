"""Numbered footnotes of one page: the same text always gets the same number."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Footnotes:
    """Collects footnotes in the order in which the page first needs them."""

    texts: list[str] = field(default_factory=list)

    def number(self, text: str) -> int:
        """Return the number of ``text``, adding it when it is new.

        >>> notes = Footnotes()
        >>> notes.number("a"), notes.number("b"), notes.number("a")
        (1, 2, 1)
        """
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1
