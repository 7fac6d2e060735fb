"""Connections and transactions: opens SQLite or PostgreSQL, says in one sentence what went wrong.

In: a folder, file or URL. Out: a ``Database`` whose ``write`` and ``read`` are the only ways to the
data. It knows nothing of tables except the schema revision.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from benchrunner import faults
from benchrunner.errors import MissingStoreError, StoreError
from benchrunner.store import canonical, failures
from benchrunner.store.glance import REVISIONS, store_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Engine

DURABLE = "benchrunner_durable"
WRITES = "benchrunner_writes"
_NO_STORE = "benchrunner sweep, or --data DIR"


class Database:
    """Transactions on an open store, with errors in plain words."""

    def __init__(self, engine: Engine, where: str) -> None:
        self.engine = engine
        self.where = where

    @property
    def is_sqlite(self) -> bool:
        """Whether the store is a file."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def write(self, what: str, *, durable: bool = True) -> Iterator[Connection]:
        """One transaction, committed when the block ends, or else nothing of it is kept.

        Args:
            what: Name of the change; ``store-WHAT`` and ``stored-WHAT`` are its fault points.
            durable: Whether it must survive a power failure by itself. If not, it survives the
                death of this process, and a power failure once any later durable write is done.
        """
        options = {WRITES: True, DURABLE: durable}
        with failures.translated(self.where), self.engine.connect() as plain:
            connection = plain.execution_options(**options)
            with connection.begin():
                yield connection
                faults.point(f"store-{what}")
            faults.point(f"stored-{what}")

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One consistent view of the store; changes made meanwhile are not seen."""
        options = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with failures.translated(self.where), self.engine.connect() as plain:
            connection = plain.execution_options(**{WRITES: False, DURABLE: True, **options})
            with connection.begin():
                yield connection

    def close(self) -> None:
        """Closes every connection."""
        self.engine.dispose()


def locate(where: str | Path) -> URL:
    """The database URL of a results folder, a store file or a URL.

    >>> locate("results").render_as_string()
    'sqlite:///results/store.db'
    >>> locate("postgresql://bench@db1/results").drivername
    'postgresql+psycopg'

    Raises:
        StoreError: The URL is malformed, of another database, or names no file.
    """
    path = store_file(where)
    if path is not None:
        return URL.create("sqlite", database=str(path))
    try:
        url = make_url(str(where))
    except ArgumentError:
        raise StoreError(f"{where!r} is not a database URL", "sqlite:////path/store.db") from None
    kind = url.get_backend_name()
    if kind in ("postgres", "postgresql"):
        return url.set(drivername="postgresql+psycopg")
    if kind != "sqlite":
        raise StoreError(f"a store in {kind} is not supported", "a folder or a postgresql:// URL")
    if url.database in (None, "", ":memory:"):
        raise StoreError("a store in memory would lose every result", "name a folder or a file")
    return url


def connect(url: URL, *, create: bool, lock_timeout_s: float) -> Database:
    """Opens the database without looking at its tables.

    Raises:
        StoreError: It does not exist and may not be created, or cannot be opened.
    """
    where = url.render_as_string(hide_password=True)
    if url.get_backend_name() == "sqlite":
        where = str(url.database)
        _prepare_file(Path(where), create=create)
    try:
        engine = create_engine(
            url,
            json_serializer=canonical.to_json,
            connect_args=_connect_arguments(url, lock_timeout_s),
        )
    except ModuleNotFoundError as error:
        raise StoreError(
            f"the store {where} needs the Python package {error.name}, which is not installed",
            "pip install 'benchrunner[postgresql]'",
        ) from None
    event.listen(engine, "begin", _begin)
    if url.get_backend_name() == "sqlite":
        event.listen(engine, "connect", _prepare_connection)
    return Database(engine, where)


def _connect_arguments(url: URL, lock_timeout_s: float) -> dict[str, Any]:
    if url.get_backend_name() == "sqlite":
        return {"timeout": lock_timeout_s, "isolation_level": None}
    return {"options": f"-c lock_timeout={round(lock_timeout_s * 1000)}", "connect_timeout": 10}


def _prepare_file(path: Path, *, create: bool) -> None:
    """Makes the folder; refuses a missing file that may not be created, and what is no database."""
    if path.parent.exists() and not path.parent.is_dir():
        raise StoreError(f"the results folder {path.parent} is a file", "name a folder: --data DIR")
    if not path.exists():
        if not create:
            raise MissingStoreError(f"there is no store at {path}", _NO_STORE)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise failures.from_os(error, f"the results folder {path.parent}") from error
        return
    try:
        with path.open("rb") as file:
            start = file.read(16)
    except OSError as error:
        raise failures.from_os(error, f"the store {path}") from error
    if start and not start.startswith(b"SQLite format 3\0"):
        raise failures.not_a_database(str(path))


def _prepare_connection(connection: Any, _record: Any) -> None:
    """Sets up one SQLite connection; the order matters: waiting comes from ``timeout`` before."""
    cursor = connection.cursor()
    mode = cursor.execute("PRAGMA journal_mode").fetchone()[0]
    if mode != "wal":
        mode = cursor.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise StoreError(
            f"the file system of the store has no shared memory (journal mode is {mode!r})",
            "keep the store on a local disk, or use a postgresql:// URL",
        )
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA cache_size = -32768")
    cursor.close()


def _begin(connection: Connection) -> None:
    """Starts the transaction: writers queue up here, and choose how durable their commit is."""
    options = connection.get_execution_options()
    writes, durable = options.get(WRITES, False), options.get(DURABLE, True)
    if connection.dialect.name == "sqlite":
        # By the driver itself: several such statements for every trial, of which none has a result.
        driver: Any = connection.connection.driver_connection
        level = "FULL" if durable else "NORMAL"
        if connection.info.get(DURABLE) != level:
            driver.execute(f"PRAGMA synchronous = {level}")
            connection.info[DURABLE] = level
        driver.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
    elif writes and not durable:
        connection.exec_driver_sql("SET LOCAL synchronous_commit TO OFF")


def check_revision(database: Database, *, create: bool) -> None:
    """Brings an empty or older store to the current schema; Alembic is only loaded for that.

    Raises:
        StoreError: The store is newer than this program, or holds something else.
    """
    with database.read() as connection:
        revision = _revision(connection, database)
    if revision == REVISIONS[-1]:
        return
    if revision is None and not create:
        raise MissingStoreError(f"{database.where} is an empty database", _NO_STORE)
    from benchrunner.store import migrate

    with database.write("migrate") as connection:
        migrate.lock(connection)
        if _revision(connection, database) != REVISIONS[-1]:
            migrate.upgrade(connection)


def _revision(connection: Connection, database: Database) -> str | None:
    """The store's schema revision; ``None`` for an empty database."""
    tables = _tables(connection, sqlite=database.is_sqlite)
    if not tables:
        return None
    if "alembic_version" not in tables or "trial" not in tables:
        raise StoreError(
            f"{database.where} holds something else than a store (table {min(tables)})",
            "name another file or database",
        )
    revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if revision not in REVISIONS:
        raise StoreError(
            f"the store {database.where} has schema revision {revision}, "
            f"which this benchrunner does not know (its own is {REVISIONS[-1]})",
            "upgrade benchrunner; a store is never downgraded",
        )
    return str(revision)


def _tables(connection: Connection, *, sqlite: bool) -> set[str]:
    names = (
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        if sqlite
        else "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    )
    return set(connection.execute(text(names)).scalars())
