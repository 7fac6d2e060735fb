"""Settings and memory of a host that a crashed controller has left, put and given back.

In: a session and a host. Out: what was put back, what was not and why; what was unmounted.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from benchrunner import memory_disk, workdir
from benchrunner.errors import HostBusyError
from benchrunner.host_places import reach, roots
from benchrunner.host_session import supervisor_on
from benchrunner.inventory.taking import taken

if TYPE_CHECKING:
    from benchrunner.definitions import Host
    from benchrunner.probes.tuning import Restored
    from benchrunner.session import Session


def put_back(session: Session, host: Host) -> Restored:
    """Puts back what the journal on the host says. Without a journal nothing is touched at all.

    Raises:
        HostBusyError: Another controller uses the host: the settings are its own.
        ConfigurationError: The journal cannot be read.
        TransportError: The host cannot be reached.
    """
    from benchrunner.probes.tuning import HostSettings, Restored, pending, restore

    places = roots(session, host, session.settings.choices)
    transport = reach(session, host)
    try:
        workdir.check_claimable(transport, places.work)
        by = f"{os.environ.get('USER') or 'benchrunner'}, process {os.getpid()}"
        settings = HostSettings(transport, places.work, f"{by} on {socket.gethostname()}")
        if not pending(settings):
            return Restored()
        supervisor = supervisor_on(session, host, transport)
        with taken(host, transport, "restore", supervisor):
            return restore(settings)
    finally:
        transport.close()


def give_memory_back(session: Session, host: Host) -> str:
    """Unmounts the memory disk that a crashed controller has left; its databases are lost.

    Returns:
        Where it was; empty when there was none.

    Raises:
        HostBusyError: Another controller uses the host, or a process uses the memory disk.
        TransportError: The host cannot be reached.
    """
    places = roots(session, host, session.settings.choices)
    transport = reach(session, host)
    try:
        if not memory_disk.is_mounted(transport, places.work):
            return ""
        point = memory_disk.mount_point(places.work)
        supervisor = supervisor_on(session, host, transport)
        with taken(host, transport, "restore", supervisor):
            if memory_disk.unmount(transport, places.work) == "busy":
                raise HostBusyError(
                    f"{point} on {transport.host} is in use and stays mounted",
                    f"end what `fuser -vm {point}` shows, and run this again",
                )
        return point
    finally:
        transport.close()
