"""Files over SSH beyond the contract; with a real sshd."""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import tarfile
from typing import TYPE_CHECKING

import pytest
from sshd_support import DelayProxy, Sshd, sshd

from benchrunner.errors import TransportError
from benchrunner.places import _is_full
from benchrunner.transports import (
    MissingFileError,
)
from benchrunner.transports.ssh_files import CopyError
from benchrunner.transports.ssh_folders import _unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchrunner.transports.ssh import SshTransport

__all__ = ["sshd"]
pytestmark = pytest.mark.ssh

LARGE = 9 << 20


@pytest.fixture
def transport(sshd: Sshd) -> Iterator[SshTransport]:
    opened = sshd.connect()
    yield opened
    opened.close()


# ---------------------------------------------------------------- files


def test_a_host_without_sftp_is_said(sshd: Sshd) -> None:
    sshd.settings |= {"Subsystem": ""}
    sshd.restart()
    opened = sshd.connect()
    with pytest.raises(TransportError, match=r"offers no file transfer \(SFTP\)") as caught:
        opened.size("/")
    assert caught.value.hint.startswith("apt-get install -y openssh-sftp-server")
    opened.close()


def test_large_files_go_and_come(transport: SshTransport, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(LARGE))
    transport.put(source, str(tmp_path / "far" / "deep" / "file"), 0o640)
    transport.get(str(tmp_path / "far" / "deep" / "file"), tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == source.read_bytes()
    assert (tmp_path / "back").stat().st_mode & 0o777 == 0o640
    assert transport.read(str(source), 5) == source.read_bytes()[5:]


def test_without_a_program_that_hashes_files_are_read_back(sshd: Sshd, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "head", "cat"):
        (programs / name).symlink_to(str(shutil.which(name)))
    opened = sshd.connect(sshd.host(env={"PATH": str(programs)}))
    source = tmp_path / "source"
    source.write_bytes(os.urandom(400_000))
    opened.put(source, str(tmp_path / "far"))
    opened.get(str(tmp_path / "far"), tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == source.read_bytes()
    opened.close()


def test_files_of_proc_are_fetched(transport: SshTransport, tmp_path: Path) -> None:
    transport.get("/proc/self/limits", tmp_path / "limits")
    assert b"Max open files" in (tmp_path / "limits").read_bytes()
    assert len(transport.read("/proc/self/smaps", 100, 70_000)) == 70_000 or transport.read(
        "/proc/self/smaps"
    )


def test_a_folder_with_large_files_and_links_comes_whole(
    transport: SshTransport, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    (tree / "deep").mkdir(parents=True, mode=0o750)
    (tree / "deep" / "large").write_bytes(os.urandom(LARGE))
    (tree / "small").write_bytes(b"x" * (8 << 20))
    os.link(tree / "small", tree / "twin")
    transport.get(str(tree), tmp_path / "back")
    back = tmp_path / "back"
    for name in ("deep/large", "small", "twin"):
        assert (back / name).read_bytes() == (tree / name).read_bytes()
    assert (back / "deep").stat().st_mode & 0o777 == 0o750
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "sshd", "tree"]


def test_a_folder_with_a_pipe_is_refused_both_ways(transport: SshTransport, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    os.mkfifo(tree / "pipe")
    copies: list[Callable[[], None]] = [
        lambda: transport.put(tree, str(tmp_path / "far")),
        lambda: transport.get(str(tree), tmp_path / "back"),
    ]
    for copy in copies:
        with pytest.raises(TransportError, match=r"pipe: it is neither a file, a folder nor a"):
            copy()
    (tree / "pipe").unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tree / "socket"))
        with pytest.raises(TransportError, match=r"socket: socket ignored"):
            transport.get(str(tree), tmp_path / "back")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sshd", "tree"]


def test_a_missing_program_for_folders_is_named(sshd: Sshd, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "find", "tee", "cat", "rm", "mkdir", "sha256sum"):
        (programs / name).symlink_to(str(shutil.which(name)))
    opened = sshd.connect(sshd.host(env={"PATH": str(programs)}))
    with pytest.raises(TransportError, match=r"cannot be fetched to .* on .*: .*tar: .*not found"):
        opened.get(str(programs), tmp_path / "back")
    with pytest.raises(TransportError, match=r"cannot be copied to .* on .*: .*tar: .*not found"):
        opened.put(programs, str(tmp_path / "far"))
    opened.close()


def test_a_slow_line_costs_round_trips_only(sshd: Sshd, tmp_path: Path) -> None:
    """Four megabytes at 40 ms would take five seconds if every 32 KiB waited for its answer."""
    with DelayProxy(sshd.port, delay_s=0.02) as network:
        sshd.trust(f"[127.0.0.1]:{network.port}")
        opened = sshd.connect(sshd.host(address=f"127.0.0.1:{network.port}"))
        source = tmp_path / "source"
        source.write_bytes(os.urandom(4 << 20))
        opened.put(source, str(tmp_path / "far"))
        opened.get(str(tmp_path / "far"), tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == source.read_bytes()
        opened.close()


def test_a_read_of_what_is_not_there_names_it(transport: SshTransport, tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=rf"cannot be read on .*: {tmp_path}/x is not there"):
        transport.read(str(tmp_path / "x"))
    with pytest.raises(TransportError, match=r"is no path on .*: embedded null byte"):
        transport.read("/x\0y")


# ---------------------------------------------------------------- hosts that mean harm


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["/etc/passwd"], "outside of the folder"),
        (["../x"], "outside of the folder"),
        (["link>/tmp", "link/x"], "in no folder of the folder"),
        (["x", "y=../../x"], "outside of the folder"),
        (["missing/x"], "in no folder of the folder"),
    ],
)
def test_an_archive_gets_nothing_out_of_its_folder(
    tmp_path: Path, names: list[str], message: str
) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name in [".", *names]:
            archive.addfile(_member(name))
    file.seek(0)
    part = tmp_path / "part"
    part.mkdir()
    with (
        tarfile.open(fileobj=file, mode="r|") as archive,
        pytest.raises(CopyError, match=message),
    ):
        _unpack(archive, part)
    assert [path.name for path in tmp_path.iterdir()] == ["part"]


def _member(text: str) -> tarfile.TarInfo:
    """A folder ``.``, a link ``a>b``, a hard link ``a=b``, else an empty file."""
    for sign, kind in ((">", tarfile.SYMTYPE), ("=", tarfile.LNKTYPE)):
        name, found, target = text.partition(sign)
        if found:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            return member
    member = tarfile.TarInfo(text)
    member.type = tarfile.DIRTYPE if text == "." else tarfile.REGTYPE
    return member


# ---------------------------------------------------------------- places


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    yield from mounted(tmp_path / "disk", "size=2m")


def mounted(path: Path, options: str) -> Iterator[Path]:
    path.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(argv, capture_output=True, check=False).returncode:
        pytest.skip("mounting a tmpfs is not permitted")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.fixture
def big(tmp_path: Path) -> Path:
    """Larger than the small disk."""
    path = tmp_path / "big"
    path.write_bytes(os.urandom(3 << 20))
    return path


def test_a_full_disk_there_is_said(transport: SshTransport, small_disk: Path, big: Path) -> None:
    with pytest.raises(TransportError, match=r"copied to .* on .*: no space left on device") as e:
        transport.put(big, str(small_disk / "x"))
    assert not _is_full(e.value.__cause__)
    tree = big.parent / "tree"
    tree.mkdir()
    big.rename(tree / "big")
    with pytest.raises(TransportError, match=r"copied to .* on .*: .*[Nn]o space left on device"):
        transport.put(tree, str(small_disk / "tree"))
    assert list(small_disk.iterdir()) == []


def test_a_full_disk_here_is_told_from_one_there(
    transport: SshTransport, small_disk: Path, big: Path
) -> None:
    tree = big.parent / "tree"
    tree.mkdir()
    os.link(big, tree / "big")
    for source in (big, tree):
        with pytest.raises(TransportError, match=r"no space left on device on this machine") as e:
            transport.get(str(source), small_disk / "x")
        assert _is_full(e.value.__cause__)
    assert list(small_disk.iterdir()) == []


def test_a_place_that_cannot_be_written_is_said(
    transport: SshTransport, small_disk: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(TransportError, match=r"on .*: read-only file system"):
        transport.put(tmp_path / "file", str(small_disk / "file"))
    with pytest.raises(TransportError, match=r"on .*: .*(permission denied|is not there|gives no)"):
        transport.put(tmp_path / "file", "/proc/sys/file")


def test_a_file_in_place_of_a_folder_is_said(transport: SshTransport, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(TransportError, match=r"cannot be copied to .* on "):
        transport.put(tmp_path / "file", str(tmp_path / "file" / "below"))
