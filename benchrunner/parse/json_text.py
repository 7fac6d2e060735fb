"""JSON inside a tool's output: the document, and its values as measurements take them. Pure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from benchrunner.parse.figure import number
from benchrunner.parse.text import Lines

if TYPE_CHECKING:
    from benchrunner.parse.text import Text

MAX_CHARACTERS = 64 << 20
"""JSON must be held as a whole to be read; a thousand jobs of fio take about 10 MB."""


def read_whole(text: Text) -> tuple[list[str], str]:
    """The complete lines, and the text after the last line end; no more than can be held."""
    reader = Lines(text)
    lines, size = [], 0
    for line in reader:
        size += len(line) + 1
        if size > MAX_CHARACTERS:
            break
        lines.append(line)
    return lines, reader.rest


def find_document(text: str, key: str, kind: type) -> dict[str, Any] | None:
    """The first JSON object at the beginning of a line whose ``key`` holds such a value."""
    decoder = json.JSONDecoder(parse_int=float)
    for start in re.finditer(r"^\{", text, re.MULTILINE):
        try:
            document, _ = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict) and isinstance(document.get(key), kind):
            return document
    return None


def value_at(document: object, *path: str) -> float | None:
    """The finite, non-negative number that lies there; ``None`` when there is none."""
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    if isinstance(document, bool) or not isinstance(document, int | float):
        return None
    return number(repr(float(document)))


def records_at(document: object, key: str) -> list[dict[str, Any]]:
    """The objects in a list that lies there; empty when there is none."""
    value = document.get(key) if isinstance(document, dict) else None
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
