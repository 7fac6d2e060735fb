"""Anchors of headings, made as GitHub makes them, so that one set serves every markup."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


def github_anchor(heading: str) -> str:
    """Return the anchor that GitHub gives a heading the first time it occurs.

    >>> github_anchor("Test 4b. Reverse Range Scan (benchmark.sh revrange)")
    'test-4b-reverse-range-scan-benchmarksh-revrange'
    """
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@dataclass(slots=True)
class Anchors:
    """Hands out anchors in page order; a repeated heading gets ``-1``, ``-2`` ..."""

    used: dict[str, int] = field(default_factory=dict)

    def take(self, heading: str) -> str:
        """Return the anchor of the next occurrence of ``heading``."""
        anchor = github_anchor(heading)
        count = self.used.get(anchor, 0)
        self.used[anchor] = count + 1
        return f"{anchor}-{count}" if count else anchor
