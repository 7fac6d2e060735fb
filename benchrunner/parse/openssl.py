"""The table of ``openssl speed``, by column title, or its ``-mr`` lines. Pure.

A phase is an algorithm; with several block sizes in one table, each is a role. openssl counts
thousands of bytes per second of its own CPU time (with ``-elapsed``: of the clock's).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from benchrunner.errors import OutputNotRecognisedError
from benchrunner.model import Measurement, Parsed
from benchrunner.parse.figure import number
from benchrunner.parse.text import Lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchrunner.parse.text import Text

PARSER_VERSION = 1
_MIB = 1024.0 * 1024.0
_HEADING = re.compile(r"type\s+(?P<titles>\d+ bytes.*)")
_TITLE = re.compile(r"(\d+) bytes")
_CELL = re.compile(r"([\d.]+)k")
_ROW = re.compile(r"(?P<name>\S.*?)\s+(?P<cells>[\d.]+k(?:\s+[\d.]+k)*)\s*$")
_MACHINE_HEADING = re.compile(r"\+H(?P<sizes>(?::\d+)+)$")
_MACHINE_ROW = re.compile(r"\+F:\d+:(?P<name>[^:]+)(?P<cells>(?::[\d.]+)+)$")
_VERSION = re.compile(r"(?:version: |OpenSSL )(?P<version>\d\S*)")


def parse_openssl(stdout: Text, stderr: Text = ()) -> Parsed:
    """Rates by algorithm and block size.

    Raises:
        OutputNotRecognisedError: there is no row under a heading.
    """
    found: list[Measurement] = []
    facts: dict[str, str] = {}
    sizes: list[str] = []
    for line in Lines(stdout):
        if heading := _HEADING.match(line):
            sizes = _TITLE.findall(heading["titles"])
        elif heading := _MACHINE_HEADING.match(line):
            sizes = heading["sizes"].split(":")[1:]
        elif version := _VERSION.match(line):
            facts.setdefault("version", version["version"])
        elif row := _MACHINE_ROW.match(line):
            found += _rates(row["name"], sizes, row["cells"].split(":")[1:], 1.0)
        elif row := _ROW.match(line):
            found += _rates(row["name"], sizes, _CELL.findall(row["cells"]), 1000.0)
    if not found:
        complaint = next((line for line in Lines(stderr) if line.startswith("speed: ")), None)
        raise OutputNotRecognisedError(
            complaint.replace("speed", "openssl speed", 1)
            if complaint
            else "the text has no table of openssl speed",
            "openssl list -digest-algorithms prints what it can measure",
        )
    return Parsed(tuple(found), facts=facts)


def _rates(
    name: str, sizes: Sequence[str], cells: Sequence[str], factor: float
) -> Iterator[Measurement]:
    """A row's cells; none of them when there are not as many as columns."""
    if len(sizes) != len(cells):
        return
    for size, cell in zip(sizes, cells, strict=True):
        role = f"{size} bytes" if len(sizes) > 1 else None
        rate, block_bytes = number(cell), number(size)
        if rate is not None:
            yield Measurement(name, 1, role, "hash_mb_per_sec", rate * factor / _MIB)
        if block_bytes is not None:
            yield Measurement(name, 1, role, "block_bytes", block_bytes)
