"""Whether what should be mounted is mounted, lest databases grow on the root file system unnoticed.

In: a transport, a directory and what should be there. Out: a ``Check``; nothing is mounted.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchrunner.probes.check import Check
from benchrunner.probes.storage import mount_of

if TYPE_CHECKING:
    from benchrunner.transports import Transport

_LIMIT_S = 60.0
_SCRIPT = r"""
directory=$1
while [ ! -d "$directory" ]; do directory=$(dirname -- "$directory"); done
df -Pk -- "$directory" | sed -n 2p
readlink -f -- "${2:-/}"
source=$(df -Pk -- "$directory" | sed -n '2s/ .*//p')
case $source in /*) readlink -f -- "$source" ;; *) printf '%s\n' "$source" ;; esac
cat /proc/self/mountinfo
"""


@dataclass(frozen=True, slots=True)
class Mount:
    """What a directory is on."""

    point: str
    kind: str
    """Type of the file system: ``xfs``."""
    source: str
    """Device, or what the kernel calls it; symbolic links are followed."""


def check_mounted(transport: Transport, directory: str, wanted: str) -> Check:
    """Whether a directory is on what its host's definition says.

    Args:
        transport: The host.
        directory: A key of the host's ``data`` or ``wal``; it may not exist yet.
        wanted: The value there: a file system's type, a device, or empty for anything.
    """
    device = wanted if wanted.startswith("/") else ""
    done = transport.run(["sh", "-c", _SCRIPT, "sh", directory, device], timeout_s=_LIMIT_S)
    lines = done.stdout.decode(errors="surrogateescape").splitlines()
    if len(lines) < 3:
        why = done.stderr.decode(errors="replace").strip() or "df says nothing"
        return Check("mounted", None, f"what {directory} is on cannot be told: {why}")
    usage, resolved, source, *mountinfo = lines
    point = re.sub(r"^.*?\s\d+\s+\d+\s+\d+\s+\S+\s+(?=/)", "", usage)
    found = mount_of(mountinfo, point)
    mount = Mount(point, found.kind if found else "", source)
    return mounted(mount, directory, resolved if device else wanted, wanted)


def mounted(mount: Mount, directory: str, wanted: str, written: str = "") -> Check:
    """The check from what is known. Pure.

    Args:
        mount: What the directory is on.
        directory: As the host's definition has it.
        wanted: Type, device without symbolic links, or empty.
        written: The device as the definition has it.
    """
    kind = mount.kind or "unknown"
    where = f"{directory} is on {mount.source} ({kind}, mounted at {mount.point})"
    if not wanted:
        return _check(ok=True, evidence=where, remedy="")
    written = written or wanted
    if wanted.startswith("/"):
        remedy = f"sudo mount {shlex.quote(written)} {shlex.quote(directory)}"
        if mount.point == "/":
            evidence = f"{directory} is on the root file system, and {written} was to be mounted"
            return _check(ok=False, evidence=evidence, remedy=remedy)
        if mount.source == wanted:
            return _check(ok=True, evidence=where, remedy="")
        return _check(ok=False, evidence=f"{where}, and not on {written}", remedy=remedy)
    if mount.kind == wanted:
        return _check(ok=True, evidence=where, remedy="")
    remedy = f"sudo mount -t {shlex.quote(wanted)} DEVICE {shlex.quote(directory)}"
    return _check(ok=False, evidence=f"{where}, and not on {wanted}", remedy=remedy)


def _check(*, ok: bool, evidence: str, remedy: str) -> Check:
    return Check("mounted", ok, evidence, remedy, purpose="measuring the device that is meant")
