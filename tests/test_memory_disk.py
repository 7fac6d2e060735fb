"""Databases in memory: a tmpfs is mounted and unmounted again; nothing else ever is."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from memory_support import as_root, mounts, nothing_stays_mounted

from benchrunner import memory_disk, workdir
from benchrunner.errors import ConfigurationError, ForeignDirectoryError, HostBusyError
from benchrunner.memory_disk import MemoryDisk, Room, Wanted
from benchrunner.probes.mounts import mount_below
from benchrunner.transports.local import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchrunner.events import Event
    from benchrunner.transports import Completed

__all__ = ["nothing_stays_mounted"]
HERE = LocalTransport()
MIB = 1 << 20
SMALL = Room(8 * MIB, MIB, ("mine-1",))
on_shared_memory = pytest.mark.skipif(
    getattr(mount_below(HERE, memory_disk.SHARED), "kind", "") != "tmpfs",
    reason="shared memory is not in memory here",
)


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Path]:
    """A claimed work directory with a blank in its name."""
    path = tmp_path / "a work"
    workdir.claim(HERE, str(path), "work directory")
    yield path
    subprocess.run(["rm", "-rf", "--", memory_disk.shared_folder(str(path))], check=True)


def disk(
    work: Path, room: Room = SMALL, *, told: list[Event] | None = None, keep: bool = False,
    named: str | None = None, listed: Sequence[str] = (), host: LocalTransport = HERE,
) -> MemoryDisk:  # fmt: skip
    wanted = Wanted(str(work), room, named, tuple(listed))
    observer = (lambda _event: None) if told is None else told.append
    return MemoryDisk(host, wanted, observer, keep=keep)


def obstacles(
    work: Path, room: Room = SMALL, named: str | None = None, host: LocalTransport = HERE
) -> list[ConfigurationError]:
    return list(memory_disk.obstacles(host, "local", Wanted(str(work), room, named)))


class Confined(LocalTransport):
    """This machine for somebody whom the kernel lets mount nothing."""

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        input: bytes | None = None,  # noqa: A002
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Completed:
        confined = ["setpriv", "--bounding-set=-sys_admin", *argv]
        return super().run(confined, timeout_s=timeout_s, input=input, env=env, cwd=cwd)

    def read(self, remote: str, offset: int = 0, limit: int | None = None) -> bytes:
        if remote != "/proc/self/status":
            return super().read(remote, offset, limit)
        return self.run(["cat", remote], timeout_s=60).stdout


class Careless(Confined):
    """The same, but it looks as if mounting were permitted."""

    def read(self, remote: str, offset: int = 0, limit: int | None = None) -> bytes:
        return LocalTransport.read(self, remote, offset, limit)


# ---------------------------------------------------------------- mounting


@as_root
def test_a_tmpfs_is_there_for_a_sweep_and_gone_after_it(work: Path) -> None:
    memory = disk(work)
    memory.take()
    point = work / "memory"
    assert memory.folder == str(point)
    assert mounts(work) == [str(point)]
    mount = mount_below(HERE, memory.folder)
    assert mount is not None
    assert (mount.kind, mount.source, mount.point) == ("tmpfs", "benchrunner", str(point))
    assert 7 * MIB < workdir.disk_free(HERE, memory.folder) <= 8 * MIB
    assert (point / workdir.MARKER).is_file()
    memory.take()  # as after a lost connection
    assert mounts(work) == [str(point)]
    memory.leave()
    memory.leave()
    assert mounts(work) == []
    assert not point.exists()


@as_root
def test_a_database_that_is_wanted_stays_and_others_go(work: Path) -> None:
    disk(work).take()
    kept = work / "memory" / "trials" / "mine-1"
    kept.mkdir(parents=True)
    disk(work, Room(16 * MIB, MIB, ("mine-1",))).take()
    assert kept.is_dir()
    assert workdir.disk_free(HERE, str(kept)) > 15 * MIB
    disk(work, Room(8 * MIB, MIB, ("other-1",))).take()
    assert not kept.exists()
    assert mounts(work) == [str(work / "memory")]


@as_root
def test_what_is_in_use_stays_mounted(work: Path) -> None:
    told: list[Event] = []
    memory = disk(work, told=told)
    memory.take()
    with subprocess.Popen(["sleep", "60"], cwd=memory.folder) as user:
        time.sleep(0.05)
        with pytest.raises(HostBusyError, match="in use by a step of another sweep"):
            disk(work, Room(8 * MIB, MIB, ("other-1",))).take()
        memory.leave()
        assert mounts(work) == [str(work / "memory")]
        user.kill()
    assert [event.kind for event in told] == ["warning"]
    assert "is in use and stays mounted" in told[0].text
    assert memory_disk.unmount(HERE, str(work)) == "unmounted"
    assert memory_disk.unmount(HERE, str(work)) == "none"


@as_root
@pytest.mark.parametrize("name", ["tmpfs", "benchrunner-not"])
def test_a_file_system_of_somebody_else_is_left_alone(work: Path, name: str) -> None:
    point = work / "memory"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", name, str(point)], check=True)
    with pytest.raises(ForeignDirectoryError, match="where the memory disk is to be mounted"):
        disk(work).take()
    assert memory_disk.unmount(HERE, str(work)) == f"tmpfs {name}"
    assert not memory_disk.is_mounted(HERE, str(work))
    assert mounts(work) == [str(point)]


@as_root
def test_a_folder_with_files_is_not_mounted_over(work: Path) -> None:
    (work / "memory").mkdir()
    (work / "memory" / "thesis.tex").write_text("x")
    with pytest.raises(ForeignDirectoryError, match="holds files"):
        disk(work).take()
    assert mounts(work) == []


@as_root
def test_nothing_is_unmounted_in_a_folder_that_is_not_ours(work: Path) -> None:
    disk(work).take()
    (work / workdir.MARKER).rename(work / "marker")
    assert memory_disk.unmount(HERE, str(work)) == "unclaimed"
    assert mounts(work) == [str(work / "memory")]
    (work / "marker").rename(work / workdir.MARKER)


@as_root
def test_kept_databases_stay_in_memory(work: Path) -> None:
    told: list[Event] = []
    memory = disk(work, told=told, keep=True)
    memory.take()
    memory.leave()
    assert mounts(work) == [str(work / "memory")]
    assert "benchrunner hosts clean deletes them" in told[0].text


# ---------------------------------------------------------------- enough memory


@as_root
def test_too_little_memory_is_said_before_and_refused_at_the_start(work: Path) -> None:
    huge = Room(1 << 50, MIB)
    (said,) = obstacles(work, huge)
    assert said.message.startswith("host local has ")
    assert said.message.endswith(
        " of memory free, and a trial needs 1.0 PiB for its database and 1.0 MiB beside it"
    )
    with pytest.raises(ConfigurationError, match="PiB for its database"):
        disk(work, huge).take()
    assert mounts(work) == []
    disk(work).take()
    (said,) = obstacles(work, huge)
    assert f"in the memory disk that a sweep left at {work}/memory" in said.message
    assert said.hint == "benchrunner hosts restore local"
    assert obstacles(work) == []


# ---------------------------------------------------------------- where nothing may be mounted


@as_root
@on_shared_memory
@pytest.mark.parametrize("host", [Confined(), Careless()])
def test_shared_memory_serves_where_nothing_may_be_mounted(
    work: Path, host: LocalTransport
) -> None:
    shared = Path(memory_disk.shared_folder(str(work)))
    assert obstacles(work, host=host) == []
    memory = disk(work, host=host, listed=[str(work.parent)])  # that one is on a device
    memory.take()
    assert memory.folder == str(shared)
    assert mounts(work) == []
    (shared / "trials").mkdir()
    (shared / "trials" / "of-another").mkdir()
    memory.leave()
    assert shared.is_dir()
    (shared / "trials" / "of-another").rmdir()
    memory_disk.leave_shared(HERE, str(work))
    assert not shared.exists()


@as_root
def test_it_is_refused_where_there_is_no_place(work: Path) -> None:
    huge = Room(1 << 50, MIB)
    (said,) = obstacles(work, huge, host=Confined())
    assert str(said) == (
        "host local: databases of this workload lie in memory, but nothing may be mounted there "
        f"and {memory_disk.shared_folder(str(work))} are not on a tmpfs with 1.0 PiB free\n"
        "  try: sudo mount -t tmpfs -o size=1125899906842624,mode=1777 tmpfs DIR, then --db-dir DIR"
    )
    with pytest.raises(ConfigurationError, match="nothing may be mounted there"):
        disk(work, huge, host=Confined()).take()


@on_shared_memory
def test_a_folder_that_is_named_is_used_or_refused(work: Path) -> None:
    (said,) = obstacles(work, named=str(work / "db"))
    assert said.message.startswith(
        "host local: databases of this workload lie in memory, and --db-dir "
    )
    assert "is on " in said.message
    shared = memory_disk.shared_folder(str(work))
    (said,) = obstacles(work, Room(1 << 50, MIB), named=shared)
    assert "has no 1.0 PiB free\n  try: leave it out" in str(said)
    assert obstacles(work, named=f"{shared}/mine") == []
    memory = disk(work, named=f"{shared}/mine")
    memory.take()
    assert memory.folder == f"{shared}/mine"
    memory.leave()
    assert Path(shared, "mine").is_dir(), "it was somebody's wish, and stays"


@on_shared_memory
def test_logs_in_memory_are_marked(tmp_path: Path) -> None:
    (taint,) = memory_disk.log_taints(HERE, f"{memory_disk.SHARED}/wal")
    assert taint.name == "wal-in-memory"
    assert taint.evidence == "write-ahead logs are in /dev/shm/wal, which is on tmpfs"
    assert memory_disk.log_taints(HERE, str(tmp_path)) == ()
