"""Two hosts at once: one for the steps of a sweep, one for the services that these need.

In: their definitions. Out: both made ready, and the address at which one reaches the other. Each is
leased, claimed, tuned and observed as a host by itself is.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from benchrunner.host_places import ipv4_address, server_address, server_choices
from benchrunner.host_session import open_host
from benchrunner.presence import Together
from benchrunner.run_tools import ServerPlace
from benchrunner.store.rows import ServerSeen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchrunner import definitions
    from benchrunner.host_session import HostSession
    from benchrunner.memory_disk import Room
    from benchrunner.model import Taint
    from benchrunner.session import Session


@dataclass(frozen=True, slots=True)
class ServerHost:
    """The host that services run on, for the time of a sweep."""

    host: HostSession
    address: str
    presence: Together
    """Its own, and that of the host of the steps."""

    @property
    def place(self) -> ServerPlace:
        """For the runner of trials."""
        host = self.host
        return ServerPlace(host.disk, host.launcher, host.name, self.address, host.definition.env)

    @property
    def seen(self) -> ServerSeen:
        """For the journal."""
        return ServerSeen(self.host.facts.id, self.address)

    @property
    def lacks(self) -> dict[str, str]:
        """What a variant puts before services as well and this host has not -> why."""
        return {name: why for name, why in self.host.lacks.items() if name != "direct-io"}

    @property
    def taints(self) -> tuple[Taint, ...]:
        """Of every trial whose services run there."""
        where = f"host {self.host.name}, where the servers ran: "
        return tuple(replace(one, evidence=where + one.evidence) for one in self.host.taints)


@contextmanager
def open_both(
    session: Session, client: definitions.Host, server: definitions.Host, room: Room | None
) -> Iterator[tuple[HostSession, ServerHost]]:
    """Takes both hosts and makes them ready.

    They are taken in the order of their names: of two sweeps that want the same two hosts, each in
    the other role, none holds what the other waits for.

    Raises:
        TransportError: A host cannot be reached.
        HostBusyError: Another controller holds one.
        ConfigurationError: Both are one machine, or nobody knows where clients reach the server.
    """
    settings = session.settings
    choices = server_choices(settings.choices)
    apart = session.with_settings(replace(settings, choices=choices))
    wanted = {client.name: (session, client, room), server.name: (apart, server, None)}
    first, second = (wanted[name] for name in sorted(wanted))
    with open_host(*first) as one, open_host(*second, beside=one) as other:
        steps, services = (one, other) if one.name == client.name else (other, one)
        name = server_address(session, server)
        find = partial(ipv4_address, steps.transport, name, server)
        address = steps.presence.through(find)
        yield steps, ServerHost(services, address, Together(steps.presence, services.presence))
