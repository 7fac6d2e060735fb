"""Where databases lie that a workload wants in memory: a tmpfs, mounted for a sweep or found there.

In: a host, its claimed work directory, and how much room is needed. Out: a folder on a tmpfs. What
was mounted here is unmounted again; nothing else is, ever, and never one that is in use.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from benchrunner import faults, workdir
from benchrunner.errors import (
    ConfigurationError,
    ForeignDirectoryError,
    HostBusyError,
    TransportError,
)
from benchrunner.events import Event
from benchrunner.model import Taint
from benchrunner.probes.memory_room import available_bytes
from benchrunner.probes.mounts import may_mount, mount_below
from benchrunner.units import about_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchrunner.events import Observer
    from benchrunner.transports import Transport

SHARED = "/dev/shm"  # noqa: S108 - looked at, and used below a folder that is claimed
_LIMIT_S = 600.0
_LEAVE = r"""
[ -f "$1/.benchrunner" ] || exit 0
rmdir -- "$1/trials" 2>/dev/null
[ "$(ls -A -- "$1")" = .benchrunner ] || exit 0
rm -f -- "$1/.benchrunner" && rmdir -- "$1"
"""


@dataclass(frozen=True, slots=True)
class Room:
    """What the trials of a sweep need on a host."""

    databases_bytes: int
    """The largest database, at its largest moment."""
    processes_bytes: int
    """Caches, memtables and the rest of the process beside it."""
    trials: tuple[str, ...] = ()
    """Those that have not ended: their databases may be there already."""

    @property
    def total_bytes(self) -> int:
        """Memory that must be there."""
        return self.databases_bytes + self.processes_bytes


@dataclass(frozen=True, slots=True)
class Wanted:
    """How much is needed, and which places may be used, in the order in which they are tried."""

    work: str
    """The claimed work directory; a tmpfs is mounted below it."""
    room: Room
    named: str | None = None
    """By --db-dir: this one or none."""
    listed: tuple[str, ...] = ()
    """Data directories of the host, for where nothing may be mounted."""

    @property
    def places(self) -> tuple[str, ...]:
        """Folders for where nothing may be mounted."""
        return (*self.listed, shared_folder(self.work))


def mount_point(work: str) -> str:
    """Where the memory disk of a work directory is mounted."""
    return f"{work}/memory"


def shared_folder(work: str) -> str:
    """The folder of a work directory in the memory that every user of a host may use."""
    return f"{SHARED}/benchrunner-{hashlib.sha256(work.encode()).hexdigest()[:12]}"


def folders(work: str) -> tuple[str, str]:
    """Every folder in memory that trials of a work directory may have used."""
    return mount_point(work), shared_folder(work)


# ---------------------------------------------------------------- before a sweep


def obstacles(transport: Transport, host: str, wanted: Wanted) -> Iterator[ConfigurationError]:
    """Why databases cannot lie in memory on a host, and what helps; nothing there is changed."""
    if wanted.named is None and may_mount(transport):
        yield from _too_little(transport, host, wanted)
    elif _existing(transport, wanted) is None:
        yield _nowhere(transport, host, wanted)
    else:
        yield from _too_little(transport, host, wanted)


def _too_little(transport: Transport, host: str, wanted: Wanted) -> Iterator[ConfigurationError]:
    room, free = wanted.room, available_bytes(transport)
    if free is None or room.total_bytes <= free:
        return
    found, _, used_kib = _script(transport, "look", wanted.work).partition(" ")
    left, mend = "", "a smaller --scale, or a host with more memory"
    if found == "ours":
        mend = f"benchrunner hosts restore {host}"
        left = (
            f"; {about_size(int(used_kib) * 1024)} are in the memory disk that a sweep left at "
            f"{mount_point(wanted.work)}"
        )
    yield ConfigurationError(
        f"host {host} has {about_size(free)} of memory free, and a trial needs "
        f"{about_size(room.databases_bytes)} for its database and "
        f"{about_size(room.processes_bytes)} beside it{left}",
        mend,
    )


def _existing(transport: Transport, wanted: Wanted) -> str | None:
    """The first folder that is on a tmpfs, may be written and has room."""
    for place in (wanted.named,) if wanted.named is not None else wanted.places:
        mount = mount_below(transport, place)
        if mount is None or mount.kind != "tmpfs":
            continue
        free = workdir.disk_free(transport, place)
        if (
            free >= wanted.room.databases_bytes
            and workdir.who_cannot_write(transport, place) is None
        ):
            return place
    return None


def _nowhere(transport: Transport, host: str, wanted: Wanted) -> ConfigurationError:
    need = about_size(wanted.room.databases_bytes)
    if wanted.named is not None:
        mount = mount_below(transport, wanted.named)
        kind = mount.kind if mount is not None else "unknown"
        why = f"has no {need} free" if kind == "tmpfs" else f"is on {kind or 'unknown'}"
        return ConfigurationError(
            f"host {host}: databases of this workload lie in memory, and --db-dir {wanted.named} "
            f"{why}",
            "leave it out, or name a folder on a tmpfs that has room",
        )
    return ConfigurationError(
        f"host {host}: databases of this workload lie in memory, but nothing may be mounted there "
        f"and {' and '.join(wanted.places)} are not on a tmpfs with {need} free",
        f"sudo mount -t tmpfs -o size={wanted.room.databases_bytes},mode=1777 tmpfs DIR, then "
        "--db-dir DIR",
    )


# ---------------------------------------------------------------- for a sweep


class MemoryDisk:
    """The folder that a sweep's databases lie in while it runs on a host."""

    def __init__(
        self, transport: Transport, wanted: Wanted, observer: Observer, *, keep: bool = False
    ) -> None:
        """Takes the host; with ``keep`` databases stay in memory until somebody cleans up."""
        self._transport = transport
        self._wanted = wanted
        self._observer = observer
        self._keep = keep
        self._mounted = False
        self.folder = ""
        """Absolute; on a tmpfs."""

    def take(self) -> None:
        """Mounts a tmpfs, or finds one; a second call gives the same.

        Raises:
            ConfigurationError: There is no memory for it, or no tmpfs and none may be mounted.
            HostBusyError: What a former sweep left there is in use.
            ForeignDirectoryError: Something else is mounted in its place.
        """
        wanted, transport = self._wanted, self._transport
        if wanted.named is None and may_mount(transport):
            if not self._is_there():
                for error in _too_little(transport, transport.host, wanted):
                    raise error
            self._mounted = self._mount()
        if self._mounted:
            self.folder = mount_point(wanted.work)
        else:
            place = _existing(transport, wanted)
            if place is None:
                raise _nowhere(transport, transport.host, wanted)
            self.folder = place
        workdir.claim(transport, self.folder, "databases in memory")

    def _is_there(self) -> bool:
        """Whether the databases of this sweep's trials are there already, and take their memory."""
        point = mount_point(self._wanted.work)
        return any(
            self._transport.size(f"{point}/trials/{workdir.safe_name(trial)}") is not None
            for trial in self._wanted.room.trials
        )

    def _mount(self) -> bool:
        """Whether there is one now; not where the kernel refuses."""
        work, room = self._wanted.work, self._wanted.room
        trials = [workdir.safe_name(trial) for trial in room.trials]
        found = _script(self._transport, "mount", work, str(room.databases_bytes), *trials)
        point = mount_point(work)
        if found == "refused":
            return False
        if found == "busy":
            raise HostBusyError(
                f"{point} on {self._transport.host} is in use by a step of another sweep",
                "benchrunner resume goes on with that sweep first",
            )
        if found not in ("mounted", "kept"):
            what = "holds files" if found == "occupied" else f"is {found.replace(' ', ', called ')}"
            raise ForeignDirectoryError(
                f"{point} on {self._transport.host} {what}, where the memory disk is to be mounted",
                "look at it, and put it elsewhere",
            )
        faults.point("memory-disk-mounted")
        return True

    def leave(self) -> None:
        """Gives the memory back, as far as it was taken here; a second call changes nothing."""
        if not self.folder:
            return
        if self._keep:
            host = self._transport.host
            text = f"databases stay in the memory of {host}, in {self.folder}"
            self._observer(Event("note", f"{text} (benchrunner hosts clean deletes them)"))
        elif self._mounted:
            if unmount(self._transport, self._wanted.work) == "busy":
                text = f"{self.folder} on {self._transport.host} is in use and stays mounted"
                hint = "benchrunner hosts restore, once nothing runs there"
                self._observer(Event("warning", f"{text} ({hint})"))
        elif self.folder == shared_folder(self._wanted.work):
            leave_shared(self._transport, self._wanted.work)
        self.folder = ""


def unmount(transport: Transport, work: str) -> str:
    """Unmounts the memory disk of a work directory if it is one of ours and nothing uses it.

    Returns:
        ``unmounted``, ``busy``, or what else is there: ``none``, ``unclaimed``, a file system.
    """
    return _script(transport, "unmount", work)


def is_mounted(transport: Transport, work: str) -> bool:
    """Whether a memory disk of ours is mounted below a work directory."""
    return _script(transport, "look", work).startswith("ours")


def leave_shared(transport: Transport, work: str) -> None:
    """Deletes the folder in shared memory once no trial has anything in it."""
    transport.run(["sh", "-c", _LEAVE, "sh", shared_folder(work)], timeout_s=_LIMIT_S)


def log_taints(transport: Transport, log_dir: str) -> tuple[Taint, ...]:
    """The mark of a sweep whose write-ahead logs lie in memory too: no device keeps them."""
    mount = mount_below(transport, log_dir)
    if mount is None or mount.kind not in ("tmpfs", "ramfs"):
        return ()
    return (
        Taint(
            "wal-in-memory",
            f"write-ahead logs are in {log_dir}, which is on {mount.kind}",
            "--wal-dir, or wal in the host's definition, with a folder on a device",
        ),
    )


def _script(transport: Transport, verb: str, work: str, *more: str) -> str:
    script = resources.files("benchrunner").joinpath("memory_disk.sh").read_text("utf-8")
    done = transport.run(["sh", "-c", script, "sh", verb, work, *more], timeout_s=_LIMIT_S)
    said = done.stdout.decode(errors="replace").strip()
    if done.exit_code != 0 or not said:
        why = done.stderr.decode(errors="replace").strip() or f"exit code {done.exit_code}"
        raise TransportError(
            f"memory disk of {transport.host}: {verb} at {mount_point(work)}: "
            f"{why.splitlines()[-1]}"
        )
    return said
