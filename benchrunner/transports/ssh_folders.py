"""Whole folders to and from a host as one tar stream, checked by its SHA-256 on both sides.

Large files of a folder that is fetched come one by one, since those can be resumed.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import shutil
import stat
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import paramiko

from benchrunner.errors import TransportError
from benchrunner.transports import ConnectionLostError
from benchrunner.transports.sftp import FAILURE, NO_SUCH_FILE, SftpError
from benchrunner.transports.ssh_command import complete, request_on, started
from benchrunner.transports.ssh_files import (
    HASH,
    LARGE_BYTES,
    CopyError,
    DamagedCopyError,
    get_file,
    make_parents,
    no_room,
    part_name,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from benchrunner.transports.sftp import Sftp
    from benchrunner.transports.ssh_command import Running
    from benchrunner.transports.ssh_link import Link

_BLOCK_BYTES = 1 << 20
_PACKING: Mapping[str, Any] = {
    "bufsize": _BLOCK_BYTES,
    "copybufsize": _BLOCK_BYTES,
    "format": tarfile.GNU_FORMAT,
}
"""GNU's format keeps names as the bytes that they are."""
_SHORT_S = 600.0
_ABOVE = str(LARGE_BYTES // 512 - 1)
"""For ``find -size +``: whole blocks of 512 bytes that a large file has more than."""
_SEND = (
    'LC_ALL=C; export LC_ALL; cd -- "$1" || exit 1; exec 3>&1; '
    '{ { { find . ! \\( -type f -size "+$2" \\) -print0; echo "ended $?" >&2; }'
    ' | tar --null --no-recursion -cf - -T -; echo "ended $?" >&2; }'
    f" | tee /dev/fd/4 | {HASH} >&2; }} 4>&1 | cat >&3"
)
"""Prints a tar stream; on stderr how find and tar ended, and the stream's hash. ``cat``: what is
behind /dev/fd must be a pipe, which the command's own output need not be."""
_RECEIVE = (
    'LC_ALL=C; export LC_ALL; rm -rf -- "$1"; mkdir -- "$1" || exit 1; '
    f"{{ tee /dev/fd/4 | {HASH} >&2; }} 4>&1"
    ' | { tar --no-same-owner -xpf - -C "$1"; echo "ended $?" >&2; cat >/dev/null; }'
)
_ENDED = "ended "
_HASH_LINE = re.compile(r"[0-9a-f]{64} ( -|\*stdin)")
_HARMLESS = "file changed as we read it"
_IGNORED = "socket ignored"


def put_folder(link: Link, source: Path, target: str, token: str, sent: set[str]) -> None:
    """Copies a folder to the host, where nothing is yet.

    Args:
        link: to the host.
        source: here.
        target: there.
        token: of this copy, the same for each attempt at it.
        sent: what earlier attempts at it have sent completely; filled here.
    """
    sftp = link.sftp()
    part = part_name(target, token)
    if part in sent and not _exists(sftp, part) and _exists(sftp, target):
        return  # renamed, and the answer was lost with the connection: nobody else knows the name
    if _exists(sftp, target):
        raise CopyError("something is there already")
    make_parents(sftp, target)
    _only_plain(source)
    try:
        _send(link, source, part)
        sent.add(part)
        _take_place(sftp, part, target)
    except ConnectionLostError:
        raise
    except CopyError as error:
        # Asked before the part goes, which may be what fills the disk.
        reason = no_room(sftp, posixpath.dirname(target))
        _clear(link, part)
        if reason is None:
            raise
        raise CopyError(reason) from error
    except BaseException:
        _clear(link, part)
        raise


def _take_place(sftp: Sftp, part: str, target: str) -> None:
    """Gives a folder its name unless something has it."""
    try:
        sftp.rename(part, target)
    except SftpError as error:
        if error.code == FAILURE and _exists(sftp, target):
            raise CopyError("something is there already") from error
        raise


def _clear(link: Link, part: str) -> None:
    """Deletes what an attempt left; that it cannot be done is less of interest than why."""
    with suppress(TransportError):
        argv = ["rm", "-rf", "--one-file-system", "--", part]
        complete(link, request_on(link, argv), None, _SHORT_S)


def get_folder(link: Link, source: str, target: Path, token: str) -> None:
    """Copies a folder from the host, to where nothing is yet."""
    if target.exists() or target.is_symlink():
        raise CopyError("something is there already")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(part_name(str(target), token))
    sign = hashlib.sha256(os.fsencode(source)).hexdigest()[:16]
    large = Path(part_name(str(target), f"large-{sign}"))
    try:
        part.mkdir()
        modes = _receive(link, source, part)
        _get_large_files(link, source, part, large)
        for folder, mode in reversed(modes.items()):
            folder.chmod(mode)
        part.rename(target)
        shutil.rmtree(large, ignore_errors=True)
    except BaseException as error:
        shutil.rmtree(part, ignore_errors=True)
        if not isinstance(error, ConnectionLostError | KeyboardInterrupt):
            shutil.rmtree(large, ignore_errors=True)
        raise


def _get_large_files(link: Link, source: str, part: Path, large: Path) -> None:
    """Fetches each into a folder that outlives a failed attempt, then moves them all."""
    sftp = link.sftp()
    fetched = []
    for name in _large_files(link, source):
        path = posixpath.join(source, name)
        known = sftp.stat(path)
        sign = os.fsencode(f"{name} {known.size} {known.mtime_s}")
        kept = large / hashlib.sha256(sign).hexdigest()
        if not kept.exists():
            get_file(link, path, known, kept, "")
        fetched.append((kept, part / name))
    for kept, place in fetched:
        place.unlink(missing_ok=True)
        kept.rename(place)


def _large_files(link: Link, source: str) -> list[str]:
    """Names of the files that do not come with the stream.

    They are looked for after it: one that grows in between comes twice, rather than never.
    """
    argv = ["find", source, "-type", "f", "-size", f"+{_ABOVE}", "-printf", "%P\\0"]
    done = complete(link, request_on(link, argv), None, _SHORT_S)
    if done.exit_code != 0:
        raise CopyError(_first_line(done.stderr.decode(errors="replace").splitlines()))
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]


def _receive(link: Link, source: str, part: Path) -> dict[Path, int]:
    """Unpacks the stream of everything that is not large; returns the modes of the folders."""
    argv = ["/bin/sh", "-c", _SEND, "sh", source, _ABOVE]
    with started(link, request_on(link, argv)) as running:
        running.feed(b"")
        stream: Any = _Incoming(running)
        modes: dict[Path, int] = {}
        damage = ""
        try:
            with tarfile.open(fileobj=stream, mode="r|", bufsize=_BLOCK_BYTES) as archive:
                modes = _unpack(archive, part)
        except tarfile.TarError as error:
            damage = str(error)
        stream.drain()
        _check(running, stream.digest.hexdigest())
    if damage:
        raise DamagedCopyError(damage)
    return modes


def _send(link: Link, source: Path, part: str) -> None:
    """Packs a folder into the stream that the host unpacks."""
    with started(link, request_on(link, ["/bin/sh", "-c", _RECEIVE, "sh", part])) as running:
        stream: Any = _Outgoing(running)
        try:
            with tarfile.open(fileobj=stream, mode="w|", **_PACKING) as archive:
                archive.add(source, arcname=".")
        except _ClosedError:
            # The host has said why, or it is gone.
            pass
        running.feed(b"")
        while running.read(_BLOCK_BYTES):
            pass
        _check(running, stream.digest.hexdigest())


class _ClosedError(Exception):
    """The other side takes nothing more."""


class _Incoming:
    """Output of a command as a file that tarfile reads."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self.digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._running.read(size)
        self.digest.update(data)
        return data

    def drain(self) -> None:
        """The padding behind the archive is part of the stream."""
        while self.read(_BLOCK_BYTES):
            pass


class _Outgoing:
    """Input of a command as a file that tarfile writes."""

    def __init__(self, running: Running) -> None:
        self._channel = running.channel
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        try:
            self._channel.sendall(data)
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise _ClosedError from error
        self.digest.update(data)
        return len(data)


def _check(running: Running, digest: str) -> None:
    """How the host's side of the stream ended, and whether both have seen the same."""
    done = running.completed()
    lines = done.stderr.decode(errors="replace").splitlines()
    hashes = [line[:64] for line in lines if _HASH_LINE.fullmatch(line)]
    ends = [line for line in lines if line.startswith(_ENDED)]
    words = [line for line in lines if line not in ends and not _HASH_LINE.fullmatch(line)]
    worrying = [line for line in words if _HARMLESS not in line]
    failed = done.exit_code != 0 or not ends or any(line != "ended 0" for line in ends)
    ignored = [line for line in words if _IGNORED in line]
    if ignored or (failed and (worrying or not words)):
        raise CopyError(_first_line(ignored or worrying))
    if hashes and hashes != [digest]:
        raise DamagedCopyError("the stream's SHA-256 here is not the one there")


def _unpack(archive: tarfile.TarFile, part: Path) -> dict[Path, int]:
    """Writes an archive's members; nothing gets out of the folder, not even through a link."""
    folders: dict[Path, int] = {}
    for member in archive:
        names = [name for name in member.name.split("/") if name not in ("", ".")]
        path = part.joinpath(*names)
        if member.name.startswith("/") or ".." in names:
            raise CopyError(f"{member.name}: the host names a file outside of the folder")
        if names and path.parent not in folders:
            raise CopyError(f"{member.name}: the host names a file in no folder of the folder")
        if member.isdir():
            path.mkdir(mode=0o700, exist_ok=not names)
            folders[path] = stat.S_IMODE(member.mode)
        elif member.issym():
            path.symlink_to(member.linkname)
        elif member.isreg() or member.islnk():
            _unpack_file(archive, member, path, part)
        else:
            raise CopyError(f"{member.name}: it is neither a file, a folder nor a link")
    return folders


def _unpack_file(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path, part: Path) -> None:
    if member.islnk():
        first = [name for name in member.linkname.split("/") if name not in ("", ".")]
        if ".." in first:
            raise CopyError(f"{member.linkname}: the host names a file outside of the folder")
        shutil.copy2(part.joinpath(*first), path, follow_symlinks=False)
        return
    content = archive.extractfile(member)
    assert content is not None  # noqa: S101
    with path.open("xb") as file:
        shutil.copyfileobj(content, file, _BLOCK_BYTES)
    path.chmod(stat.S_IMODE(member.mode))


def _only_plain(source: Path) -> None:
    """Refuses what is no file, folder or link before anything is sent."""

    def refuse(error: OSError) -> None:
        raise error

    for folder, _, names in os.walk(source, onerror=refuse):
        for name in names:
            path = Path(folder, name)
            if not path.is_symlink() and not path.is_file():
                raise CopyError(f"{path}: it is neither a file, a folder nor a link")


def _exists(sftp: Sftp, path: str) -> bool:
    try:
        sftp.lstat(path)
    except SftpError as error:
        if error.code != NO_SUCH_FILE:
            raise
        return False
    return True


def _first_line(lines: Sequence[str]) -> str:
    """What went wrong first; what follows is mostly its consequence."""
    return next((line.strip() for line in lines if line.strip()), "the host gives no reason")
