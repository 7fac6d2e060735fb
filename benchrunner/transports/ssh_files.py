"""Single files to and from a host by SFTP: complete or not there, checked, large ones resumed.

A large file goes under a name that says which file it is, so that the next attempt, also by another
process, goes on with what is there. Whatever is there is checked in the end by the whole's SHA-256.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.errors import TransportError
from benchrunner.transports import ConnectionLostError
from benchrunner.transports.sftp import (
    BAD_MESSAGE,
    CREATE,
    FAILURE,
    NO_SUCH_FILE,
    PERMISSION_DENIED,
    READ,
    TRUNCATE,
    WRITE,
    SftpError,
)
from benchrunner.transports.ssh_command import complete, request_on

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from benchrunner.transports.sftp import Attributes, Handle, Sftp
    from benchrunner.transports.ssh_link import Link

LARGE_BYTES = 8 << 20
"""From here on a file is resumed."""
_SMALL_BYTES = 128 << 10
"""Up to here what was written is read back: a hash on the host would cost a process there."""
_BLOCK_BYTES = 1 << 20
_HASH_S = 3600.0
HASH = "{ openssl dgst -sha256 -r 2>/dev/null || sha256sum; }"
"""Shell words that hash their input; Debian's sha256sum is several times slower than openssl."""
_NO_REASON = "the host's SFTP server gives no reason"


class CopyError(Exception):
    """A copy cannot be made; the text says why, for a message that has said what and where."""


class DamagedCopyError(CopyError):
    """What arrived is not what was sent: worth another attempt."""


def put_file(link: Link, source: Path, target: str, mode: int | None, token: str) -> None:
    """Copies a file to the host; ``token`` is the same for each attempt of one copy."""
    with source.open("rb") as file:
        local = os.fstat(file.fileno())
        if not stat.S_ISREG(local.st_mode):
            raise CopyError("it is neither a file nor a folder")
        sign = f"{local.st_size} {local.st_mtime_ns} {source.name}"
        part = _part(target, local.st_size, sign, token)
        sftp = link.sftp()
        try:
            _put_part(link, file, part, stat.S_IMODE(local.st_mode) if mode is None else mode)
            _rename(sftp, part, target)
        except ConnectionLostError:
            raise
        except SftpError as error:
            # Asked before the part goes, which may be what fills the disk.
            reason = None if error.code == NO_SUCH_FILE else why(sftp, error, writing=True)
            _remove(sftp, part)
            if reason is None:
                raise
            raise CopyError(reason) from error
        except BaseException as error:
            if local.st_size < LARGE_BYTES or not isinstance(error, KeyboardInterrupt):
                _remove(sftp, part)
            raise


def get_file(link: Link, source: str, known: Attributes, target: Path, token: str) -> None:
    """Copies a file from the host; ``known`` is what the host says of it."""
    if target.is_dir():
        raise CopyError("a folder is in the way")
    target.parent.mkdir(parents=True, exist_ok=True)
    size = known.size or 0
    part = Path(_part(str(target), size, f"{source} {size} {known.mtime_s}", token))
    try:
        if size:
            _get_part(link, source, size, part)
        else:
            # Files of /proc state no length.
            part.write_bytes(link.sftp().read_whole(source, 0, None))
        if known.mode is not None:
            part.chmod(stat.S_IMODE(known.mode))
        part.replace(target)
    except BaseException as error:
        resumable = isinstance(error, ConnectionLostError | KeyboardInterrupt)
        if size < LARGE_BYTES or not resumable:
            part.unlink(missing_ok=True)
        raise


def why(sftp: Sftp, error: SftpError, *, writing: bool) -> str:
    """The reason for a status, in more words than SFTP has for it."""
    if error.code == PERMISSION_DENIED:
        return "permission denied"
    if error.code == BAD_MESSAGE and len(os.fsencode(posixpath.basename(error.path))) > 255:
        return "file name too long"
    if error.code == FAILURE:
        try:
            return _why_failure(sftp, error.path, writing=writing)
        except SftpError:
            return _NO_REASON
    return f"{_NO_REASON} but status {error.code}"


def make_parents(sftp: Sftp, path: str) -> None:
    """Makes the folders above a path that are not there."""
    parent = posixpath.dirname(path)
    try:
        sftp.stat(parent)
    except SftpError as error:
        if error.code != NO_SUCH_FILE or parent == path:
            raise
        make_parents(sftp, parent)
        try:
            sftp.make_folder(parent)
        except SftpError:
            # Another thread may have made it; else this says why not.
            sftp.stat(parent)


def part_name(path: str, token: str) -> str:
    """A name beside ``path`` that no file of anybody has."""
    folder, name = posixpath.split(path)
    short = os.fsdecode(os.fsencode(name)[:200])
    return posixpath.join(folder, f".{short}.{token}.part")


def _part(path: str, size: int, sign: str, token: str) -> str:
    """The name under which a file arrives; that of a large one says which file it is."""
    if size < LARGE_BYTES:
        return part_name(path, token)
    return part_name(path, hashlib.sha256(os.fsencode(sign)).hexdigest()[:16])


def _put_part(link: Link, file: BinaryIO, part: str, mode: int) -> None:
    sftp = link.sftp()
    size = os.fstat(file.fileno()).st_size
    large = size >= LARGE_BYTES
    handle = _create(sftp, part, WRITE | CREATE | READ | (0 if large else TRUNCATE))
    try:
        there = min(_length(sftp, part), size) if large else 0
        digest = hashlib.sha256()
        _skip(file, there, digest)
        end = sftp.write(handle, _blocks(file, digest), there)
        sftp.set_mode(handle, mode)
        arrived = _length(sftp, part)
        if arrived != end:
            raise DamagedCopyError(f"{end} bytes were sent, {arrived} are there")
        if digest.digest() != _hash_there(link, handle, end):
            raise DamagedCopyError("its SHA-256 there is not the one here")
    finally:
        sftp.close(handle)


def _get_part(link: Link, source: str, size: int, part: Path) -> None:
    sftp = link.sftp()
    digest = hashlib.sha256()
    handle = sftp.open(source, READ)
    try:
        with ThreadPoolExecutor(1, "ssh-hash") as beside:
            # A small file comes in one message of the server, whose own checksum covers it.
            large = size > _SMALL_BYTES
            there = beside.submit(_hash_there, link, handle, size) if large else None
            _fetch(sftp, handle, size, part, digest)
            if there is not None and digest.digest() != there.result():
                raise DamagedCopyError("its SHA-256 here is not the one there")
    finally:
        sftp.close(handle)


def _fetch(sftp: Sftp, handle: Handle, size: int, part: Path, digest: hashlib._Hash) -> None:
    """Writes what is still missing of a file."""
    with part.open("r+b" if part.exists() else "w+b") as file:
        there = min(os.fstat(file.fileno()).st_size, size)
        _skip(file, there, digest)
        file.truncate(there)
        for block in sftp.read(handle, there, size - there):
            file.write(block)
            digest.update(block)
        if file.tell() != size:
            raise DamagedCopyError(f"it shrank from {size} to {file.tell()} bytes meanwhile")


def _create(sftp: Sftp, path: str, flags: int) -> Handle:
    """Opens a file to write, and makes its folder only if it turns out to be missing."""
    try:
        return sftp.open(path, flags, 0o600)
    except SftpError as error:
        if error.code != NO_SUCH_FILE:
            raise
    make_parents(sftp, path)
    return sftp.open(path, flags, 0o600)


def _hash_there(link: Link, handle: Handle, size: int) -> bytes:
    """SHA-256 of the first ``size`` bytes of an open file, reckoned on the host if it can."""
    if size > _SMALL_BYTES:
        argv = ["/bin/sh", "-c", f'head -c "$2" -- "$1" | {HASH}', "sh", handle.path, str(size)]
        done = complete(link, request_on(link, argv), None, _HASH_S)
        word = done.stdout[:64].decode(errors="replace")
        if done.exit_code == 0 and len(word) == 64:
            return bytes.fromhex(word)
    digest = hashlib.sha256()
    for block in link.sftp().read(handle, 0, size):
        digest.update(block)
    return digest.digest()


def _skip(file: BinaryIO, length: int, digest: hashlib._Hash) -> None:
    """Moves over what is on the other side already, taking it into the hash."""
    while length:
        block = file.read(min(length, _BLOCK_BYTES))
        if not block:
            raise DamagedCopyError("the file became shorter meanwhile")
        digest.update(block)
        length -= len(block)


def _blocks(file: BinaryIO, digest: hashlib._Hash) -> Iterator[bytes]:
    while block := file.read(_BLOCK_BYTES):
        digest.update(block)
        yield block


def _length(sftp: Sftp, path: str) -> int:
    return sftp.stat(path).size or 0


def _rename(sftp: Sftp, part: str, target: str) -> None:
    try:
        sftp.replace(part, target)
    except SftpError as error:
        if error.code == FAILURE and _is_folder(sftp, target):
            raise CopyError("a folder is in the way") from error
        raise


def _is_folder(sftp: Sftp, path: str) -> bool:
    try:
        mode = sftp.stat(path).mode
    except SftpError:
        return False
    return mode is not None and stat.S_ISDIR(mode)


def _remove(sftp: Sftp, path: str) -> None:
    """Takes away what an attempt left that is not worth going on with."""
    try:
        sftp.remove(path)
    except (SftpError, TransportError):
        return


def _why_failure(sftp: Sftp, path: str, *, writing: bool) -> str:
    """What may be behind ``Failure``, the status for everything that has no other."""
    if _is_folder(sftp, path):
        return "is a directory"
    return (no_room(sftp, posixpath.dirname(path)) if writing else None) or _NO_REASON


def no_room(sftp: Sftp, folder: str) -> str | None:
    """Why nothing can be written in a folder; ``None`` when its file system has room."""
    room = sftp.room(folder)
    if room is None:
        return None
    free_bytes, writable = room
    if not writable:
        return "read-only file system"
    return "no space left on device" if free_bytes < _BLOCK_BYTES else None
