"""The settings of a host that a sweep may change: which files hold each, which values it takes.

Pure: a table, and functions over it. Adding a setting is adding a row, and a line to
``docs/host-settings.md``. ``tuning`` reads and writes the files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from benchrunner.errors import ConfigurationError
from benchrunner.suggest import did_you_mean, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_CPUFREQ = "/sys/devices/system/cpu/cpu[0-9]*/cpufreq"
_QUEUE = "/sys/class/block/{disk}/queue"
_THP = "/sys/kernel/mm/transparent_hugepage"
_NUMBER = r"0|[1-9]\d{0,9}"
_DEVICE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9!._-]*")
_ON_OFF = {"on": "1", "off": "0"}


@dataclass(frozen=True, slots=True)
class Place:
    """Files that hold a setting: a glob, with ``{disk}`` for the disks below the databases.

    ``service:NAME`` is a service of systemd, whose values are ``active`` and ``inactive``.
    """

    glob: str
    words: Mapping[str, str] = field(default_factory=dict)
    """Our word for a value -> the kernel's; a value without an entry is written as it is."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that can be set. Every place of it that the host has is set."""

    name: str
    places: tuple[Place, ...]
    values: str
    """Regular expression of the values that a person may write."""
    takes: str
    """The values in words."""
    purpose: str
    absent: str | None = None
    """The value that is in force where the host has none of the places."""
    resets: tuple[str, ...] = ()
    """Globs of files that the kernel changes along with it; their values are put back too."""


SETTINGS: Mapping[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting(
            "governor", (Place(f"{_CPUFREQ}/scaling_governor"),),
            r"[a-z_]{1,30}", "performance, powersave, schedutil or another that the CPU has",
            "a CPU that is slow to speed up makes latency depend on the load",
            resets=(f"{_CPUFREQ}/energy_performance_preference",),
        ),
        Setting(
            "turbo",
            (Place("/sys/devices/system/cpu/intel_pstate/no_turbo", {"on": "0", "off": "1"}),
             Place("/sys/devices/system/cpu/cpufreq/boost", _ON_OFF)),
            "on|off", "on, off", "without it the frequency does not depend on temperature",
        ),
        Setting(
            "aslr", (Place("/proc/sys/kernel/randomize_va_space"),), "[012]", "0, 1, 2",
            "addresses that differ between runs move caches and TLBs about",
        ),
        Setting(
            "transparent_huge_pages", (Place(f"{_THP}/enabled"),), "always|madvise|never",
            "always, madvise, never", "huge pages change memory use and stall when compacted",
            absent="never",
        ),
        Setting(
            "transparent_huge_pages_defrag", (Place(f"{_THP}/defrag"),),
            r"always|defer|defer\+madvise|madvise|never",
            "always, defer, defer+madvise, madvise, never",
            "whether a page fault waits until a huge page is free", absent="never",
        ),
        Setting(
            "swappiness", (Place("/proc/sys/vm/swappiness"),), r"\d{1,2}|1\d\d|200", "0 to 200",
            "how readily memory of processes is swapped out in favour of the page cache",
        ),
        Setting(
            "numa_balancing", (Place("/proc/sys/kernel/numa_balancing", _ON_OFF),),
            "on|off", "on, off", "the kernel moves pages between nodes while a step runs",
            absent="off",
        ),
        Setting(
            "damon",
            (Place("/sys/module/damon_*/parameters/enabled", {"off": "N"}),
             Place("/sys/kernel/mm/damon/admin/kdamonds/[0-9]*/state")),
            "off", "off", "DAMON samples memory accesses and reclaims pages", absent="off",
        ),
        Setting(
            "irq_balance",
            (Place("service:irqbalance", {"on": "active", "off": "inactive"}),),
            "on|off", "on, off", "interrupts that move between CPUs move the latency with them",
            absent="off",
        ),
        Setting(
            "scheduler", (Place(f"{_QUEUE}/scheduler"),), r"[a-z][a-z-]{0,30}",
            "none, mq-deadline, kyber, bfq", "in which order the kernel sends I/O to the disk",
            resets=(f"{_QUEUE}/nr_requests", f"{_QUEUE}/wbt_lat_usec"),
        ),
        Setting(
            "nr_requests", (Place(f"{_QUEUE}/nr_requests"),), _NUMBER, "a number",
            "how many requests may wait for the disk",
        ),
        Setting(
            "read_ahead_kib", (Place("/sys/class/block/{device}/queue/read_ahead_kb"),), _NUMBER,
            "KiB, a multiple of 4", "how much is read beyond what was asked for",
        ),
        Setting(
            "max_sectors_kib", (Place(f"{_QUEUE}/max_sectors_kb"),), _NUMBER,
            "KiB, up to the disk's max_hw_sectors_kb", "largest request sent to the disk",
        ),
        Setting(
            "wbt_lat_us", (Place(f"{_QUEUE}/wbt_lat_usec"),), _NUMBER, "us; 0: off",
            "write-back throttling slows buffered writes to keep reads fast",
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class BlockDevices:
    """Names under /sys/class/block of what lies below a directory."""

    disks: tuple[str, ...] = ()
    stack: tuple[str, ...] = ()
    """From what is mounted down to the disks; partitions have no queue and do no harm."""


def block_devices(facts: Mapping[str, Any]) -> BlockDevices:
    """Those of the first directory that host facts were taken for; empty on tmpfs and networks."""
    device = facts.get("device") or {}
    disks = device.get("disks") or [device.get("disk")]
    stack = device.get("stack") or disks
    return BlockDevices(tuple(d for d in disks if d), tuple(d for d in stack if d))


def check_settings(wanted: Mapping[str, str], where: str) -> None:
    """Checks names and values that a person wrote.

    Args:
        wanted: Setting -> value.
        where: What the message begins with: ``hosts/nvme1.toml: tune``.

    Raises:
        ConfigurationError: A name or a value is not known.
    """
    for name, value in wanted.items():
        setting = SETTINGS.get(name)
        if setting is None:
            raise ConfigurationError(
                f"{where}: there is no setting {name!r}{did_you_mean(name, SETTINGS)}",
                listed(SETTINGS),
            )
        if not re.fullmatch(setting.values, value):
            raise ConfigurationError(
                f"{where}.{name}: {value!r} is not one of its values", setting.takes
            )


def all_globs(names: Iterable[str]) -> tuple[str, ...]:
    """Every place of these settings and every file that they reset, of every device."""
    globs = [glob for name in names for glob in _globs(name)]
    return tuple(dict.fromkeys(_of_any_device(glob) for glob in globs))


def wanted_paths(
    name: str, value: str, paths: Iterable[str], devices: BlockDevices
) -> dict[str, str]:
    """Those of the paths that hold a setting, each with the kernel's word for the value."""
    known = tuple(paths)
    return {
        path: place.words.get(value, value)
        for place in SETTINGS[name].places
        for path in matching(place.glob, known, devices)
    }


def reset_paths(name: str, paths: Iterable[str], devices: BlockDevices) -> tuple[str, ...]:
    """Those of the paths that change along with a setting."""
    known = tuple(paths)
    return tuple(path for glob in SETTINGS[name].resets for path in matching(glob, known, devices))


def matching(glob: str, paths: Sequence[str], devices: BlockDevices) -> tuple[str, ...]:
    """Those of the paths that a glob of the table means on these devices."""
    globs = [glob]
    for word, names in (("{disk}", devices.disks), ("{device}", devices.stack)):
        if word in glob:
            globs = [glob.replace(word, name) for name in names if _DEVICE_NAME.fullmatch(name)]
    return tuple(path for path in paths if any(_same_shape(path, one) for one in globs))


def is_place_of(name: str, path: str) -> bool:
    """Whether a path is a place of a setting: nothing else is ever written, whoever asks."""
    return any(_same_shape(path, _of_any_device(glob)) for glob in _globs(name))


def is_reset_by(name: str, path: str) -> bool:
    """Whether the kernel can change that file when the setting is changed."""
    setting = SETTINGS.get(name)
    globs = setting.resets if setting else ()
    return any(_same_shape(path, _of_any_device(glob)) for glob in globs)


def _globs(name: str) -> tuple[str, ...]:
    """Of a setting; none of a name that is not known."""
    setting = SETTINGS.get(name)
    return (*(place.glob for place in setting.places), *setting.resets) if setting else ()


def _of_any_device(glob: str) -> str:
    return glob.replace("{disk}", "*").replace("{device}", "*")


def _same_shape(path: str, glob: str) -> bool:
    """Part by part, as a shell does it: a ``*`` stands for no slash, and ``..`` for nothing."""
    parts, globs = path.split("/"), glob.split("/")
    pairs = zip(parts, globs, strict=False)
    return (
        len(parts) == len(globs)
        and ".." not in parts
        and all(fnmatchcase(part, one) for part, one in pairs)
    )
