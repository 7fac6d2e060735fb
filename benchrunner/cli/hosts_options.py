"""What the verbs of ``benchrunner hosts`` share: their session, and questions to a person."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from benchrunner.cli import completing
from benchrunner.cli.options import asker, default_cache

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchrunner.session import Session

host_argument = click.argument("name", shell_complete=completing.hosts)


@contextmanager
def session_for(data: str, catalog: Path | None, cache: Path | None = None) -> Iterator[Session]:
    """What a verb works with; its store is closed afterwards, if one was opened."""
    from benchrunner.session import Session, Settings

    settings = Settings(data, cache or default_cache(), catalog, ask=asker())
    session = Session(settings)
    try:
        yield session
    finally:
        if "store" in vars(session):
            session.store.close()
