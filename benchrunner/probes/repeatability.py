"""The A/A score of a host: the same fixed work again and again, labelled A and B in turn.

A and B do the same, so whatever differs between them is the host's doing: no comparison on this
host can see less. The statistics are pure; running takes a transport and about half a minute.
"""

from __future__ import annotations

import random
import re
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchrunner.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchrunner.transports import Transport

KINDS = ("cpu", "memory", "disk")
_RESAMPLES = 2000
_CONFIDENCE = 0.95
_LIMIT_S = 300.0
_FIRST_AMOUNT = {"cpu": 300_000, "memory": 8, "disk": 32}
_LARGEST_AMOUNT = {"cpu": 10**9, "memory": 10**5, "disk": 10**5}

# Arguments: folder, then kind:amount in the order to run. Prints "kind seconds" for each. Programs
# that every host has; starting one costs about a millisecond, which all of them pay alike.
_WORK = r"""
LC_ALL=C
export LC_ALL
file=$1/.benchrunner-probe-score.$$
shift
trap 'rm -f -- "$file"' EXIT
trap 'exit 1' HUP INT TERM
for work; do
  amount=${work#*:}
  case $work in
    cpu:*) set -- awk "BEGIN { for (i = 0; i < $amount; i++) x += i * i % 7 }" ;;
    memory:*) set -- dd if=/dev/zero of=/dev/null bs=64M "count=$amount" ;;
    disk:*)
      set -- dd if=/dev/zero "of=$file" bs=4k "count=$amount" oflag=direct,dsync conv=notrunc ;;
  esac
  began=$(date +%s%N)
  if "$@" >/dev/null 2>&1; then
    ended=$(date +%s%N)
    printf '%s %s\n' "${work%%:*}" "$((ended - began))"
  fi
done
"""


@dataclass(frozen=True, slots=True)
class Repeatability:
    """How well one kind of work repeats."""

    spread_pct: float
    """Standard deviation of all samples over their mean (coefficient of variation)."""
    ratio: float
    """Median time of A over median time of B: 1 on a quiet host."""
    low: float
    high: float
    """95 % bootstrap interval of the ratio."""
    samples: tuple[float, ...]
    """Seconds, in the order they were taken."""

    @property
    def within_pct(self) -> float:
        """How far the ratio can stray from 1, in per cent: what cannot be seen on this host."""
        return max(abs(self.low - 1), abs(self.high - 1)) * 100


@dataclass(frozen=True, slots=True)
class AaScore:
    """The A/A score; a kind that cannot be run on the host (O_DIRECT on tmpfs) is ``None``."""

    cpu: Repeatability | None
    memory: Repeatability | None
    disk: Repeatability | None

    @property
    def kinds(self) -> Mapping[str, Repeatability]:
        """Those that could be run, by name."""
        every = {"cpu": self.cpu, "memory": self.memory, "disk": self.disk}
        return {name: one for name, one in every.items() if one is not None}

    def sentence(self) -> str:
        """What a user reads.

        >>> AaScore(Repeatability(1.0, 1.0, 0.99, 1.005, (1.0,) * 20), None, None).sentence()
        'numbers on this host repeat within 1.0 % (cpu 1.0 %): with 10 runs a side, differences \
below that cannot be seen'
        """
        kinds = self.kinds
        if not kinds:
            return "how well numbers repeat on this host cannot be told: none of the work ran"
        each = ", ".join(f"{name} {one.within_pct:.1f} %" for name, one in kinds.items())
        worst = max(one.within_pct for one in kinds.values())
        runs = min(len(one.samples) for one in kinds.values()) // 2
        return (
            f"numbers on this host repeat within {worst:.1f} % ({each}): with {runs} runs a side, "
            "differences below that cannot be seen"
        )


def aa_score(
    transport: Transport, directory: str, *, rounds: int = 20, sample_s: float = 0.2,
    note: Callable[[str], None] = lambda _text: None,
) -> AaScore:  # fmt: skip
    """Runs the work; takes about ``rounds`` x 6 x ``sample_s`` seconds.

    Args:
        transport: The host, which nobody else should be using.
        directory: Where databases will be; a file of at most 400 MB is written and deleted there.
        rounds: Pairs of A and B of each kind; more make the interval narrower.
        sample_s: How long one sample should take; the amount of work is found by trying.
        note: Told how far it is.

    Raises:
        TransportError: The host cannot be reached, or none of the work runs there.
    """
    amounts = _calibrated(transport, directory, sample_s)
    if not amounts:
        raise TransportError(
            f"none of the work of the A/A score runs on {transport.host}",
            "install awk and dd, and name a directory that can be written",
        )
    sides: dict[str, tuple[list[float], list[float]]] = {kind: ([], []) for kind in amounts}
    for number in range(rounds):
        # A B, then B A: what drifts meets both sides alike.
        order = (0, 1) if number % 2 == 0 else (1, 0)
        works = [f"{kind}:{amount}" for kind, amount in amounts.items() for _ in order]
        taken = _run(transport, directory, works)
        for kind, times in taken.items():
            if len(times) == len(order):
                for side, seconds in zip(order, times, strict=True):
                    sides[kind][side].append(seconds)
        note(f"round {number + 1} of {rounds}")
    scores = {kind: score(*both) for kind, both in sides.items()}
    return AaScore(scores.get("cpu"), scores.get("memory"), scores.get("disk"))


def score(a: Sequence[float], b: Sequence[float]) -> Repeatability | None:
    """The statistics of two series of times. Pure: the resampling has a fixed seed.

    ``None`` with fewer than three samples a side: their spread says nothing.
    """
    if min(len(a), len(b)) < 3:
        return None
    chance = random.Random(1)  # noqa: S311 - statistics, not a secret
    medians = (
        [statistics.median(chance.choices(side, k=len(side))) for side in (a, b)]
        for _ in range(_RESAMPLES)
    )
    ratios = sorted(of_a / of_b for of_a, of_b in medians)
    tail = round(_RESAMPLES * (1 - _CONFIDENCE) / 2)
    every = tuple(time for pair in zip(a, b, strict=False) for time in pair)
    return Repeatability(
        spread_pct=statistics.stdev(every) / statistics.fmean(every) * 100,
        ratio=statistics.median(a) / statistics.median(b),
        low=ratios[tail],
        high=ratios[-1 - tail],
        samples=every,
    )


def _calibrated(transport: Transport, directory: str, sample_s: float) -> dict[str, int]:
    """How much of each kind takes about so long here. The first run also warms up."""
    amounts = dict(_FIRST_AMOUNT)
    for _ in range(2):
        taken = _run(transport, directory, [f"{kind}:{n}" for kind, n in amounts.items()])
        amounts = {
            kind: max(1, min(_LARGEST_AMOUNT[kind], round(amounts[kind] * sample_s / times[0])))
            for kind, times in taken.items()
        }
    return amounts


def _run(transport: Transport, directory: str, works: Sequence[str]) -> dict[str, list[float]]:
    """Times of each kind in seconds, in the order they were run; kinds that failed are left out."""
    argv = ["sh", "-c", _WORK, "sh", directory, *works]
    done = transport.run(argv, timeout_s=_LIMIT_S)
    taken: dict[str, list[float]] = {}
    for kind, nanoseconds in re.findall(r"^(\w+) ([1-9]\d*)$", done.stdout.decode(), re.MULTILINE):
        taken.setdefault(kind, []).append(int(nanoseconds) / 1e9)
    return taken
