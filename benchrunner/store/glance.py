"""A glance at a store: its newest sweeps and how their trials stand.

A store in a file is asked through Python's own driver: importing SQLAlchemy takes three times as
long as everything else that ``benchrunner status`` does. Whatever is out of the ordinary (another
database, an older schema, an error) goes the store's own way, which explains it.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.model import TrialState

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE_NAME = "store.db"
REVISIONS = ("0001", "0002", "0003")
"""Every schema revision this code can open, oldest first; the last is the current one."""

_SWEEPS = "SELECT id, name, created_at FROM sweep ORDER BY id DESC LIMIT ?"
_COUNTS = "SELECT sweep_id, state, count(*) FROM trial WHERE sweep_id >= ? GROUP BY sweep_id, state"


@dataclass(frozen=True, slots=True)
class SweepGlance:
    """One sweep of a list; every state is a key of ``counts``."""

    id: int
    name: str
    created_at: float
    counts: Mapping[TrialState, int]

    @property
    def unfinished(self) -> int:
        """Trials that have not ended."""
        return sum(count for state, count in self.counts.items() if not state.final)


def store_file(where: str | Path) -> Path | None:
    """The file of a store named by a results folder or a file; ``None`` for a URL.

    >>> str(store_file("results"))
    'results/store.db'
    """
    if "://" in str(where):
        return None
    path = Path(where)
    return path if path.suffix == ".db" else path / FILE_NAME


def newest_sweeps(where: str, limit: int) -> tuple[SweepGlance, ...]:
    """The newest sweeps of a store, newest first.

    Raises:
        StoreError: There is no store, or it cannot be read.
    """
    path = store_file(where)
    if path is not None and path.is_file():
        try:
            return _of_file(path, limit)
        except (sqlite3.Error, _UnusualError):
            pass  # The store itself says what is wrong, or brings the schema up to date.
    return _of_store(where, limit)


class _UnusualError(Exception):
    """Not a store of the schema that this module knows."""


def _of_file(path: Path, limit: int) -> tuple[SweepGlance, ...]:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=30)
    try:
        connection.execute("BEGIN")  # both answers from one moment
        revision = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        if revision != (REVISIONS[-1],):
            raise _UnusualError
        rows = connection.execute(_SWEEPS, (limit,)).fetchall()
        counts = {row[0]: dict.fromkeys(TrialState, 0) for row in rows}
        for sweep_id, state, count in connection.execute(_COUNTS, (min(counts, default=0),)):
            counts[sweep_id][TrialState(state)] = count
    finally:
        connection.close()
    return tuple(SweepGlance(number, name, at, counts[number]) for number, name, at in rows)


def _of_store(where: str, limit: int) -> tuple[SweepGlance, ...]:
    from benchrunner.store import open_store

    with open_store(where, create=False) as store:
        return tuple(
            SweepGlance(row.id, row.name, row.created_at, store.counts_by_state(row.id))
            for row in store.sweeps()[:limit]
        )
