"""The SFTP protocol, version 3, as OpenSSH speaks it: many requests under way, from many threads.

In: paths and bytes. Out: bytes, attributes, and ``SftpError`` with the server's status. It knows
nothing of copying, resuming or checking; ``ssh_files`` does that.
"""

from __future__ import annotations

import os
import struct
import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

import paramiko

from benchrunner.transports import ConnectionLostError

if TYPE_CHECKING:
    from collections.abc import Iterator

READ, WRITE, CREATE, TRUNCATE = 0x1, 0x2, 0x8, 0x10
END_OF_FILE, NO_SUCH_FILE, PERMISSION_DENIED, FAILURE, BAD_MESSAGE = 1, 2, 3, 4, 5
_INIT, _VERSION, _OPEN, _CLOSE, _READ, _WRITE, _LSTAT, _FSTAT = 1, 2, 3, 4, 5, 6, 7, 8
_SETSTAT, _FSETSTAT, _REMOVE, _MKDIR, _STAT, _RENAME = 9, 10, 13, 14, 17, 18
_STATUS, _HANDLE, _DATA, _ATTRS, _EXTENDED, _EXTENDED_REPLY = 101, 102, 103, 105, 200, 201
_SAFE_CHUNK = 32 << 10
"""What every server takes in one request."""
_UNDER_WAY = 32
"""Requests sent before the first answer is waited for: 8 MiB with OpenSSH."""


class SftpError(Exception):
    """The server says no."""

    def __init__(self, code: int, text: str, path: str) -> None:
        super().__init__(f"{path}: {text} ({code})")
        self.code = code
        self.path = path


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a server says of a file; ``None`` where it does not."""

    size: int | None
    mode: int | None
    mtime_s: int | None


@dataclass(frozen=True, slots=True)
class Handle:
    """An open file."""

    raw: bytes
    path: str


_Reply = Future[tuple[int, bytes]]


class Sftp:
    """One SFTP session on a channel."""

    def __init__(self, channel: paramiko.Channel, label: str) -> None:
        self._channel = channel
        self._label = label
        self._lock = threading.Lock()
        self._waiting: dict[int, _Reply] = {}
        self._next = 0
        self.broken = False
        self._send(_INIT, struct.pack(">I", 3))
        kind, payload = self._receive()
        if kind != _VERSION:
            raise paramiko.SSHException("no SFTP server")
        extensions = _pairs(payload[4:])
        channel.settimeout(None)
        threading.Thread(target=self._dispatch, name="sftp", daemon=True).start()
        self.has_posix_rename = b"posix-rename@openssh.com" in extensions
        self._has_statvfs = b"statvfs@openssh.com" in extensions
        self._read_chunk = self._write_chunk = _SAFE_CHUNK
        if b"limits@openssh.com" in extensions:
            self._learn_limits()

    # ------------------------------------------------------------ files

    def open(self, path: str, flags: int, mode: int = 0o666) -> Handle:
        """Opens a file; ``mode`` is for one that is made."""
        body = _text(path) + struct.pack(">III", flags, 0x4, mode)
        return Handle(_string(self._ask(_OPEN, body, path)), path)

    def close(self, handle: Handle) -> None:
        """Closes a file; nobody waits for the answer."""
        self._request(_CLOSE, _packed(handle.raw))

    def read(self, handle: Handle, offset: int, length: int) -> Iterator[bytes]:
        """The bytes of a range in order, many requests ahead; ends early at the end of the file."""
        end = offset + length
        asked = got = offset
        ahead: deque[tuple[int, _Reply]] = deque()
        while got < end:
            while asked < end and len(ahead) < _UNDER_WAY:
                wanted = min(self._read_chunk, end - asked)
                body = _packed(handle.raw) + struct.pack(">QI", asked, wanted)
                ahead.append((wanted, self._request(_READ, body)))
                asked += wanted
            wanted, reply = ahead.popleft()
            try:
                data = _string(self._result(reply, handle.path))
            except SftpError as error:
                if error.code != END_OF_FILE:
                    raise
                return
            yield data
            got += len(data)
            if len(data) < wanted:
                # What was asked for behind the gap is of no use.
                ahead.clear()
                asked = got

    def read_whole(self, path: str, offset: int, limit: int | None) -> bytes:
        """A file from an offset to its end: two round trips for a small one.

        The length that a file states does not count: those of /proc state none.
        """
        handle = self.open(path, READ)
        try:
            first = self._read_chunk if limit is None else min(limit, self._read_chunk)
            start = _packed(handle.raw) + struct.pack(">QI", offset, first)
            reply = self._request(_READ, start)
            stated = self._request(_FSTAT, _packed(handle.raw))
            try:
                data = _string(self._result(reply, path))
            except SftpError as error:
                if error.code != END_OF_FILE:
                    raise
                return b""
            size = _attributes(self._result(stated, path)[1]).size or 0
            end = size if limit is None else min(size, offset + limit)
            if len(data) == limit or (size and offset + len(data) == size):
                return data
            data += b"".join(self.read(handle, offset + len(data), end - offset - len(data)))
            return data + self._rest(handle, offset + len(data), limit, len(data))
        finally:
            self.close(handle)

    def _rest(self, handle: Handle, offset: int, limit: int | None, got: int) -> bytes:
        """What comes behind the length that a file states, one request at a time."""
        parts = []
        while limit is None or got < limit:
            wanted = self._read_chunk if limit is None else min(self._read_chunk, limit - got)
            part = b"".join(self.read(handle, offset, wanted))
            if not part:
                break
            parts.append(part)
            offset += len(part)
            got += len(part)
        return b"".join(parts)

    def write(self, handle: Handle, chunks: Iterator[bytes], offset: int) -> int:
        """Writes bytes from an offset on, many requests ahead; returns where they end."""
        ahead: deque[_Reply] = deque()
        for chunk in chunks:
            for start in range(0, len(chunk), self._write_chunk):
                piece = chunk[start : start + self._write_chunk]
                body = _packed(handle.raw) + struct.pack(">Q", offset) + _packed(piece)
                ahead.append(self._request(_WRITE, body))
                offset += len(piece)
                if len(ahead) >= _UNDER_WAY:
                    self._result(ahead.popleft(), handle.path)
        while ahead:
            self._result(ahead.popleft(), handle.path)
        return offset

    def set_mode(self, handle: Handle, mode: int) -> None:
        """Sets the mode bits of an open file."""
        self._ask(_FSETSTAT, _packed(handle.raw) + struct.pack(">II", 0x4, mode), handle.path)

    # ------------------------------------------------------------ names

    def stat(self, path: str) -> Attributes:
        """What a path leads to."""
        return _attributes(self._ask(_STAT, _text(path), path)[1])

    def lstat(self, path: str) -> Attributes:
        """What stands under a name; a link is a link."""
        return _attributes(self._ask(_LSTAT, _text(path), path)[1])

    def make_folder(self, path: str) -> None:
        """Makes a folder."""
        self._ask(_MKDIR, _text(path) + struct.pack(">I", 0), path)

    def remove(self, path: str) -> None:
        """Deletes a file or link."""
        self._ask(_REMOVE, _text(path), path)

    def replace(self, old: str, new: str) -> None:
        """Renames a file, over another one if need be, at once."""
        body = _packed(b"posix-rename@openssh.com") + _text(old) + _text(new)
        self._ask(_EXTENDED, body, new)

    def rename(self, old: str, new: str) -> None:
        """Renames where nothing is."""
        self._ask(_RENAME, _text(old) + _text(new), new)

    def room(self, path: str) -> tuple[int, bool] | None:
        """Free bytes where a path is, and whether one may write there at all."""
        if not self._has_statvfs:
            return None
        answer = self._ask(_EXTENDED, _packed(b"statvfs@openssh.com") + _text(path), path)[1]
        numbers = struct.unpack(">11Q", answer[:88])
        return numbers[1] * numbers[4], not numbers[9] & 1

    # ------------------------------------------------------------ messages

    def _learn_limits(self) -> None:
        _, answer = self._ask(_EXTENDED, _packed(b"limits@openssh.com"), "limits")
        _, read, write, _ = struct.unpack(">4Q", answer[:32])
        self._read_chunk = min(read or _SAFE_CHUNK, 1 << 18)
        self._write_chunk = min(write or _SAFE_CHUNK, 1 << 18)

    def _ask(self, kind: int, body: bytes, path: str) -> tuple[int, bytes]:
        return self._result(self._request(kind, body), path)

    def _request(self, kind: int, body: bytes) -> _Reply:
        reply: _Reply = Future()
        with self._lock:
            if self.broken:
                raise self._lost()
            self._next = (self._next + 1) & 0xFFFFFFFF
            number = self._next
            self._waiting[number] = reply
            try:
                self._send(kind, struct.pack(">I", number) + body)
            except (paramiko.SSHException, EOFError, OSError) as error:
                self.broken = True
                raise self._lost() from error
        return reply

    def _result(self, reply: _Reply, path: str) -> tuple[int, bytes]:
        """An answer's kind and content; a status other than OK is an error."""
        kind, content = reply.result()
        if kind == _STATUS:
            (code,) = struct.unpack(">I", content[:4])
            if code:
                raise SftpError(code, _take(content[4:])[0].decode(errors="replace"), path)
        return kind, content

    def _send(self, kind: int, body: bytes) -> None:
        self._channel.sendall(struct.pack(">IB", len(body) + 1, kind) + body)

    def _receive(self) -> tuple[int, bytes]:
        length, kind = struct.unpack(">IB", self._exactly(5))
        return kind, self._exactly(length - 1)

    def _exactly(self, length: int) -> bytes:
        first = self._channel.recv(length)
        if len(first) == length:
            return first
        parts, got = [first], len(first)
        while got < length:
            part = self._channel.recv(length - got)
            if not part:
                raise EOFError
            parts.append(part)
            got += len(part)
        return b"".join(parts)

    def _dispatch(self) -> None:
        """Hands answers to those who wait for them, until the channel ends."""
        try:
            while True:
                kind, payload = self._receive()
                (number,) = struct.unpack(">I", payload[:4])
                reply = self._waiting.pop(number, None)
                if reply is not None:
                    reply.set_result((kind, payload[4:]))
        except (EOFError, OSError, paramiko.SSHException, struct.error):
            with self._lock:
                self.broken = True
                left = list(self._waiting.values())
                self._waiting.clear()
            for reply in left:
                reply.set_exception(self._lost())

    def _lost(self) -> ConnectionLostError:
        return ConnectionLostError(
            f"the connection to {self._label} is lost",
            "see whether the host and the network are up",
        )


def _packed(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def _text(path: str) -> bytes:
    return _packed(os.fsencode(path))


def _take(content: bytes) -> tuple[bytes, bytes]:
    """The first string of a message, and what follows it."""
    (length,) = struct.unpack(">I", content[:4])
    return content[4 : 4 + length], content[4 + length :]


def _string(answer: tuple[int, bytes]) -> bytes:
    return _take(answer[1])[0]


def _pairs(content: bytes) -> dict[bytes, bytes]:
    found = {}
    while content:
        name, content = _take(content)
        found[name], content = _take(content)
    return found


def _attributes(content: bytes) -> Attributes:
    (flags,) = struct.unpack(">I", content[:4])
    size = mode = mtime_s = None
    position = 4
    if flags & 0x1:
        (size,) = struct.unpack_from(">Q", content, position)
        position += 8
    if flags & 0x2:
        position += 8
    if flags & 0x4:
        (mode,) = struct.unpack_from(">I", content, position)
        position += 4
    if flags & 0x8:
        _, mtime_s = struct.unpack_from(">II", content, position)
    return Attributes(size, mode, mtime_s)
