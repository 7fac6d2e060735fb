"""Who may use a host: one holder at a time, with a fencing number that only grows.

A holder that was presumed dead and comes back has a smaller fence than the host's; the journal
refuses what it writes. Whether a holder still lives is for the caller to find out.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import select, update

from benchrunner.errors import HostBusyError, StoreError
from benchrunner.store import convert
from benchrunner.store.base import StoreBase, insert_absent
from benchrunner.store.schema import lease

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from benchrunner.store.rows import Lease, LeaseOwner


class Leases(StoreBase):
    """Takes, keeps and returns leases."""

    def lease(self, host: str) -> Lease | None:
        """The lease that somebody holds on a host now."""
        with self._database.read() as connection:
            row = connection.execute(select(lease).where(lease.c.host == host)).first()
        return None if row is None or row.owner is None else convert.to_lease(row)

    def acquire_lease(self, host: str, owner: LeaseOwner) -> Lease:
        """Takes a free host.

        Raises:
            HostBusyError: Somebody holds it; the message says who and since when.
        """
        with self._database.write("acquire-lease") as connection:
            row = _locked(connection, host)
            if row.owner is not None:
                raise HostBusyError(
                    f"host {host!r} is in use by {row.owner} "
                    f"(process {row.pid} on {row.hostname}) since {_when(row.since)}",
                    "wait for it to end, or stop that process",
                )
            return self._hand_to(connection, row, owner, "lease-acquired")

    def take_over_lease(self, host: str, expected_fence: int, owner: LeaseOwner) -> Lease:
        """Takes a host from a holder that the caller knows to be dead.

        Args:
            host: The host.
            expected_fence: Of the lease whose holder was found dead.
            owner: The new holder.

        Raises:
            HostBusyError: The lease has changed hands since.
        """
        with self._database.write("take-over-lease") as connection:
            row = _locked(connection, host)
            if row.fence != expected_fence:
                raise HostBusyError(
                    f"the lease of host {host!r} changed hands meanwhile "
                    f"(fence {row.fence}, not {expected_fence})",
                    "run the command again",
                )
            return self._hand_to(connection, row, owner, "lease-taken-over")

    def renew_lease(self, held: Lease) -> Lease:
        """Notes that the holder lives.

        Raises:
            StoreError: The lease was taken over.
        """
        with self._database.write("renew-lease", durable=False) as connection:
            _refuse_lost(_locked(connection, held.host), held)
            change = {"heartbeat_at": self._clock()}
            connection.execute(update(lease).where(lease.c.host == held.host).values(**change))
            return convert.to_lease(_locked(connection, held.host))

    def release_lease(self, held: Lease) -> None:
        """Gives a host back; its fence stays, so that the next one is greater.

        Raises:
            StoreError: The lease was taken over.
        """
        with self._database.write("release-lease") as connection:
            _refuse_lost(_locked(connection, held.host), held)
            empty = dict.fromkeys(
                ("owner", "pid", "hostname", "start_time", "since", "heartbeat_at")
            )
            connection.execute(update(lease).where(lease.c.host == held.host).values(**empty))
            detail = {"host": held.host, "fence": held.fence}
            self._log(connection, "lease-released", detail)

    def _hand_to(self, connection: Connection, row: Any, owner: LeaseOwner, what: str) -> Lease:
        now = self._clock()
        values = {
            "owner": owner.name,
            "pid": owner.pid,
            "hostname": owner.hostname,
            "start_time": owner.start_time,
            "fence": row.fence + 1,
            "since": now,
            "heartbeat_at": now,
        }
        connection.execute(update(lease).where(lease.c.host == row.host).values(**values))
        detail = {"host": row.host, "fence": row.fence + 1, "owner": owner.name, "pid": owner.pid}
        self._log(connection, what, detail | {"hostname": owner.hostname})
        return convert.to_lease(_locked(connection, row.host))


def _locked(connection: Connection, host: str) -> Any:
    """The lease row of a host, locked until the transaction ends; made when there is none."""
    insert_absent(connection, lease, [{"host": host, "fence": 0}])
    return connection.execute(select(lease).where(lease.c.host == host).with_for_update()).one()


def _refuse_lost(row: Any, held: Lease) -> None:
    if row.fence != held.fence or row.owner is None:
        raise StoreError(
            f"the lease of host {held.host!r} is lost: fence {held.fence} holds it no more "
            f"(now {row.fence})",
            "this controller was presumed dead; end it and run benchrunner resume",
        )


def _when(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
