"""Where one command's inputs and results are: results folder, store, catalog, cache."""

from __future__ import annotations

import shlex
import threading
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchrunner.events import Observer, ignore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from benchrunner.catalog import Catalog
    from benchrunner.store.whole import Store
    from benchrunner.transports.ssh_login import Keys

DEFAULT_DATA = "./results"


@dataclass(frozen=True, slots=True)
class Choices:
    """What the command line said about a sweep's places; stored with it, for ``resume``."""

    database_dir: str | None = None
    wal_dir: str | None = None
    keep_databases: bool = False
    cache: str | None = None
    """Absolute; ``None``: the user's own."""
    catalog: str | None = None
    """Absolute; ``None``: only what is found without being named."""

    def stored(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def revived(cls, stored: Mapping[str, Any]) -> Choices:
        """From what a sweep has stored; what an older program did not store is left open."""
        known = {one.name for one in fields(cls)}
        return cls(**{name: value for name, value in stored.items() if name in known})


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line says about places and resources."""

    data: str
    """Results folder, or the URL of a store."""
    cache: Path
    catalog: Path | None = None
    jobs: int | None = None
    """Compilers at once; ``None``: one for each processor."""
    choices: Choices = field(default_factory=Choices)
    wait_for_host: bool = True
    """Whether to wait for a host that another controller uses."""
    ask: Callable[[str], str] | None = None
    """Asks the person at the terminal for a secret; ``None`` when nobody is there."""
    observer: Observer = field(default=ignore)


class Session:
    """Opens what a command needs when it first needs it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.observer = settings.observer
        self.stop = threading.Event()
        """Set when a person has had enough; whoever works in a thread of its own looks at it."""

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
    def keys(self) -> Keys:
        """What a person logs in with; a passphrase is asked for once, and kept in memory only."""
        from benchrunner.transports.ssh_login import Keys

        return Keys(self.settings.ask)

    def open_existing(self) -> Store:
        """The store, which must be there already.

        Raises:
            MissingStoreError: It is not.
        """
        from benchrunner.store import open_store

        self.__dict__["store"] = open_store(self.settings.data, create=False)
        return self.store

    def with_settings(self, settings: Settings) -> Session:
        """The same store under other settings."""
        other = Session(settings)
        other.__dict__ |= {"store": self.store, "keys": self.keys}
        other.stop = self.stop
        return other

    @contextmanager
    def in_thread(self, observer: Observer) -> Iterator[Session]:
        """The same for another thread: a store must not be shared, all else can."""
        other = Session(replace(self.settings, observer=observer))
        other.__dict__ |= {"catalog": self.catalog, "keys": self.keys}
        other.stop = self.stop
        try:
            yield other
        finally:
            if "store" in other.__dict__:
                other.store.close()

    @cached_property
    def results(self) -> Path:
        """Folder of raw output and pages: beside a store's file, else in the working directory."""
        from benchrunner.store.engine import locate

        url = locate(self.settings.data)
        if url.get_backend_name() == "sqlite" and url.database:
            return Path(url.database).absolute().parent
        return Path(DEFAULT_DATA).absolute()

    @property
    def raw(self) -> Path:
        """Folder of raw run folders."""
        return self.results / "raw"

    @property
    def pages(self) -> Path:
        """Folder of written pages."""
        return self.results / "pages"

    @property
    def resume_command(self) -> str:
        """What goes on with unfinished sweeps of this store."""
        data = self.settings.data
        known = "" if data == DEFAULT_DATA else f" --data {shlex.quote(data)}"
        return f"benchrunner resume{known}"
