"""A host made ready to run trials: transport, supervisor, claimed folders, facts and lease."""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner import workdir
from benchrunner.errors import ConfigurationError, ForeignDirectoryError, HostBusyError
from benchrunner.events import Event
from benchrunner.launchers.direct import DirectLauncher
from benchrunner.launchers.supervisor import ensure_supervisor, supervisor_sources
from benchrunner.places import HostDisk, Roots
from benchrunner.store.rows import Lease, LeaseOwner
from benchrunner.transports.local import LocalTransport
from benchrunner.units import about_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchrunner import definitions
    from benchrunner.model import HostFacts, Plan
    from benchrunner.session import Choices, Session
    from benchrunner.transports import Transport


@dataclass(frozen=True, slots=True)
class HostSession:
    """One host for the time of a sweep."""

    name: str
    transport: Transport
    launcher: DirectLauncher
    disk: HostDisk
    database_dir: str
    """Where databases are made; its file system is the one that is measured."""
    facts: HostFacts
    fence: int | None
    lacks: dict[str, str]
    """What a variant may need and this host has not -> why."""

    @property
    def device(self) -> str:
        """Name of the device under the databases, as far as the host tells."""
        device = self.facts.facts.get("device") or {}
        return str(device.get("name") or self.database_dir)


def roots(session: Session, host: definitions.Host, choices: Choices) -> Roots:
    """The folders that trials use on a host.

    Raises:
        ConfigurationError: One of them is not an absolute path.
    """
    work = host.work_dir or str(session.results / "work")
    databases = choices.database_dir or next(iter(host.data), None)
    wal = choices.wal_dir or next(iter(host.wal), None)
    for key, path in (("work_dir", work), ("data", databases), ("wal", wal)):
        if path and not Path(path).is_absolute():
            raise ConfigurationError(
                f"host {host.name}: {key}: {path} is not an absolute path", "write it from / on"
            )
    return Roots(work, session.raw, databases, wal, choices.keep_databases)


def obstacles(session: Session, sweep: definitions.Sweep, plan: Plan) -> tuple[str, ...]:
    """What would make a sweep fail at once: too little disk, a directory that is not ours."""
    found: list[str] = []
    for name in sweep.hosts:
        host = session.catalog.host(name)
        if host.address:
            found.append(_not_here(host))
        else:
            found += _local_obstacles(session, host, plan)
    return tuple(found)


def _local_obstacles(session: Session, host: definitions.Host, plan: Plan) -> Iterator[str]:
    transport, places = LocalTransport(), roots(session, host, session.settings.choices)
    for path in dict.fromkeys(p for p in (places.work, places.databases, places.wal) if p):
        try:
            workdir.check_claimable(transport, path)
        except ForeignDirectoryError as error:
            yield error.message
    where = places.databases or places.work
    free = workdir.disk_free(transport, where)
    if plan.disk_bytes is not None and plan.disk_bytes > free:
        yield (
            f"host {host.name} has {about_size(free)} free at {where}, and a trial needs about "
            f"{about_size(plan.disk_bytes)}"
        )


def _not_here(host: definitions.Host) -> str:
    return f"host {host.name} is {host.address}: only this machine can run trials so far"


@contextmanager
def open_host(session: Session, host: definitions.Host) -> Iterator[HostSession]:
    """Takes the host, makes it ready, and gives it back.

    Raises:
        ConfigurationError: The host has an address; remote hosts are not supported yet.
        HostBusyError: Another controller holds it.
    """
    from benchrunner.probes.facts import collect_facts
    from benchrunner.probes.preconditions import check_direct_io

    if host.address:
        raise ConfigurationError(_not_here(host), "name a host without an address")
    transport = LocalTransport()
    places = roots(session, host, session.settings.choices)
    lease = take_lease(session, host.name)
    try:
        supervisor = ensure_supervisor(
            transport, supervisor_sources(), str(session.settings.cache.absolute())
        )
        disk = HostDisk(transport, places, supervisor)
        disk.prepare()
        places.raw.mkdir(parents=True, exist_ok=True)
        database_dir = places.databases or places.work
        facts = collect_facts(transport, [database_dir], host.name)
        session.store.save_facts(facts)
        checked = check_direct_io(transport, database_dir)
        lacks = {} if checked.ok else {"direct-io": checked.evidence}
        yield HostSession(
            host.name, transport, DirectLauncher(transport, supervisor), disk, database_dir, facts,
            lease.fence, lacks,
        )  # fmt: skip
    finally:
        session.store.release_lease(lease)
        transport.close()


def take_lease(session: Session, host: str) -> Lease:
    """The exclusive right to use a host; a dead controller's is taken over.

    Raises:
        HostBusyError: A living controller holds it.
    """
    owner = LeaseOwner(
        os.environ.get("USER") or "benchrunner", os.getpid(), socket.gethostname(),
        process_start(os.getpid()) or 0,
    )  # fmt: skip
    held = session.store.lease(host)
    if held is None:
        return session.store.acquire_lease(host, owner)
    here = held.owner.hostname == socket.gethostname()
    if here and process_start(held.owner.pid) != held.owner.start_time:
        text = f"took over host {host} from process {held.owner.pid}, which is gone"
        session.observer(Event("note", text, {"host": host, "fence": held.fence}))
        return session.store.take_over_lease(host, held.fence, owner)
    raise HostBusyError(
        f"host {host} is in use by {held.owner.name} (process {held.owner.pid} on "
        f"{held.owner.hostname})",
        f"wait for it to end, then {session.resume_command}",
    )


def process_start(pid: int) -> int | None:
    """Start of a process in clock ticks since boot; ``None`` when it is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])
