"""The output of ``facts.sh`` as a value that can be asked for files and sections. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SECTION = "=== "


@dataclass(frozen=True, slots=True)
class Output:
    """What a host printed: files by path, sections by name; both as lines."""

    files: Mapping[str, tuple[str, ...]]
    sections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def line(self, path: str) -> str | None:
        """First line of a file without blanks around it; ``None`` if it is missing or empty."""
        lines = self.files.get(path, ())
        return (lines[0].strip() or None) if lines else None

    def number(self, path: str) -> int | None:
        """A file that holds one whole number."""
        return whole_number(self.line(path))

    def section(self, name: str) -> str | None:
        """First line of a section that is not empty."""
        return next((line.strip() for line in self.sections.get(name, ()) if line.strip()), None)

    def matching(self, pattern: str) -> dict[str, str]:
        """First lines of the files whose whole path matches, by the pattern's only group."""
        found = {}
        for path in self.files:
            match = re.fullmatch(pattern, path)
            line = self.line(path)
            if match and line is not None:
                found[match[1]] = line
        return found


def read_output(text: str) -> Output:
    r"""Splits what ``facts.sh`` prints.

    >>> output = read_output("/proc/a:1\n/proc/a:2\n\n=== uname\nLinux\n")
    >>> output.files, output.section("uname")
    ({'/proc/a': ('1', '2')}, 'Linux')
    """
    head, *rest = re.split(rf"^{_SECTION}", text, flags=re.MULTILINE)
    sections = {}
    for part in rest:
        name, _, body = part.partition("\n")
        sections[name.strip()] = tuple(body.splitlines())
    return Output(read_files(head.splitlines()), sections)


def read_files(lines: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Lines ``path:content`` by path; others are left out."""
    files: dict[str, list[str]] = {}
    for line in lines:
        path, colon, content = line.partition(":")
        if colon and path.startswith("/"):
            files.setdefault(path, []).append(content)
    return {path: tuple(content) for path, content in files.items()}


def whole_number(text: str | None) -> int | None:
    """The text as a whole number, ``None`` when it is not one.

    >>> whole_number("42"), whole_number("max"), whole_number(None)
    (42, None, None)
    """
    return int(text) if text is not None and re.fullmatch(r"-?\d+", text) else None


def chosen(text: str | None) -> str | None:
    """The choice in brackets: ``always [madvise] never`` is ``madvise``; else the text itself.

    >>> chosen("always [madvise] never"), chosen("none")
    ('madvise', 'none')
    """
    match = re.search(r"\[(\S+)\]", text or "")
    return match[1] if match else text


def yes_or_no(text: str | None) -> bool | None:
    """A switch of the kernel's: 1, Y are on, 0, N are off, all else is unknown."""
    return {"1": True, "Y": True, "0": False, "N": False}.get(text or "")
