"""Text to plain numbers and back: sizes, counts, bit rates, durations, and the figures of a page.

Pure. Names carry the unit that comes out. A text that means nothing is an error that says so.
"""

from __future__ import annotations

import math
import re

from benchrunner.errors import ConfigurationError

DASH = "-"
"""What a page prints where nothing was measured."""

_NUMBER = r"(?P<number>\d+(?:\.\d*)?|\.\d+)"
_SIZE = re.compile(rf"\s*{_NUMBER}\s*(?P<prefix>[KMGTP]?)(?:i?B)?\s*", re.IGNORECASE)
_COUNT = re.compile(rf"\s*{_NUMBER}\s*(?P<prefix>[KMGT]?)\s*", re.IGNORECASE)
_BIT_RATE = re.compile(
    rf"\s*{_NUMBER}\s*(?P<prefix>[KMGT]?)(?:bits?/s(?:ec)?|bps)\s*", re.IGNORECASE
)
_CLOCK = re.compile(r"\s*(?:(?P<hours>\d+):)?(?P<minutes>\d+):(?P<seconds>\d+(?:\.\d+)?)\s*")
_PART = re.compile(rf"\s*{_NUMBER}\s*(?P<unit>[a-z\u00b5\u03bc]+)", re.IGNORECASE)
_PLAIN = re.compile(rf"\s*{_NUMBER}\s*")
_POWER = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_SECONDS = {
    "ns": 1e-9,
    "nsec": 1e-9,
    "us": 1e-6,
    "usec": 1e-6,
    "\u00b5s": 1e-6,
    "\u03bcs": 1e-6,
    "ms": 1e-3,
    "msec": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_DIGITS = {"ops/s": 0, "KiB": 0, "bytes": 0, "count": 0, "io/s": 0, "runs": 0}
"""Decimals of a page by unit, where it is not one. A metric's own ``digits`` comes first."""


def parse_size_bytes(text: str) -> int:
    """Bytes of ``16MiB``, ``6.34 MB``, ``114K``, ``4096``.

    K, KB and KiB are all 1024 bytes: RocksDB, fio 2 and gflags print and read them so.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise _unreadable("size", text, "16MiB, 6.34 MB, 114K or 4096")
    factor = 1 << (10 * _POWER[match["prefix"].upper()])
    return round(float(match["number"]) * factor)


def parse_count(text: str) -> float:
    """A number of things, where K is a thousand: ``126K`` keys, ``1.5M`` operations."""
    match = _COUNT.fullmatch(text)
    if match is None:
        raise _unreadable("count", text, "126K, 1.5M or 4096")
    return float(match["number"]) * 1000.0 ** _POWER[match["prefix"].upper()]


def parse_bits_per_s(text: str) -> float:
    """Bits per second of ``15.1Gbit/s``; network prefixes are powers of a thousand."""
    match = _BIT_RATE.fullmatch(text)
    if match is None:
        raise _unreadable("bit rate", text, "15.1Gbit/s or 940 Mbit/s")
    return float(match["number"]) * 1000.0 ** _POWER[match["prefix"].upper()]


def parse_duration_s(text: str) -> float:
    """Seconds of ``00:04:43.188``, ``~2.5us``, ``1h30m``, ``90s`` or plain ``90``."""
    stripped = text.strip().removeprefix("~")
    if clock := _CLOCK.fullmatch(stripped):
        hours, minutes = int(clock["hours"] or 0), int(clock["minutes"])
        return hours * 3600 + minutes * 60 + float(clock["seconds"])
    if plain := _PLAIN.fullmatch(stripped):
        return float(plain["number"])
    total, position = 0.0, 0
    while position < len(stripped):
        part = _PART.match(stripped, position)
        factor = _SECONDS.get(part["unit"].lower()) if part else None
        if part is None or factor is None:
            raise _unreadable("duration", text, "00:04:43.188, 2.5us, 1h30m or 90s")
        total += float(part["number"]) * factor
        position = part.end()
    if not stripped:
        raise _unreadable("duration", text, "00:04:43.188, 2.5us, 1h30m or 90s")
    return round(total, 12)


def format_size(size_bytes: int) -> str:
    """The shortest exact text that ``parse_size_bytes`` reads back: ``16MiB``, ``1000``."""
    for prefix in "PTGMK":
        unit = 1024 ** _POWER[prefix]
        if size_bytes and size_bytes % unit == 0:
            return f"{size_bytes // unit}{prefix}iB"
    return str(size_bytes)


def about_size(size_bytes: float) -> str:
    """A size for people, two significant digits at least: ``1.5 GiB``, ``380 MiB``, ``12 bytes``.

    >>> about_size(162_000_000_000), about_size(1 << 20), about_size(900)
    ('151 GiB', '1.0 MiB', '900 bytes')
    """
    for prefix in "PTGMK":
        amount = size_bytes / 1024 ** _POWER[prefix]
        if amount >= 1:
            digits = 1 if amount < 9.95 else 0
            return f"{amount:.{digits}f} {prefix}iB"
    return f"{size_bytes:.0f} bytes"


def format_duration_s(seconds: float) -> str:
    """Clock text with milliseconds, as RocksDB prints stalls: ``00:04:43.188``."""
    milliseconds = round(seconds * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{rest // 1000:02d}.{rest % 1000:03d}"


def format_value(value: float | None, unit: str, digits: int | None = None) -> str:
    """A page's figure: decimals by ``digits``, else by unit; a dash where nothing was measured.

    Seconds with three digits are written as a clock: that is how pages print stall time.
    """
    if value is None or not math.isfinite(value):
        return DASH
    if unit == "s" and digits == 3:
        return format_duration_s(value)
    decimals = _DIGITS.get(unit, 1) if digits is None else digits
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _unreadable(what: str, text: str, examples: str) -> ConfigurationError:
    return ConfigurationError(f"{text!r} is not a {what}", f"write it like {examples}")
