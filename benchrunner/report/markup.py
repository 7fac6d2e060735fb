"""Text -> one markup, escaped: what would read as markup stays plain text. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Callable

_PUNCTUATION = re.compile(r"([\\`*_\[\]|~])")
_BLOCK_START = re.compile(r"^(\s*)([#+=>-]|\d+(?=[.)](?:\s|$)))")
_CODE = re.compile(r"`([^`]+)`")
_SHORTEST_FENCE = 3


def markdown_text(text: str) -> str:
    r"""Return text that Markdown, in a paragraph or a table cell, prints as it is.

    ``$`` would start a formula on GitHub, ``[[`` a page link in a wiki, ``|`` a new cell.

    >>> markdown_text("a_b | [[Page]] <script>")
    'a\\_b \\| \\[\\[Page\\]\\] &lt;script&gt;'
    """
    flat = " ".join(text.split())
    entities = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    escaped = _PUNCTUATION.sub(r"\\\1", entities)
    escaped = escaped.replace("://", ":&#47;/").replace("www.", "www&#46;").replace("@", "&#64;")
    return escaped.replace("$", "<span>$</span>")


def markdown_block(text: str) -> str:
    r"""Return text that may stand at the beginning of a line.

    >>> markdown_block("# no heading"), markdown_block("1. no list")
    ('\\# no heading', '1\\. no list')
    """
    escaped = markdown_text(text)
    if match := _BLOCK_START.match(escaped):
        start = match[2]
        kept = match.end()
        if start.isdigit():
            return f"{start}\\{escaped[kept:]}"
        return f"\\{start}{escaped[kept:]}"
    return escaped


def markdown_code(text: str) -> str:
    """Return a fenced code block; the fence is longer than any inside the text."""
    runs = [len(run) for run in re.findall(r"`+", text)]
    fence = "`" * max(_SHORTEST_FENCE, *(length + 1 for length in (0, *runs)))
    return f"{fence}\n{text.rstrip()}\n{fence}"


def with_code(text: str, plain: Callable[[str], str], code: Callable[[str], str]) -> str:
    """Return a workload's text: what it writes between backticks becomes code."""
    parts = _CODE.split(text)
    return "".join(code(part) if place % 2 else plain(part) for place, part in enumerate(parts))


def markdown_rich(text: str) -> str:
    r"""Return a workload's paragraph in Markdown.

    >>> print(markdown_rich("`Time` of a_b"))
    `Time` of a\_b
    """
    return with_code(f" {text}", _spaced, lambda code: f"`{code}`").strip()


def _spaced(text: str) -> str:
    """Escape, keeping the blanks at both ends that separate text from code."""
    start = " " if text[:1].isspace() else ""
    end = " " if text[-1:].isspace() and text.strip() else ""
    return f"{start}{markdown_text(text)}{end}"


def html_rich(text: str) -> Markup:
    """Return a workload's paragraph in HTML.

    >>> html_rich("`Time` < 1")
    Markup('<code>Time</code> &lt; 1')
    """
    return Markup(with_code(text, escape, lambda code: f"<code>{escape(code)}</code>"))  # noqa: S704
