"""A host that comes and goes: what was cut off is taken up again when it is back.

In: work that finds out by itself how far it had come. Out: its result, or the reason why the host
was given up. Steps go on under their supervisors while nobody is connected.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from benchrunner.events import Event
from benchrunner.transports import ConnectionLostError, UnreachableError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from benchrunner.errors import TransportError
    from benchrunner.events import Observer
    from benchrunner.transports import Transport

_Result = TypeVar("_Result")
_PAUSES_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)


class Presence:
    """Whether a host is there, and patience when it is not."""

    def __init__(
        self, transport: Transport, limit_s: float, observer: Observer, stop: threading.Event
    ) -> None:
        """Takes the host and how long to wait for it; ``stop`` ends the waiting."""
        self._transport = transport
        self._limit_s = limit_s
        self._observer = observer
        self._stop = stop

    def through(self, work: Callable[[], _Result]) -> _Result:
        """Does the work, again and again as long as the connection is lost in the middle of it.

        Raises:
            UnreachableError: The host stayed away for too long.
        """
        while True:
            try:
                return work()
            except (ConnectionLostError, UnreachableError) as error:
                self.wait(error)

    @property
    def host(self) -> str:
        """What messages call it."""
        return self._transport.host

    def wait(self, error: TransportError) -> None:
        """Waits until the host is there, a second at least.

        Raises:
            UnreachableError: It stayed away for too long.
        """
        host, until = self._transport.host, time.monotonic() + self._limit_s
        text = f"{error.message}; trying again for {self._limit_s:g} s"
        self._observer(Event("warning", text, {"host": host}))
        for attempt in range(10**9):
            if self._stop.wait(_PAUSES_S[min(attempt, len(_PAUSES_S) - 1)]):
                raise KeyboardInterrupt
            try:
                self._transport.size("/")
            except (ConnectionLostError, UnreachableError) as still:
                if time.monotonic() < until:
                    continue
                raise UnreachableError(
                    f"{host} did not come back within {self._limit_s:g} s: {still.message}",
                    "benchrunner resume goes on with its trials once it is back",
                ) from still
            self._observer(Event("note", f"{host} is back", {"host": host}))
            return


class Together:
    """Two hosts that work needs at the same time: whichever is lost is waited for."""

    def __init__(self, one: Presence, other: Presence) -> None:
        """Takes both."""
        self._both = (one, other)

    def through(self, work: Callable[[], _Result]) -> _Result:
        """Does the work as ``Presence.through`` does.

        Raises:
            UnreachableError: One of the hosts stayed away for too long.
        """
        while True:
            try:
                return work()
            except (ConnectionLostError, UnreachableError) as error:
                # An error names its host; should a jump host be the reason, it may be either.
                named = [presence for presence in self._both if presence.host in error.message]
                for presence in named or self._both:
                    presence.wait(error)
