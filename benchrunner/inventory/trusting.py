"""Trust in the keys of a host and of the jump hosts before it, given one by one by a person.

In: a host and somebody who decides. Out: known_hosts, and what was written there. Nothing is
written that was not agreed to, and a revoked key never is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchrunner.errors import TransportError
from benchrunner.inventory.showing import inventory, route

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchrunner.definitions import Host
    from benchrunner.session import Session
    from benchrunner.transports.host_keys import OfferedKey


@dataclass(frozen=True, slots=True)
class Doubt:
    """A key that is not the known one, and where it would be written."""

    offered: OfferedKey
    file: Path

    @property
    def is_change(self) -> bool:
        """Whether the host was known by another key."""
        return self.offered.known == "changed"


@dataclass(frozen=True, slots=True)
class Trusted:
    """What became of the keys on the way to a host."""

    added: tuple[OfferedKey, ...]
    last: OfferedKey
    """The host's own key; or the one that was not agreed to."""

    @property
    def is_complete(self) -> bool:
        """Whether every key on the way is known now."""
        return self.last.known == "same"


def trust_way(session: Session, host: Host, agree: Callable[[Doubt], bool]) -> Trusted:
    """Asks about each key on the way that is not known, jump hosts first, and writes it down.

    Nobody logs in to the host itself; to jump hosts only once their keys are known.

    Raises:
        ChangedHostKeyError: A key is revoked.
        TransportError: A hop cannot be reached or lets nobody in, or the file cannot be written.
    """
    from benchrunner.transports.host_keys import must_be_known, trust
    from benchrunner.transports.ssh import offered_key

    hops, hosts = route(session, host), inventory(session)
    if not hops:
        raise TransportError(f"host {host.name} is this machine: it has no key to trust")
    files = {hop.known_as: hop.known_hosts[0] for hop in hops if hop.known_hosts}
    added: list[OfferedKey] = []
    while True:
        offered = offered_key(host, hosts=hosts, keys=session.keys)
        if offered.known == "same":
            return Trusted(tuple(added), offered)
        if offered.known == "revoked":
            must_be_known(offered, host.name)
        name = offered.name_in_known_hosts
        if name not in files:
            raise TransportError(
                f"there is no file to write the key of {offered.host} into",
                "UserKnownHostsFile in ~/.ssh/config names none",
            )
        if any(known.name_in_known_hosts == name for known in added):
            raise TransportError(
                f"{offered.host} offers another key each time it is asked",
                "several machines answer under this address: give each a host of its own",
            )
        if not agree(Doubt(offered, files[name])):
            return Trusted(tuple(added), offered)
        trust(offered, files[name])
        added.append(offered)
