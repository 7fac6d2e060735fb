"""What every part of the store shares: the database, the clock, the journal's pen."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert

from benchrunner.store import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sqlalchemy import Connection, Table

    from benchrunner.store.engine import Database
    from benchrunner.store.rows import MeasurementKey

_INSERT_EVENT = insert(schema.event)
BATCH = 500
"""Values in one ``IN (...)``: few statements, and far below every database's limit."""


class StoreBase:
    """State of one open store. Not for several threads at a time."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self._fences: dict[str, int | None] = {}
        """Trials begun through this object, and under which fence."""
        self._keys: dict[MeasurementKey, int] = {}
        """Known rows of ``measurement_key``; they never change, so they never expire."""

    def _log(
        self,
        connection: Connection,
        what: str,
        detail: Mapping[str, Any],
        **subject: int | str | None,
    ) -> None:
        """Writes one journal entry in the transaction of the change that it tells of."""
        values = {"at": self._clock(), "what": what, "detail": dict(detail), **subject}
        connection.execute(_INSERT_EVENT, values)


def insert_absent(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts rows; one whose key exists stays as it is."""
    if not rows:
        return
    # Imported here: a store in a file should not pay for the other dialect (20 ms).
    dialect = import_module(f"sqlalchemy.dialects.{connection.dialect.name}")
    connection.execute(dialect.insert(table).on_conflict_do_nothing(), [dict(r) for r in rows])


def batches(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Runs of at most ``BATCH`` values.

    >>> [len(batch) for batch in batches(range(1200))]
    [500, 500, 200]
    """
    for start in range(0, len(values), BATCH):
        yield values[start : start + BATCH]
