"""Whether what should be mounted is mounted, lest databases grow on the root file system unnoticed.

In: a transport, a directory and what should be there. Out: a ``Check``, or what it is on; nothing
is mounted.
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
_CAP_SYS_ADMIN = 1 << 21
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
    mount, resolved = _looked(transport, directory, device)
    if mount is None:
        return Check("mounted", None, f"what {directory} is on cannot be told: {resolved}")
    return mounted(mount, directory, resolved if device else wanted, wanted)


def mount_below(transport: Transport, directory: str) -> Mount | None:
    """What a directory is on, or would be; ``None`` when the host does not tell."""
    return _looked(transport, directory, "")[0]


def may_mount(transport: Transport) -> bool:
    """Whether the kernel lets us mount file systems there: root, and not confined."""
    status = transport.read("/proc/self/status").decode(errors="replace")
    found = re.search(r"^CapEff:\s*([0-9a-fA-F]+)$", status, re.MULTILINE)
    return found is not None and bool(int(found[1], 16) & _CAP_SYS_ADMIN)


def _looked(transport: Transport, directory: str, device: str) -> tuple[Mount | None, str]:
    """What a directory is on, and the device without symbolic links; or why that is not known."""
    done = transport.run(["sh", "-c", _SCRIPT, "sh", directory, device], timeout_s=_LIMIT_S)
    lines = done.stdout.decode(errors="surrogateescape").splitlines()
    if len(lines) < 3:
        return None, done.stderr.decode(errors="replace").strip() or "df says nothing"
    usage, resolved, source, *mountinfo = lines
    point = re.sub(r"^.*?\s\d+\s+\d+\s+\d+\s+\S+\s+(?=/)", "", usage)
    found = mount_of(mountinfo, point)
    return Mount(point, found.kind if found else "", source), resolved


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
        remedy = _mounting(shlex.quote(written), directory)
        if mount.point == "/":
            evidence = f"{directory} is on the root file system, and {written} was to be mounted"
            return _check(ok=False, evidence=evidence, remedy=remedy)
        if mount.source == wanted:
            return _check(ok=True, evidence=where, remedy="")
        return _check(ok=False, evidence=f"{where}, and not on {written}", remedy=remedy)
    if mount.kind == wanted:
        return _check(ok=True, evidence=where, remedy="")
    remedy = _mounting(f"-t {shlex.quote(wanted)} DEVICE", directory)
    return _check(ok=False, evidence=f"{where}, and not on {wanted}", remedy=remedy)


def _mounting(what: str, directory: str) -> str:
    place = shlex.quote(directory)
    return f"sudo mkdir -p {place} && sudo mount {what} {place}"


def _check(*, ok: bool, evidence: str, remedy: str) -> Check:
    return Check("mounted", ok, evidence, remedy, purpose="measuring the device that is meant")
