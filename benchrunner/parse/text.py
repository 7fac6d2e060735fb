"""Raw output as lines: large chunks in, lists of lines out, in bounded memory.

A carriage return ends a line too, because progress is printed with it. Text after the last line
end is kept apart in ``rest``: it may be cut in the middle of a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Text = Iterable[str] | TextIO

CHUNK_CHARACTERS = 1 << 18
MAX_LINE_CHARACTERS = 1 << 16
"""No line that a tool prints is longer; what is longer is dropped up to its end."""


class Lines:
    """The lines of a text, in batches; ``rest`` holds the unterminated end after the last batch.

    The source is a text file or an iterable of pieces that, put together, are the text.
    """

    def __init__(self, source: Text) -> None:
        self._source = source
        self.rest = ""

    def batches(self) -> Iterator[list[str]]:
        """Lists of complete lines without their ends."""
        carry = ""
        skipping = False
        for piece in _pieces(self._source):
            lines = (carry + piece).replace("\r", "\n").split("\n")
            carry = lines.pop()
            if skipping and lines:
                del lines[0]
                skipping = False
            if skipping or len(carry) > MAX_LINE_CHARACTERS:
                carry, skipping = "", True
            if lines:
                yield lines
        self.rest = carry

    def __iter__(self) -> Iterator[str]:
        for batch in self.batches():
            yield from batch


def _pieces(source: Text) -> Iterator[str]:
    read = getattr(source, "read", None)
    if read is None:
        yield from _grouped(source)
        return
    while piece := read(CHUNK_CHARACTERS):
        yield piece


def _grouped(source: Iterable[str]) -> Iterator[str]:
    """Pieces joined to chunks: one split per chunk instead of one per line."""
    pieces: list[str] = []
    length = 0
    for piece in source:
        pieces.append(piece)
        length += len(piece)
        if length >= CHUNK_CHARACTERS:
            yield "".join(pieces)
            pieces, length = [], 0
    if pieces:
        yield "".join(pieces)
