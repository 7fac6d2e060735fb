"""Folders of trials on a host, and raw output brought home."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from benchrunner import workdir
from benchrunner.errors import ForeignDirectoryError, TransportError
from benchrunner.launchers.supervisor import ensure_supervisor, supervisor_sources
from benchrunner.places import HostDisk, Roots, compress, folder_hash
from benchrunner.transports.local import LocalTransport


@pytest.fixture(scope="session")
def supervisor(cache: Path) -> str:
    return ensure_supervisor(LocalTransport(), supervisor_sources(), str(cache))


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    return Roots(
        str(tmp_path / "work"), tmp_path / "raw", str(tmp_path / "fast"), str(tmp_path / "wal")
    )


@pytest.fixture
def disk(roots: Roots, supervisor: str) -> HostDisk:
    disk = HostDisk(LocalTransport(), roots, supervisor)
    disk.roots.claim(LocalTransport())
    return disk


def make_fresh(disk: HostDisk, supervisor: str, attempt: int) -> None:
    """What the first start of an attempt does before its command."""
    transport = LocalTransport()
    argv = [supervisor, "fresh", *disk.fresh("1-a", attempt).arguments()]
    done = transport.run(argv, timeout_s=20)
    workdir.refuse_foreign(transport.host, done)
    assert done.exit_code == 0, done.stderr


def write(path: str | Path, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def test_a_fresh_database_is_empty_and_the_last_attempt_is_gone(
    disk: HostDisk, supervisor: str
) -> None:
    assert not disk.has_database("1-a")
    make_fresh(disk, supervisor, 1)
    assert disk.has_database("1-a")
    database, wal = disk.database("1-a")
    assert database.endswith("/fast/trials/1-a/db")
    assert wal.endswith("/wal/trials/1-a/wal")
    write(f"{database}/CURRENT", "old")
    write(f"{wal}/000001.log", "old")
    make_fresh(disk, supervisor, 2)
    assert not list(Path(database).iterdir())
    assert not list(Path(wal).iterdir())
    assert Path(disk.run_dir("1-a", 2, 1, "load")).parent.is_dir()
    assert not Path(disk.run_dir("1-a", 1, 1, "load")).parent.exists()
    disk.remove("1-a")
    assert not disk.has_database("1-a")


def test_a_folder_of_somebody_else_is_not_deleted(
    disk: HostDisk, roots: Roots, supervisor: str
) -> None:
    write(f"{roots.work}/trials/1-a/thesis.tex", "years of work")
    with pytest.raises(
        ForeignDirectoryError, match=r"has no \.benchrunner file: it is not deleted"
    ):
        make_fresh(disk, supervisor, 1)
    assert Path(f"{roots.work}/trials/1-a/thesis.tex").exists()


def test_what_is_kept_stays(roots: Roots, supervisor: str) -> None:
    disk = HostDisk(LocalTransport(), Roots(roots.work, roots.raw, keep=True), supervisor)
    disk.roots.claim(LocalTransport())
    make_fresh(disk, supervisor, 1)
    disk.remove("1-a")
    assert disk.has_database("1-a")


def test_the_loaded_state_comes_back_wal_included(disk: HostDisk, supervisor: str) -> None:
    make_fresh(disk, supervisor, 1)
    database, wal = disk.database("1-a")
    write(f"{database}/1.sst", "sorted")
    write(f"{database}/CURRENT", "loaded")
    write(f"{wal}/1.log", "tail")
    disk.keep_loaded("1-a", ["*.sst"])
    write(f"{database}/CURRENT", "changed")
    write(f"{database}/2.sst", "more")
    Path(f"{wal}/1.log").unlink()
    disk.keep_loaded("1-a", ["*.sst"])
    disk.restore_loaded("1-a", ["*.sst"])
    assert {p.name: p.read_text() for p in Path(database).iterdir()} == {
        "1.sst": "sorted", "CURRENT": "loaded",
    }  # fmt: skip
    assert Path(f"{wal}/1.log").read_text() == "tail"
    assert Path(f"{database}/1.sst").stat().st_nlink == 2
    assert Path(f"{database}/CURRENT").stat().st_nlink == 1


def test_collecting_twice_gives_the_same(disk: HostDisk, roots: Roots, supervisor: str) -> None:
    make_fresh(disk, supervisor, 1)
    database, _ = disk.database("1-a")
    run_dir = disk.run_dir("1-a", 1, 2, "read")
    write(f"{run_dir}/stdout", "result\n" * 1000)
    write(f"{run_dir}/status.json", "{}")
    write(f"{database}/OPTIONS-000009", "old")
    write(f"{database}/OPTIONS-000010", "new")
    write(roots.raw / "1-a/1/02-read.partial/stdout", "half of it")
    first = disk.collect(run_dir, "1-a", "OPTIONS-*")
    assert first.raw_path == "1-a/1/02-read"
    assert first.options_text == "new"
    folder = roots.raw / first.raw_path
    assert sorted(p.name for p in folder.iterdir()) == ["OPTIONS.gz", "status.json", "stdout.gz"]
    assert gzip.decompress((folder / "stdout.gz").read_bytes()) == b"result\n" * 1000
    assert not folder.with_name("02-read.partial").exists()
    assert disk.collect(run_dir, "1-a", "OPTIONS-*") == first
    assert disk.collect(run_dir, "1-a", "") == first


def test_no_options_no_file(disk: HostDisk, roots: Roots, supervisor: str) -> None:
    make_fresh(disk, supervisor, 1)
    run_dir = disk.run_dir("1-a", 1, 1, "load")
    write(f"{run_dir}/stdout", "x")
    assert disk.collect(run_dir, "1-a", "OPTIONS-*").options_text is None
    write(f"{disk.run_dir('1-a', 1, 2, 'read')}/stdout", "x")
    disk.remove("1-a")
    write(f"{roots.work}/lost/1/03-scan/stdout", "x")
    with pytest.raises(TransportError, match=r"this machine: cannot read .*No such file"):
        disk.collect(f"{roots.work}/lost/1/03-scan", "1-a", "OPTIONS-*")
    assert not list(roots.raw.rglob("*.partial"))


def test_compressing_is_reproducible_and_hashing_sees_every_change(tmp_path: Path) -> None:
    hashes = []
    for name in ("a", "b"):
        write(tmp_path / name / "stdout", "text")
        write(tmp_path / name / "samples", "t_s\n0\n")
        (tmp_path / name / "folder").mkdir()
        compress(tmp_path / name)
        (tmp_path / name / "folder").rmdir()
        compress(tmp_path / name)
        hashes.append(folder_hash(tmp_path / name))
    assert hashes[0] == hashes[1]
    (tmp_path / "b" / "samples.gz").rename(tmp_path / "b" / "other.gz")
    assert folder_hash(tmp_path / "b") != hashes[0]
