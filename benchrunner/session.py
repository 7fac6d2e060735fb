"""Where one command's inputs and results are: the results folder, the store, the catalog, the cache."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.events import Observer, ignore

if TYPE_CHECKING:
    from benchrunner.catalog import Catalog
    from benchrunner.store import Store


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line says about places and resources."""

    data: str
    """Results folder, or the URL of a store."""
    cache: Path
    catalog: Path | None = None
    jobs: int | None = None
    """Compilers at once; ``None``: one for each processor."""
    database_dir: str | None = None
    wal_dir: str | None = None
    keep_databases: bool = False
    observer: Observer = field(default=ignore)


class Session:
    """Opens what a command needs when it first needs it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.observer = settings.observer

    @cached_property
    def catalog(self) -> Catalog:
        """Definitions."""
        from benchrunner.catalog import Catalog

        return Catalog(self.settings.catalog)

    @cached_property
    def store(self) -> Store:
        """The store, made if it is not there."""
        from benchrunner.store import open_store

        return open_store(self.settings.data)

    @cached_property
    def results(self) -> Path:
        """Folder of raw output and pages; beside the working directory when the store is a server."""
        data = self.settings.data
        if "://" in data:
            return Path("results").absolute()
        path = Path(data).absolute()
        return path.parent if path.suffix == ".db" else path

    @property
    def raw(self) -> Path:
        """Folder of raw run folders."""
        return self.results / "raw"

    @property
    def pages(self) -> Path:
        """Folder of written pages."""
        return self.results / "pages"
