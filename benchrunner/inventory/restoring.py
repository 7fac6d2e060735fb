"""Settings of a host that a crashed controller has left, put back.

In: a session and a host. Out: what was put back, what was not and why.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from benchrunner import workdir
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
