"""Which version satisfies which condition: ``>=6.19``, since 7.0, until 6.29. Pure.

A version that is not a number (``main``, a commit) counts as newer than every number.
"""

from __future__ import annotations

import re

from benchrunner.errors import ConfigurationError
from benchrunner.versions import Version

_CONDITION = re.compile(r"\s*(?P<sign>>=|<=|==|>|<)\s*(?P<version>\d+(?:\.\d+)*)\s*")


def check_requirement(requirement: str, *, where: str) -> None:
    """Makes sure that a requirement can be read.

    Raises:
        ConfigurationError: It is not conditions like ``>=6.19`` separated by commas.
    """
    for part in filter(None, requirement.split(",")):
        if _CONDITION.fullmatch(part) is None:
            raise ConfigurationError(
                f"{where}: {requirement!r} is not a condition on versions",
                "write it like '>=6.19' or '>=6.19, <7.0'",
            )


def satisfies(version: str, requirement: str) -> bool:
    """Whether a version meets every condition of a requirement that ``check_requirement`` passes.

    A condition speaks of as many numbers as it has: 7.0.3 meets ``<=7.0``.

    >>> satisfies("7.0.3", ">=6.19, <=7.0"), satisfies("6.11.4", ">=6.19")
    (True, False)
    """
    conditions = [_CONDITION.fullmatch(part) for part in filter(None, requirement.split(","))]
    return all(
        _holds(version, match["sign"], match["version"])
        for match in conditions
        if match is not None
    )


def within(version: str, since: str | None, until: str | None) -> bool:
    """Whether a version lies between two others, both included.

    >>> within("6.21.3", None, "6.21"), within("6.22.1", None, "6.21"), within("7.2.2", "7.0", None)
    (True, False, True)
    """
    after = since is None or _holds(version, ">=", since)
    return after and (until is None or _holds(version, "<=", until))


def _holds(version: str, sign: str, bound: str) -> bool:
    limit, found = Version.parse(bound), Version.parse(version)
    if limit is None or found is None:
        return sign in (">=", ">") if found is None else True
    length = len(limit.numbers)
    numbers = (found.numbers + (0,) * length)[:length]
    return {
        ">=": numbers >= limit.numbers,
        "<=": numbers <= limit.numbers,
        "==": numbers == limit.numbers,
        ">": numbers > limit.numbers,
        "<": numbers < limit.numbers,
    }[sign]
