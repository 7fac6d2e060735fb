"""What one benchmark found, against its target, as a row for people and as plain data."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.pairs import Estimate


@dataclass(frozen=True)
class Target:
    """Where a median is to lie."""

    at_least: float | None = None
    at_most: float | None = None

    def text(self, unit: str) -> str:
        """``<= 80 ms``."""
        unit = f" {unit}" if unit else ""
        if self.at_least is None:
            return f"<= {number(self.at_most or 0.0)}{unit}"
        if self.at_most is None:
            return f">= {number(self.at_least)}{unit}"
        return f"{number(self.at_least)} to {number(self.at_most)}{unit}"

    def verdict(self, found: Estimate) -> str:
        """Met or missed when the whole interval says so; else what its median says, and only it."""
        if found.confidence is None and found.count > 1:
            return "too few pairs to say"
        if self._holds(found.median):
            sure = self._holds(found.low) and self._holds(found.high)
            return "met" if sure else "met by the median, not by the whole interval"
        # Beyond the target as a whole: on one side of it, and not around it.
        below = self.at_least is not None and found.high < self.at_least
        above = self.at_most is not None and found.low > self.at_most
        return "missed" if below or above else "missed by the median, not by the whole interval"

    def _holds(self, value: float) -> bool:
        low = self.at_least is None or value >= self.at_least
        return low and (self.at_most is None or value <= self.at_most)


@dataclass(frozen=True)
class Figure:
    """One figure: a median with its interval, its ratio to something bare, its target."""

    name: str
    value: Estimate
    unit: str
    target: Target | None = None
    ratio: Estimate | None = None
    bare: str = ""
    """What the other side of the pairs is."""
    note: str = ""

    def row(self) -> str:
        """Name, value, ratio, target on one line."""
        value = f"{spread(self.value)} {self.unit}".rstrip()
        ratio = f"ratio {spread(self.ratio)} to {self.bare}" if self.ratio else ""
        note = f"({self.note})" if self.note else ""
        target = "no target"
        if self.target is not None:
            verdict = self.target.verdict(self.value)
            target = f"target {self.target.text(self.unit)}: {verdict}"
        return f"{self.name:<26} {value:<34} " + "  ".join(filter(None, (ratio, note, target)))

    def data(self) -> Mapping[str, Any]:
        """The same for programs."""
        verdict = self.target.verdict(self.value) if self.target else None
        return {**asdict(self), "verdict": verdict}


def spread(found: Estimate) -> str:
    """``61.2 [60.8, 61.9]``; a mere range has dots: ``61.2 [60.8 .. 61.9]``."""
    if found.count == 1:
        return number(found.median)
    between = ", " if found.confidence is not None else " .. "
    return f"{number(found.median)} [{number(found.low)}{between}{number(found.high)}]"


def number(value: float) -> str:
    """Four digits that count, more where the number is larger than that.

    >>> number(0.99871), number(61.234), number(1234567.8)
    ('0.9987', '61.23', '1,234,568')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def machine(directory: Path) -> str:
    """Where the figures were taken, so that they can be quoted."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in _lines("/proc/cpuinfo")
            if "model name" in line
        ),
        platform.machine(),
    )
    memory_kib = int(_lines("/proc/meminfo")[0].split()[1])
    cores = len(os.sched_getaffinity(0))
    return (
        f"{model}, {cores} processors, {memory_kib / 2**20:.1f} GiB; {platform.system()} "
        f"{platform.release()}; Python {platform.python_version()}; {directory} is "
        f"{_file_system(directory)}; load {os.getloadavg()[0]:.1f}"
    )


def _file_system(directory: Path) -> str:
    """The type of the file system under a folder: that of the longest mount point above it."""
    mounts = {fields[1]: fields[2] for fields in map(str.split, _lines("/proc/self/mounts"))}
    above = (str(each) for each in (directory.resolve(), *directory.resolve().parents))
    return next((mounts[each] for each in above if each in mounts), "unknown")


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
