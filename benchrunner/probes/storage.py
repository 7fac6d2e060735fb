"""Block device and file system of a directory, and versions of programs. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from benchrunner.probes.text import Output, chosen, read_files, yes_or_no

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SECTOR_BYTES = 512
"""In which /sys counts the size of every device, whatever its blocks are."""
_COMPILERS = ("cc", "c++", "clang", "ld")


def device(output: Output, directory: int) -> dict[str, Any] | None:
    """The block device below the directory, ``None`` for memory, network and stacked file systems.

    ``stack`` goes from what is mounted down to the disks. The rest describes the disk; where there
    are several (RAID, striped volumes) the first, and ``disks`` names them all.
    """
    lines = output.sections.get(f"directory {directory}", ())
    names = [line.removeprefix("device ") for line in lines if line.startswith("device ")]
    names = list(dict.fromkeys(names))
    if not names:
        return None
    upper = {line.split()[1] for line in lines if line.startswith("below ")}
    disks = [name for name in names if name not in upper]
    files = Output(read_files(lines))
    return {
        "name": names[0],
        "stack": names if len(names) > 1 else None,
        "disks": disks if len(disks) > 1 else None,
        "volume": _first(files, names, "dm/name"),
        "raid_level": _first(files, names, "md/level"),
        "backing_file": _first(files, names, "loop/backing_file"),
        **_disk(files, disks[0]),
        "size_bytes": _size_bytes(files, names[0]),
    }


def _disk(files: Output, name: str) -> dict[str, Any]:
    base = f"/sys/class/block/{name}"
    queue = f"{base}/queue"
    virtual = re.match(r"(vd|xvd|loop|zram|ram|nbd|rbd)", name) is not None
    return {
        "disk": name,
        "model": files.line(f"{base}/device/model"),
        "firmware": files.line(f"{base}/device/firmware_rev") or files.line(f"{base}/device/rev"),
        "virtual": virtual,
        "rotational": yes_or_no(files.line(f"{queue}/rotational")),
        "scheduler": chosen(files.line(f"{queue}/scheduler")),
        "nr_requests": files.number(f"{queue}/nr_requests"),
        "max_sectors_kib": files.number(f"{queue}/max_sectors_kb"),
        "max_hw_sectors_kib": files.number(f"{queue}/max_hw_sectors_kb"),
        "read_ahead_kib": files.number(f"{queue}/read_ahead_kb"),
        "write_cache": files.line(f"{queue}/write_cache"),
        "no_merges": files.number(f"{queue}/nomerges"),
        "wbt_lat_us": files.number(f"{queue}/wbt_lat_usec"),
        "logical_block_bytes": files.number(f"{queue}/logical_block_size"),
        "physical_block_bytes": files.number(f"{queue}/physical_block_size"),
        "discard": _positive(files.number(f"{queue}/discard_max_bytes")),
        "disk_size_bytes": _size_bytes(files, name),
    }


def file_system(output: Output, directory: int) -> dict[str, Any] | None:
    """Type, source, mount options and size of the file system the directory is on."""
    usage = _usage(output, directory)
    if usage is None:
        return None
    (total_kib, _, _), point = usage
    mount = mount_of(output.files.get("/proc/self/mountinfo", ()), point)
    if mount is None:
        return {"mount_point": point, "total_kib": total_kib}
    return {
        "type": mount.kind,
        "source": mount.source,
        "mount_point": point,
        "options": list(mount.options),
        "total_kib": total_kib,
    }


class MountInfo(NamedTuple):
    """A line of /proc/self/mountinfo."""

    kind: str
    source: str
    options: tuple[str, ...]


def mount_of(mountinfo: Sequence[str], point: str) -> MountInfo | None:
    """The topmost mount at a mount point, from the lines of /proc/self/mountinfo."""
    for line in reversed(mountinfo):
        mount, _, rest = line.partition(" - ")
        fields, (kind, source, *options) = mount.split(), rest.split()
        if _unescape(fields[4]) == point:
            every = sorted({*fields[5].split(","), *",".join(options).split(",")} - {""})
            return MountInfo(kind, _unescape(source), tuple(every))
    return None


def free_kib(output: Output, directory: int) -> int | None:
    """Space that an unprivileged user can still write."""
    usage = _usage(output, directory)
    return usage[0][2] if usage else None


def tools(output: Output) -> dict[str, Any]:
    """Versions of the programs that benchmarks use, by name."""
    return {name: text for name, text in _versions(output).items() if name not in _COMPILERS}


def compiler(output: Output) -> dict[str, Any]:
    """Versions of the compilers and the linker, by name."""
    return {name: text for name, text in _versions(output).items() if name in _COMPILERS}


def _versions(output: Output) -> Mapping[str, str]:
    """A program that does not tell its version counts as there."""
    found = {}
    for section, lines in output.sections.items():
        if section.startswith("tool "):
            name = section.split()[1]
            first = next((line.strip() for line in lines if line.strip()), "")
            found[name] = first if re.search(r"\d+\.\d+", first) else "installed"
    return found


def _usage(output: Output, directory: int) -> tuple[list[int], str] | None:
    """(total, used, available) in KiB and the mount point, as ``df -Pk`` has them."""
    for line in output.sections.get(f"directory {directory}", ()):
        match = re.match(r"df .*?\s(\d+)\s+(\d+)\s+(\d+)\s+\S+\s+(/.*)$", line)
        if match:
            return [int(match[number]) for number in (1, 2, 3)], match[4]
    return None


def _size_bytes(files: Output, name: str) -> int | None:
    sectors = files.number(f"/sys/class/block/{name}/size")
    return None if sectors is None else sectors * _SECTOR_BYTES


def _first(files: Output, names: Sequence[str], what: str) -> str | None:
    lines = (files.line(f"/sys/class/block/{name}/{what}") for name in names)
    return next((line for line in lines if line is not None), None)


def _positive(number: int | None) -> bool | None:
    return None if number is None else number > 0


def _unescape(text: str) -> str:
    return re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), text)
