"""How a host is reached, which folders it gives to trials, what there stands in a sweep's way."""

from __future__ import annotations

import ipaddress
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner import memory_disk, workdir
from benchrunner.errors import (
    BenchrunnerError,
    ConfigurationError,
    ForeignDirectoryError,
    TransportError,
)
from benchrunner.events import Event
from benchrunner.host_files import HostFiles
from benchrunner.memory_disk import Room, Wanted
from benchrunner.places import Roots
from benchrunner.probes.changes import class_differences
from benchrunner.probes.facts import collect_facts
from benchrunner.probes.memory_room import memory_bytes
from benchrunner.probes.mounts import check_mounted
from benchrunner.probes.settings import check_settings
from benchrunner.transports import ConnectionLostError, Streaming, UnreachableError
from benchrunner.transports.local import LocalTransport
from benchrunner.units import about_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchrunner import definitions
    from benchrunner.model import HostFacts, Plan
    from benchrunner.session import Choices, Session
    from benchrunner.transports import Transport


_LOOK_UP_S = 60.0
_SMALLER = "a smaller --scale, or --set of what makes the database smaller"
_ANOTHER_PLACE = "name another folder with --db-dir, or in the host's definition"


def reach(session: Session, host: definitions.Host) -> Transport:
    """A transport to a host, connected.

    Raises:
        TransportError: It cannot be reached, its key is not known, or it lets nobody in.
    """
    if not host.address:
        return LocalTransport()
    from benchrunner.transports.ssh import connect

    return connect(host, hosts=HostFiles(session.catalog), keys=session.keys)


def served(transport: Transport, program: str) -> Transport:
    """The same host with fewer round trips, once the supervisor is there."""
    from benchrunner.transports.served import ServedTransport

    assert isinstance(transport, Streaming)  # noqa: S101
    return ServedTransport(transport, program)


def roots(session: Session, host: definitions.Host, choices: Choices) -> Roots:
    """The folders that trials use on a host.

    Raises:
        ConfigurationError: One of them is not an absolute path, or a remote host names none.
    """
    if host.address and not host.work_dir:
        raise ConfigurationError(
            f"host {host.name} is {host.address} and has no work_dir",
            f'add to hosts/{host.name}.toml: work_dir = "/var/tmp/benchrunner"',
        )
    work = host.work_dir or str(session.results / "work")
    databases = choices.database_dir or next(iter(host.data), None)
    wal = choices.wal_dir or next(iter(host.wal), None)
    for key, path in (("work_dir", work), ("data", databases), ("wal", wal)):
        if path and not Path(path).is_absolute():
            raise ConfigurationError(
                f"host {host.name}: {key}: {path} is not an absolute path", "write it from / on"
            )
    return Roots(work, session.raw, databases, wal, choices.keep_databases)


def in_memory(
    host: definitions.Host, places: Roots, choices: Choices, room: Room
) -> tuple[Roots, Wanted]:
    """The folders of a sweep whose databases lie in memory: logs stay on a device, else alone."""
    wanted = Wanted(places.work, room, choices.database_dir, tuple(host.data))
    return replace(places, databases=None, wal=places.wal or places.work), wanted


def server_address(session: Session, server: definitions.Host) -> str:
    """Name or address at which clients on other hosts reach services on a host.

    Raises:
        ConfigurationError: Its definition does not say.
        TransportError: OpenSSH's configuration, which may say, makes no sense.
    """
    if server.service_address:
        return server.service_address
    if not server.address:
        raise ConfigurationError(
            f"host {server.name} is this machine, and nothing says at which address other hosts "
            "reach services here",
            f'service_address = "10.0.0.5" in hosts/{server.name}.toml',
        )
    from benchrunner.transports.ssh_config import Routes

    return Routes(HostFiles(session.catalog), None, None).to(server)[-1].address


def ipv4_address(client: Transport, name: str, server: definitions.Host) -> str:
    """The number of an address as the client's host looks it up: services listen on just that.

    Raises:
        ConfigurationError: That host finds none.
    """
    try:
        return str(ipaddress.IPv4Address(name))
    except ValueError:
        done = client.run(["getent", "ahostsv4", name], timeout_s=_LOOK_UP_S)
    found = done.stdout.split()
    if done.exit_code != 0 or not found:
        raise ConfigurationError(
            f"{client.host} finds no IPv4 address of {name}, where services of host {server.name} "
            "are to be reached",
            f'service_address = "10.0.0.5" in hosts/{server.name}.toml',
        )
    return found[0].decode()


def server_choices(choices: Choices) -> Choices:
    """What the command line says about places, on the host that only services run on."""
    return replace(choices, database_dir=None, wal_dir=None)


def cache_dir(session: Session, host: definitions.Host) -> str:
    """Where supervisors, sources and builds are kept on a host."""
    if host.address:
        return f"{host.work_dir}/cache"
    return str(session.settings.cache.absolute())


def obstacles(
    session: Session, sweep: definitions.Sweep, plan: Plan
) -> tuple[ConfigurationError, ...]:
    """What would make a sweep fail at once: a host out of reach, too little disk, a foreign folder.

    Each with what mends it, as errors that nobody has raised: a plan shows all of them.

    Raises:
        ConfigurationError: A host's definition asks for what there is not.
        ConnectionLostError: A connection broke, and broke again: who only looks looks twice.
    """
    try:
        return _obstacles(session, sweep, plan)
    except ConnectionLostError:
        return _obstacles(session, sweep, plan)


def _obstacles(
    session: Session, sweep: definitions.Sweep, plan: Plan
) -> tuple[ConfigurationError, ...]:
    found: list[ConfigurationError] = []
    away: list[ConfigurationError] = []
    observed: dict[str, HostFacts] = {}
    server = _server(session, sweep)
    for name in sweep.hosts:
        host = session.catalog.host(name)
        _check_client(host)
        places = roots(session, host, session.settings.choices)
        try:
            transport = reach(session, host)
        except TransportError as error:
            (away if isinstance(error, UnreachableError) else found).append(_told(error))
            continue
        try:
            if server is not None:
                ipv4_address(transport, server_address(session, server), server)
            if any(session.catalog.workload(one).data_on == "memory" for one in sweep.workloads):
                room = Room(plan.disk_bytes or 0, plan.memory_bytes or 0)
                places, wanted = in_memory(host, places, session.settings.choices, room)
                found += _folders(transport, host, places)
                found += memory_disk.obstacles(transport, name, wanted)
            else:
                found += _on_host(transport, host, places, plan)
            if sweep.spread and len(sweep.hosts) > 1:
                observed[name] = collect_facts(transport, [places.databases or places.work], name)
        finally:
            transport.close()
    if server is not None:
        found += _on_server(session, server)
    if len(away) == len(sweep.hosts):
        found += away
    elif not found:
        for told in away:  # the others need not wait for it
            why = f"{told.message} ({told.hint})" if told.hint else told.message
            text = f"{why}; its trials are left for benchrunner resume"
            session.observer(Event("warning", text))
    return (*found, *_mixed(observed))


def _check_client(host: definitions.Host) -> None:
    check_settings(host.tune, f"hosts/{host.name}.toml: tune")
    if "client" not in host.roles:
        raise ConfigurationError(
            f"host {host.name} is no client (roles: {', '.join(host.roles) or 'none'}), and "
            "clients run the steps of workloads",
            f'roles = ["client", "server"] in hosts/{host.name}.toml, or another --host',
        )


def _told(error: BenchrunnerError) -> ConfigurationError:
    return ConfigurationError(error.message, error.hint)


def _mixed(observed: Mapping[str, HostFacts]) -> Iterator[ConfigurationError]:
    """Why numbers of several hosts must not stand side by side as if they were of one."""
    names = list(observed)
    for other in names[1:]:
        differences = class_differences(observed[names[0]], observed[other])
        if differences:
            told = "; ".join(map(str, differences[:3]))
            more = f" and {len(differences) - 3} more" if len(differences) > 3 else ""
            yield ConfigurationError(
                f"hosts {names[0]} and {other} differ, so --spread would mix them: {told}{more}",
                "--each runs everything on every host; benchrunner hosts facts NAME shows one",
            )


def _on_host(
    transport: Transport, host: definitions.Host, places: Roots, plan: Plan
) -> Iterator[ConfigurationError]:
    yield from _folders(transport, host, places)
    yield from _space(transport, host, places, plan)
    room = None if plan.memory_bytes is None else memory_bytes(transport)
    if plan.memory_bytes is not None and room is not None and plan.memory_bytes > room:
        need = about_size(plan.memory_bytes)
        yield ConfigurationError(
            f"host {host.name} has {about_size(room)} of memory, and a trial needs about {need}",
            _SMALLER,
        )


def _server(session: Session, sweep: definitions.Sweep) -> definitions.Host | None:
    """The host of a sweep's services, if it is another one: what its file says is checked."""
    if sweep.server is None:
        return None
    server = session.catalog.host(sweep.server)
    check_settings(server.tune, f"hosts/{server.name}.toml: tune")
    server_address(session, server)
    return server


def _on_server(session: Session, server: definitions.Host) -> Iterator[ConfigurationError]:
    places = roots(session, server, server_choices(session.settings.choices))
    try:
        transport = reach(session, server)
    except TransportError as error:
        yield _told(error)
        return
    try:
        yield from _folders(transport, server, places)
    finally:
        transport.close()


def _folders(
    transport: Transport, host: definitions.Host, places: Roots
) -> Iterator[ConfigurationError]:
    for path in dict.fromkeys(p for p in (places.work, places.databases, places.wal) if p):
        try:
            workdir.check_claimable(transport, path)
        except ForeignDirectoryError as error:
            yield _told(error)
            continue
        refused = workdir.who_cannot_write(transport, path)
        if refused is not None:
            user, why = refused
            mend = f"sudo install -d -o {shlex.quote(user)} {shlex.quote(path)}"
            yield ConfigurationError(
                f"host {host.name}: {user} cannot write to {path}: {why}",
                mend if "denied" in why else _ANOTHER_PLACE,
            )
    for path, wanted in {**host.data, **host.wal}.items():
        if path in (places.databases, places.wal):
            check = check_mounted(transport, path, wanted)
            if check.ok is False:
                yield ConfigurationError(
                    f"host {host.name}: {check.evidence}", check.remedy_command
                )


def _space(
    transport: Transport, host: definitions.Host, places: Roots, plan: Plan
) -> Iterator[ConfigurationError]:
    if plan.disk_bytes is None:
        return
    where = places.databases or places.work
    free = workdir.disk_free(transport, where)
    need = f"and a trial needs about {about_size(plan.disk_bytes)}"
    if plan.disk_bytes > free:
        yield ConfigurationError(
            f"host {host.name} has {about_size(free)} free at {where}, {need}",
            f"{_ANOTHER_PLACE}, or {_SMALLER}",
        )
    limit_gib = host.limits.disk_gib
    if limit_gib is not None and plan.disk_bytes > limit_gib * 2**30:
        yield ConfigurationError(
            f"host {host.name} allows {limit_gib:g} GiB (limits.disk_gib), {need}",
            f"{_SMALLER}, or a greater limits.disk_gib in hosts/{host.name}.toml",
        )
