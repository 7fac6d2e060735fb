"""How charts look: colours, marks, hatches and texts that all kinds of them share. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchrunner.report.view import SeriesView

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, told apart by colour-blind readers; their yellow is lost on white."""
PALE = ("#CFE6F5", "#F9D9C2", "#C9EBDD", "#F5E0EC", "#FBE8BF", "#DDF0FB", "#D9D9D9")
"""The same, light enough for a hatch in the full colour to be seen on them."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", "*", "h", ">", "p")
DASHES: tuple[Any, ...] = ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
HATCHES = ("", "////", "....", "xxxx", "----", "++++")
HEADROOM = 1.12
WHOLE_FROM = 100


def color_of(place: int) -> str:
    """Return the colour of a line."""
    return PALETTE[place % len(PALETTE)]


def face_of(line: SeriesView, *, tainted: bool) -> str:
    """Return what fills a column: its colour, pale below a hatch, nothing when it is in doubt."""
    if tainted:
        return "white"
    faces = PALE if line.dash % len(HATCHES) else PALETTE
    return faces[line.color % len(faces)]


def tick(value: float) -> str:
    """Return the text of a tick: whole from a hundred on, else three digits."""
    return f"{value:,.0f}" if value >= WHOLE_FROM else f"{value:.3g}"
