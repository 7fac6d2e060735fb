"""An open store: records, the journal, leases and queries, each in its own file."""

from __future__ import annotations

from typing import Self

from benchrunner.store.journal import Journal
from benchrunner.store.leases import Leases
from benchrunner.store.queries import Queries


class Store(Journal, Leases, Queries):
    """An open store; closed with it, or at the end of a ``with`` block."""

    def close(self) -> None:
        """Closes the database; the store cannot be used after."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
