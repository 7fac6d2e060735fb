"""A host taken for a short while by a person's command: nobody else benchmarks there meanwhile.

In: a connected host with the supervisor on it. Out: its lease. It never waits.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from benchrunner.controller import this_controller
from benchrunner.errors import MissingStoreError
from benchrunner.host_lease import HostLease, HostLock
from benchrunner.host_right import LOCK_DIR_VARIABLE

if TYPE_CHECKING:
    from benchrunner.definitions import Host
    from benchrunner.session import Session
    from benchrunner.store.whole import Store
    from benchrunner.transports import Transport

_NO_STORE = "benchrunner hosts"
"""In place of a store's name: what these commands do belongs to no sweep, so that a step which
still runs keeps the host from us even if it is one of our own store's."""


def taken(host: Host, transport: Transport, verb: str, supervisor: str) -> HostLease:
    """The lease of a host, for a ``with`` block.

    Args:
        host: Its definition.
        transport: To it.
        verb: What is done, for others who come meanwhile: ``clean``.
        supervisor: Its path on the host.

    Raises:
        HostBusyError: Another controller uses the host, or a step runs there.
    """
    lock_dir = host.lock_dir or (not host.address and os.environ.get(LOCK_DIR_VARIABLE)) or ""
    owner = this_controller(_NO_STORE, f"benchrunner hosts {verb} {host.name}")
    return HostLease.take(HostLock(transport, supervisor, lock_dir), owner, wait=False)


def existing_store(session: Session) -> Store | None:
    """The store, if there is one; none is made."""
    if "store" in vars(session):
        return session.store
    try:
        return session.open_existing()
    except MissingStoreError:
        return None
