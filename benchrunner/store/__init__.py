"""The store: every plan, state change, raw reference and number, in SQLite or PostgreSQL.

``open_store`` is the way in; ``docs/store.md`` describes the tables. Values go in and out in the
words of ``model`` and ``rows``; nothing of the database shows.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchrunner.store.whole import Store


def open_store(
    where: str | Path,
    *,
    create: bool = True,
    lock_timeout_s: float = 30.0,
    clock: Callable[[], float] = time.time,
) -> Store:
    """Opens the store of a results folder, a ``.db`` file or a URL, migrated if it is older.

    Args:
        where: ``results``, ``results/store.db``, ``postgresql://user@host/database``.
        create: Whether a missing store is made.
        lock_timeout_s: How long to wait for another controller's transaction.
        clock: Unix time for every ``..._at``.

    Raises:
        StoreError: It cannot be opened; the message says why.
    """
    # Imported here: the rest of this package needs SQLAlchemy, and a glance does without.
    from benchrunner.store.engine import check_revision, connect, locate
    from benchrunner.store.whole import Store

    database = connect(locate(where), create=create, lock_timeout_s=lock_timeout_s)
    try:
        check_revision(database, create=create)
    except BaseException:
        database.close()
        raise
    return Store(database, clock)


__all__ = ["open_store"]
