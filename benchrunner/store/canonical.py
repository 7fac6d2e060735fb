"""One text for one value: JSON as stored, keys of axes, versions that sort. Pure functions."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from benchrunner.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping


def to_json(value: Any) -> str:
    """JSON without spaces, ASCII only; ``nan`` and infinity do not exist in it.

    Raises:
        StoreError: The value holds something else than plain data.
    """
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise StoreError(f"a value cannot be stored as JSON: {error}") from error


def axes_key(axes: Mapping[str, Any]) -> str:
    """The same text for the same axis values, in whatever order they come.

    >>> axes_key({"threads": 16, "cache": "1G"})
    '{"cache":"1G","threads":16}'
    >>> axes_key({})
    '{}'
    """
    return to_json(dict(sorted(axes.items())))


def version_key(version: str) -> str:
    """A text whose byte order is the order of versions; a suffix comes before the release.

    >>> sorted(["7.10.2", "7.2.2", "7.10", "8.0.0-rc1", "8.0.0"], key=version_key)
    ['7.2.2', '7.10', '7.10.2', '8.0.0-rc1', '8.0.0']
    """
    padded = re.sub(r"\d+", lambda digits: digits[0].zfill(10), version)
    return padded.replace("-", "!") + "#"
