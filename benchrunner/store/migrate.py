"""Brings a store to the current schema: the only module that loads Alembic, and only forwards.

The scripts are in ``migrations/versions``, one for each revision. They run in one transaction,
so a store is either migrated as a whole or as it was.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy import Connection

ADVISORY_LOCK = 7_236_102_913
"""Any fixed number: two controllers that find an empty PostgreSQL store take turns on it."""


def scripts() -> ScriptDirectory:
    """The migration scripts that come with this package."""
    return ScriptDirectory(str(Path(__file__).parent / "migrations"))


def lock(connection: Connection) -> None:
    """Keeps other controllers from migrating; a SQLite write transaction does so already."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})


def upgrade(connection: Connection, target: str = "head") -> None:
    """Runs what is missing up to ``target`` inside the caller's transaction."""
    directory = scripts()
    context = MigrationContext.configure(connection, opts={"transactional_ddl": True})
    current = context.get_current_revision() or "base"
    missing = list(directory.iterate_revisions(target, current))
    with Operations.context(context):
        for script in reversed(missing):
            script.module.upgrade()
            context.stamp(directory, script.revision)
