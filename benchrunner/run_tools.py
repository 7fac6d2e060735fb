"""What trials are run with on one host: journal, folders, a launcher, the hooks of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading

    from benchrunner.events import Observer
    from benchrunner.launchers import Launcher
    from benchrunner.places import HostDisk
    from benchrunner.run_parts import Hooks
    from benchrunner.store.whole import Store

GRACE_S = 10.0
"""Seconds between TERM and KILL: db_bench needs a moment to close a database."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The same for steps and for the services beside them."""

    journal: Store
    disk: HostDisk
    launcher: Launcher
    hooks: Hooks
    observer: Observer
    stop: threading.Event
