"""What the database reports, in one sentence each: full disk, lock, corruption, no permission.

In: exceptions of SQLAlchemy, its drivers and the operating system. Out: ``StoreError`` with a hint.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from benchrunner.errors import ResultsDiskFullError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITER_LOCK_BYTE = 120
"""Where a writer locks the ``-shm`` file in WAL mode (WALINDEX_LOCK_OFFSET + WAL_WRITE_LOCK)."""

FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE})
BROKEN = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
FULL_SQLSTATES = frozenset({"53100", "53000"})
LOCKED_SQLSTATES = frozenset({"55P03", "40P01"})


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Turns what a driver raises into a ``StoreError`` that names the store."""
    try:
        yield
    except DBAPIError as error:
        raise from_driver(error, where) from error
    except sqlite3.Error as error:
        raise _from_sqlite(error, where) from error
    except SQLAlchemyError as error:
        raise StoreError(f"the store {where} refused a request: {error}") from error


def from_driver(error: DBAPIError, where: str) -> StoreError:
    """The error of a statement or a connection in plain words."""
    original = error.orig
    if isinstance(original, sqlite3.Error):
        return _from_sqlite(original, where)
    sqlstate = getattr(original, "sqlstate", None)
    if sqlstate in FULL_SQLSTATES:
        return _disk_full(where)
    if sqlstate in LOCKED_SQLSTATES:
        return StoreError(f"the store {where} was locked by another client for too long", RETRY)
    sentence = " ".join(str(original).split())
    return StoreError(
        f"the store {where} cannot be used: {sentence}", "check the URL and the server"
    )


def from_os(error: OSError, what: str) -> StoreError:
    """The error of a file operation in plain words."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ResultsDiskFullError(f"no space is left for {what}", FREE_SPACE)
    return StoreError(f"{what} cannot be used: {error.strerror}", "check owner and permissions")


def not_a_database(where: str) -> StoreError:
    """The file is something else, or its first page is lost."""
    return StoreError(
        f"{where} is not a database",
        "name another file, or move it away: raw output stays and can be parsed again",
    )


RETRY = "wait for it to finish, then run the command again"
FREE_SPACE = "free some space, then benchrunner resume"


def _from_sqlite(error: sqlite3.Error, where: str) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0)
    primary = code & 0xFF
    if code in FULL or primary in FULL or (primary == sqlite3.SQLITE_IOERR and _no_space(where)):
        return _disk_full(where)
    if primary == sqlite3.SQLITE_NOTADB:
        return not_a_database(where)
    if primary == sqlite3.SQLITE_CORRUPT:
        return StoreError(
            f"the store {where} is damaged: {error}",
            f"restore a backup, or: sqlite3 {where} .recover | sqlite3 mended.db",
        )
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return _locked(where)
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StoreError(
            f"the store {where} cannot be written: {error}",
            "check owner and permissions of the file and its folder",
        )
    return StoreError(f"the store {where} cannot be used: {error}", "see the message")


def _disk_full(where: str) -> ResultsDiskFullError:
    return ResultsDiskFullError(f"no space is left for the store {where}", FREE_SPACE)


def _locked(where: str) -> StoreError:
    pid = lock_holder(where)
    who = f"process {pid}" if pid else "another process"
    return StoreError(f"the store {where} was locked by {who} for too long", RETRY)


def _no_space(where: str) -> bool:
    """Whether a failed write is explained by a full disk or by this process's file size limit."""
    import resource

    path = Path(where)
    free = os.statvfs(path.parent)
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    sizes = [
        f.stat().st_size for f in (path, Path(f"{where}-wal"), Path(f"{where}-shm")) if f.exists()
    ]
    at_limit = limit != resource.RLIM_INFINITY and max(sizes, default=0) + 65536 > limit
    return free.f_bavail * free.f_frsize < 65536 or at_limit


def lock_holder(where: str) -> int | None:
    """The process that holds the writer lock of a SQLite store, as far as Linux tells."""
    try:
        inode = Path(f"{where}-shm").stat().st_ino
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        # 3: POSIX  ADVISORY  WRITE 4242 fd:00:1234567 120 120
        fields = line.split()
        if len(fields) == 8 and fields[3] == "WRITE" and fields[5].endswith(f":{inode}"):
            first, last = int(fields[6]), fields[7]
            if first <= WRITER_LOCK_BYTE and (last == "EOF" or int(last) >= WRITER_LOCK_BYTE):
                return int(fields[4]) if int(fields[4]) > 0 else None
    return None
