"""The nearest valid name to a mistyped one, for error messages. Pure."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that reads most like a name, if any comes close; case counts little.

    >>> nearest("numkeys", ["NUM_KEYS", "KEY_SIZE"])
    'NUM_KEYS'
    """
    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    close = difflib.get_close_matches(name.casefold(), by_folded, 1, 0.6)
    return by_folded[close[0]] if close else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """The end of a message about an unknown name.

    >>> did_you_mean("rocksdb-falsh", ["rocksdb-flash"])
    "; did you mean 'rocksdb-flash'?"
    >>> did_you_mean("xyz", ["rocksdb-flash"])
    ''
    """
    close = nearest(name, candidates)
    return f"; did you mean {close!r}?" if close else ""


def listed(candidates: Iterable[str]) -> str:
    """All candidates, for a hint.

    >>> listed(["b", "a"]), listed([])
    ('one of a, b', 'there is none')
    """
    names = sorted(candidates)
    return f"one of {', '.join(names)}" if names else "there is none"
