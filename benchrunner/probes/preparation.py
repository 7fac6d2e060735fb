"""What is done on a host right before a step: sync, drop caches, fstrim, cool down.

In: the step's ``before`` list. Out: what was done, in numbers, and a taint for each thing that was
asked for and did not happen. Waiting for compactions is not here: only the workload's tool can.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchrunner.errors import ConfigurationError
from benchrunner.model import Taint
from benchrunner.probes.preconditions import drop_caches
from benchrunner.suggest import did_you_mean, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchrunner import definitions
    from benchrunner.transports import Transport

PREPARATIONS = ("sync", "drop-caches", "fstrim", "cool-down")
COOL_ENOUGH_C = 5.0
"""Above the temperature at the start of the sweep. Fans and clocks react in larger steps."""
_POLL_S = 2.0
_LIMIT_S = 600.0
_TEMPERATURES = r"""
for zone in "$1"/sys/class/thermal/thermal_zone[0-9]*; do
  case $(cat "$zone/type" 2>/dev/null) in
    x86_pkg_temp | *cpu* | *CPU* | soc* | acpitz) cat "$zone/temp" 2>/dev/null ;;
  esac
done
for chip in "$1"/sys/class/hwmon/hwmon[0-9]*; do
  case $(cat "$chip/name" 2>/dev/null) in
    coretemp | k10temp | zenpower | cpu_thermal) cat "$chip"/temp[0-9]*_input 2>/dev/null ;;
  esac
done
exit 0
"""
_FSTRIM = r"""
PATH=$PATH:/usr/sbin:/sbin
command -v fstrim >/dev/null || { echo 'fstrim is not on PATH' >&2; exit 127; }
if [ "$(id -u)" = 0 ]; then exec fstrim -v "$1"; fi
command -v sudo >/dev/null || { echo 'not root, and no sudo' >&2; exit 126; }
exec sudo -n fstrim -v "$1"
"""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was done before a step."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    """Preparation -> its numbers; plain data, to be stored with the step."""
    taints: tuple[Taint, ...] = ()


@dataclass(frozen=True, slots=True)
class Preparer:
    """Prepares the steps of a sweep on one host."""

    transport: Transport
    directory: str
    """Where the database is: its file system is the one that is trimmed."""
    reference_c: float | None = None
    """Temperature of the CPU when the sweep began (``cpu_temperature``), if it is known."""
    root: str = ""
    """Folder that stands for / in tests."""
    sleep: Callable[[float], None] = time.sleep

    def prepare(self, wanted: Sequence[str]) -> Prepared:
        """Does what is wanted, in order. Without anything wanted the host is not touched.

        Raises:
            ConfigurationError: A preparation is not known.
            TransportError: The host cannot be reached.
        """
        check_preparations(wanted, "before")
        facts: dict[str, Any] = {}
        taints: list[Taint | None] = []
        for text in wanted:
            name, _, limit = text.partition("=")
            if name == "sync":
                self.transport.run(["sync"], timeout_s=_LIMIT_S)
                facts[name] = {"done": True}
            elif name == "drop-caches":
                dropped = drop_caches(self.transport)
                facts[name] = {"before_kib": dropped.before_kib, "after_kib": dropped.after_kib}
                taints.append(dropped.taint)
            elif name == "fstrim":
                facts[name], taint = self._trim()
                taints.append(taint)
            else:
                facts[name], taint = self._cool_down(float(limit))
                taints.append(taint)
        return Prepared(facts, tuple(taint for taint in taints if taint))

    def _trim(self) -> tuple[dict[str, Any], Taint | None]:
        """A device that cannot trim is a note: nothing that trimming evens out differs there."""
        argv = ["sh", "-c", _FSTRIM, "sh", self.directory]
        done = self.transport.run(argv, timeout_s=_LIMIT_S, env={"LC_ALL": "C"})
        said = (done.stdout + done.stderr).decode(errors="replace").strip()
        trimmed = re.search(r"\((\d+) bytes\) trimmed", said)
        if done.exit_code == 0:
            return {"trimmed_bytes": int(trimmed[1]) if trimmed else None}, None
        facts = {"trimmed_bytes": None, "note": said.partition("\n")[0]}
        if re.search(r"not supported", said):
            return facts, None
        evidence = f"the file system of {self.directory} was not trimmed: {facts['note']}"
        remedy = f"run as root, or allow `fstrim -v {self.directory}` in sudoers"
        return facts, Taint("not-trimmed", evidence, remedy)

    def _cool_down(self, limit_s: float) -> tuple[dict[str, Any], Taint | None]:
        """Waits until the CPU is as cool as it was, at most so long; all of it if nobody can say.

        Waited time is counted in naps, so that a jump of a clock does no harm.
        """
        first = now = cpu_temperature(self.transport, self.root)
        goal = None if self.reference_c is None else self.reference_c + COOL_ENOUGH_C
        waited_s = 0.0
        while waited_s < limit_s and (now is None or goal is None or now > goal):
            nap_s = min(_POLL_S, limit_s - waited_s) if now is not None and goal else limit_s
            self.sleep(nap_s)
            waited_s += nap_s
            now = cpu_temperature(self.transport, self.root)
        facts = {"waited_s": waited_s, "before_c": first, "after_c": now, "goal_c": goal}
        if now is None or goal is None or now <= goal:
            return facts, None
        evidence = (
            f"the CPU had {now:.0f} °C after {waited_s:.0f} s of cooling down, and {goal:.0f} °C "
            "were to be reached"
        )
        return facts, Taint("still-hot", evidence, "allow more seconds, or look after the cooling")


def cpu_temperature(transport: Transport, root: str = "") -> float | None:
    """The hottest of the CPU's sensors in °C; ``None`` where there is none, as in most guests."""
    done = transport.run(["sh", "-c", _TEMPERATURES, "sh", root], timeout_s=_LIMIT_S)
    values = [int(word) for word in done.stdout.split() if re.fullmatch(rb"-?\d+", word)]
    return max(values) / 1000 if values else None


def preparations(workload: definitions.Workload, step: definitions.Step) -> tuple[str, ...]:
    """What is to be done before a step: what it says itself, else its workload. Pure."""
    if step.before is not None:
        return tuple(step.before)
    return tuple(workload.before) if step.measure else ()


def check_preparations(wanted: Sequence[str], where: str) -> None:
    """Checks what a person wrote.

    Raises:
        ConfigurationError: One is not known, or has a number where none belongs.
    """
    for text in wanted:
        name, equals, limit = text.partition("=")
        if name not in PREPARATIONS:
            raise ConfigurationError(
                f"{where}: there is no preparation {name!r}{did_you_mean(name, PREPARATIONS)}",
                listed(PREPARATIONS),
            )
        takes_seconds = name == "cool-down"
        if bool(equals) != takes_seconds or (takes_seconds and not re.fullmatch(r"\d+", limit)):
            hint = "cool-down=60" if takes_seconds else name
            raise ConfigurationError(f"{where}: {text!r} is not understood", hint)
