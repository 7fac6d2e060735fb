"""A host made ready for trials: transport, supervisor, claimed folders, settings, facts, lease."""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from benchrunner.controller import login_name
from benchrunner.errors import BenchrunnerError, TransportError
from benchrunner.events import Event
from benchrunner.host_places import cache_dir, in_memory, reach, roots, served
from benchrunner.host_right import leased
from benchrunner.launchers.direct import DirectLauncher
from benchrunner.launchers.supervisor import ensure_supervisor, supervisor_sources
from benchrunner.memory_disk import MemoryDisk, log_taints
from benchrunner.places import HostDisk
from benchrunner.presence import Presence
from benchrunner.transports import OutcomeUnknownError
from benchrunner.transports.local import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchrunner import definitions
    from benchrunner.host_right import Right
    from benchrunner.memory_disk import Room, Wanted
    from benchrunner.model import HostFacts, Taint
    from benchrunner.probes.tuning import HostSettings
    from benchrunner.session import Session
    from benchrunner.surroundings import Surroundings
    from benchrunner.transports import Transport


_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class HostSession:
    """One host for the time of a sweep."""

    name: str
    definition: definitions.Host
    transport: Transport
    launcher: DirectLauncher
    disk: HostDisk
    database_dir: str
    """Where databases are made; its file system is the one that is measured."""
    facts: HostFacts
    right: Right
    """To use the host; shown to it with everything that is started or deleted there."""
    lacks: dict[str, str]
    """What a variant may need and this host has not -> why."""
    taints: tuple[Taint, ...]
    """Of every trial: settings that were asked for and are not in force."""
    surroundings: Surroundings
    presence: Presence
    memory: MemoryDisk | None = None
    """What databases lie on that a workload wants in memory."""


@contextmanager
def open_host(
    session: Session,
    host: definitions.Host,
    room: Room | None = None,
    beside: HostSession | None = None,
) -> Iterator[HostSession]:
    """Takes the host, makes it ready, and gives it back as it was.

    A host that is lost meanwhile is waited for, once it was there: whatever is done here can be
    done again.

    Args:
        session: of the sweep.
        host: its definition.
        room: how much memory databases need that are to lie there; ``None``: on a device.
        beside: another host that we hold at the same time.

    Raises:
        TransportError: The host cannot be reached.
        HostBusyError: Another controller holds it.
    """
    transport = reach(session, host)
    try:
        places = roots(session, host, session.settings.choices)
        wanted = None
        if room is not None:
            places, wanted = in_memory(host, places, session.settings.choices, room)
        presence = _presence(session, host, transport)
        presence.through(partial(places.claim, transport))
        program = presence.through(partial(supervisor_on, session, host, transport))
        transport = served(transport, program)
        presence = _presence(session, host, transport)
        held = None if beside is None else beside.right
        with (
            leased(session, host, transport, program, presence, held) as right,
            _memory(session, host, transport, right, presence, wanted) as memory,
        ):
            if memory is not None:
                places = replace(places, databases=memory.folder)
            disk = HostDisk(transport, places, program, right.arguments)
            launcher = DirectLauncher(transport, program, right.arguments)
            with _tuned(session, host, disk, transport) as settings:
                ready = partial(_ready, session, host, disk, settings, launcher, right)
                yield _with(memory, presence.through(lambda: ready(presence)))
    finally:
        transport.close()


@contextmanager
def _memory(
    session: Session, host: definitions.Host, transport: Transport, right: Right,
    presence: Presence, wanted: Wanted | None,
) -> Iterator[MemoryDisk | None]:  # fmt: skip
    """What databases in memory lie on; the memory is given back at the end."""
    if wanted is None:
        yield None
        return
    keep = session.settings.choices.keep_databases
    disk = MemoryDisk(transport, wanted, session.observer, keep=keep)
    try:
        presence.through(disk.take)
        yield disk
    finally:
        try:
            right.check()
            _twice(disk.leave)
        except BenchrunnerError as error:
            # What was measured is stored, and why we are leaving matters more.
            text = f"{disk.folder} may stay in memory: {error.message}"
            mend = f"benchrunner hosts restore {host.name}"
            session.observer(Event("warning", f"{text} ({mend})", {"host": host.name}))


def _with(memory: MemoryDisk | None, host: HostSession) -> HostSession:
    """A session of a host whose databases lie in memory says so."""
    if memory is None:
        return host
    taints = log_taints(host.transport, host.disk.roots.wal or host.disk.roots.work)
    return replace(host, memory=memory, taints=(*host.taints, *taints))


def _presence(session: Session, host: definitions.Host, transport: Transport) -> Presence:
    return Presence(transport, host.limits.reconnect_s, session.observer, session.stop)


def supervisor_on(session: Session, host: definitions.Host, transport: Transport) -> str:
    """Path of the supervisor on a host; compiled there, or here for a host without compiler."""

    def made_here() -> Path:
        cache = str(session.settings.cache.absolute())
        return Path(ensure_supervisor(LocalTransport(), supervisor_sources(), cache))

    cache, elsewhere = cache_dir(session, host), bool(host.address)
    sources = supervisor_sources()
    return ensure_supervisor(transport, sources, cache, made_here if elsewhere else None)


@contextmanager
def _tuned(
    session: Session, host: definitions.Host, disk: HostDisk, transport: Transport
) -> Iterator[HostSettings]:
    """Settings that are changed meanwhile are put back."""
    from benchrunner.probes.tuning import HostSettings, changed, restore

    disk.roots.raw.mkdir(parents=True, exist_ok=True)
    settings = HostSettings(transport, disk.roots.work, _controller())

    def warn(text: str) -> None:
        session.observer(Event("warning", text, {"host": host.name}))

    try:
        yield settings
    finally:
        try:
            restored = _twice(lambda: restore(settings))
        except TransportError as error:
            # What was measured is stored, and why we are leaving matters more.
            mend = f"benchrunner hosts restore {host.name}"
            warn(f"settings that were changed may not be put back: {error.message} ({mend})")
        else:
            for entry, why in (*restored.failed, *restored.forgotten):
                (line,) = changed([entry])
                warn(f"{line}; it was not put back: {why}")


def _twice(work: Callable[[], _Result]) -> _Result:
    """Does what may be repeated once more when the connection is lost in the middle of it."""
    try:
        return work()
    except OutcomeUnknownError:
        return work()


def _ready(
    session: Session, host: definitions.Host, disk: HostDisk, settings: HostSettings,
    launcher: DirectLauncher, right: Right, presence: Presence,
) -> HostSession:  # fmt: skip
    """Tuned, observed, and what was observed stored."""
    from benchrunner.probes.preconditions import check_direct_io
    from benchrunner.probes.preload import JEMALLOC, can_preload
    from benchrunner.probes.preparation import Preparer, cpu_temperature
    from benchrunner.surroundings import Surroundings

    transport, places = settings.transport, disk.roots
    database_dir = places.databases or places.work
    facts, taints = _observed(session, host, settings, database_dir)
    checked = check_direct_io(transport, database_dir)
    lacks = {} if checked.ok else {"direct-io": checked.evidence}
    if not facts.facts.get("tools", {}).get("numactl"):
        lacks["numactl"] = f"host {host.name} has no numactl: apt-get install -y numactl"
    if not can_preload(transport, JEMALLOC):
        lacks["jemalloc"] = f"host {host.name} has no {JEMALLOC}: apt-get install -y libjemalloc2"
    preparer = Preparer(transport, database_dir, cpu_temperature(transport))
    ours = () if host.address else (os.getpid(),)
    return HostSession(
        host.name, host, transport, launcher, disk, database_dir, facts, right, lacks, taints,
        Surroundings(transport, preparer, ours, session.observer), presence,
    )  # fmt: skip


def _observed(
    session: Session, host: definitions.Host, settings: HostSettings, database_dir: str
) -> tuple[HostFacts, tuple[Taint, ...]]:
    """Facts as they are once the settings are in force."""
    from benchrunner.probes.changes import changes
    from benchrunner.probes.facts import collect_facts
    from benchrunner.probes.settings import block_devices
    from benchrunner.probes.tuning import put_back, tune

    facts = collect_facts(settings.transport, [database_dir], host.name)
    tuned = tune(settings, host.tune, block_devices(facts.facts))
    for line in put_back(tuned.left_over.restored):
        text = f"a former controller had left settings changed; {line}"
        session.observer(Event("note", text, {"host": host.name}))
    if tuned.changed or tuned.left_over.restored:
        facts = collect_facts(settings.transport, [database_dir], host.name)
    before = session.store.last_facts(host.name)
    for change in changes(before, facts) if before is not None else ():
        text = f"host {host.name} has changed since the last visit: {change}"
        session.observer(Event("note", text, {"host": host.name, "fact": change.path}))
    session.store.save_facts(facts)
    return facts, tuned.taints


def _controller() -> str:
    """Who we are, for people."""
    return f"{login_name()}, process {os.getpid()} on {socket.gethostname()}"
