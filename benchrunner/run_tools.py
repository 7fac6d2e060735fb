"""What trials are run with on one host: journal, folders, a launcher, the hooks of others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchrunner.command import LOOPBACK

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping
    from concurrent.futures import Future

    from benchrunner.events import Observer
    from benchrunner.launchers import Launcher
    from benchrunner.model import Job
    from benchrunner.places import HostDisk
    from benchrunner.run_parts import Hooks
    from benchrunner.store.rows import StepRow
    from benchrunner.store.whole import Store

GRACE_S = 10.0
"""Seconds between TERM and KILL: db_bench needs a moment to close a database."""


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """Where services run: beside the steps, or on another host."""

    disk: HostDisk
    launcher: Launcher
    host: str | None = None
    """Its name; ``None``: that of the steps."""
    address: str = LOOPBACK
    """On which they listen, and at which steps reach them."""
    env: Mapping[str, str] | None = None
    """What the host adds to their environment; ``None``: the same as for steps."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The same for steps and for the services beside them."""

    journal: Store
    disk: HostDisk
    launcher: Launcher
    hooks: Hooks
    observer: Observer
    stop: threading.Event
    """Set by another thread it is as good as Ctrl-C in this one."""
    server: ServerPlace | None = None
    """The other host that some jobs want their services on."""

    def serving(self, job: Job) -> ServerPlace:
        """Where a job's services run."""
        if not job.server:
            return ServerPlace(self.disk, self.launcher)
        assert self.server is not None  # noqa: S101 - opened for all that name it
        return self.server

    def launcher_of(self, row: StepRow) -> Launcher:
        """What started a step run, or is to start it."""
        if row.host is None or self.server is None:
            return self.launcher
        return self.server.launcher


class Aside:
    """What is done on a host's disks while something else goes on."""

    def __init__(self, disk: HostDisk) -> None:
        """Takes the disks; the thread is started by the first thing to do."""
        self._disk = disk
        self._helper = ThreadPoolExecutor(2, "aside")
        self._removals: dict[str, Future[None]] = {}
        self._syncs: list[Future[None]] = []

    def sync(self, raw_path: str) -> None:
        """Begins to write a run folder through to the disk."""
        self._syncs.append(self._helper.submit(self._disk.sync, raw_path))

    def synced(self) -> None:
        """Waits until all raw output is on the disk.

        Before the journal says that a trial has ended, and so that a step has the disk for itself.
        """
        while self._syncs:
            self._syncs.pop().result()

    def remove(self, trial_id: str) -> None:
        """Begins to delete a trial's folders on the host."""
        self._removals[trial_id] = self._helper.submit(self._disk.remove, trial_id)

    def removed(self, trial_id: str) -> None:
        """Waits until they are deleted, begun before or not."""
        removal = self._removals.pop(trial_id, None)
        if removal is None:
            self._disk.remove(trial_id)
        else:
            removal.result()
