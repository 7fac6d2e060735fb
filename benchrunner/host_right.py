"""The right to use a host: a lease on the host for all stores, and its row in this store.

In: a session and a host with the supervisor on it. Out: the right, held until the block ends.
"""

from __future__ import annotations

import os
import shlex
import socket
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchrunner.controller import login_name, process_start, store_id, this_controller
from benchrunner.errors import ConfigurationError, TransportError
from benchrunner.events import Event
from benchrunner.host_lease import HostLease, HostLock
from benchrunner.store.rows import LeaseOwner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchrunner import definitions
    from benchrunner.host_lease import Holder
    from benchrunner.presence import Presence
    from benchrunner.session import Session
    from benchrunner.store.rows import Lease
    from benchrunner.transports import Transport

LOCK_DIR_VARIABLE = "BENCHRUNNER_LOCK_DIR"
"""Folder of this machine's lock when its definition names none; for tests side by side."""


@dataclass(frozen=True, slots=True)
class Right:
    """What a controller shows while it uses a host."""

    lease: HostLease
    fence: int
    """Of the row in the store: what the journal checks."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """For the supervisor there."""
        return self.lease.start_arguments()

    def check(self) -> None:
        """Makes sure that nobody has taken the host over.

        Raises:
            LeaseLostError: Somebody has.
        """
        self.lease.check()


@contextmanager
def leased(
    session: Session, host: definitions.Host, transport: Transport, program: str,
    presence: Presence, beside: Right | None = None,
) -> Iterator[Right]:  # fmt: skip
    """Waits for the host unless the session says otherwise, and holds it.

    Raises:
        HostBusyError: Another controller holds it, and nobody wants to wait.
        ConfigurationError: It is the host that we hold ``beside`` this one, under another name.
    """
    from benchrunner.store.engine import locate

    def tell(text: str) -> None:
        session.observer(Event("note", text, {"host": host.name}))

    def waiting(holder: Holder) -> None:
        if beside is not None and holder.owner == beside.lease.owner.id:
            raise ConfigurationError(
                f"host {host.name} is the same machine as the other host of this sweep",
                "--server names another machine than --host",
            )
        tell(f"waiting for host {host.name}: in use by {holder.describe()}")

    url = locate(session.settings.data).render_as_string(hide_password=True)
    command = shlex.join(["benchrunner", *sys.argv[1:]])
    owner = this_controller(store_id(url, session.results), command)
    lock_dir = host.lock_dir or (not host.address and os.environ.get(LOCK_DIR_VARIABLE)) or ""
    wait, stop = session.settings.wait_for_host, session.stop
    lock = HostLock(transport, program, lock_dir)

    def take() -> HostLease:
        # The same owner gets it again, should the answer to the first request be lost.
        return HostLease.take(lock, owner, wait=wait, on_wait=waiting, stop=stop)

    lease = presence.through(take)
    try:
        if lease.took_over is not None:
            tell(f"took over host {host.name} from {lease.took_over.describe()}")
        row = _row(session, host.name)
        try:
            yield Right(lease, row.fence)
        finally:
            session.store.release_lease(row)
    finally:
        try:
            lease.release()
        except TransportError as error:
            text = f"{error.message}; its lease lapses by itself"
            session.observer(Event("warning", text, {"host": host.name}))


def _row(session: Session, host: str) -> Lease:
    """The store's lease; who holds the host itself takes it from whoever had it."""
    user, pid = login_name(), os.getpid()
    owner = LeaseOwner(user, pid, socket.gethostname(), process_start(pid) or 0)
    held = session.store.lease(host)
    if held is None:
        return session.store.acquire_lease(host, owner)
    return session.store.take_over_lease(host, held.fence, owner)
