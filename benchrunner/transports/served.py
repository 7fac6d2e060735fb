"""A host once the supervisor is there: commands, reads and sizes in one round trip each.

They go through one ``br-supervise serve``, over SSH or a pipe: on this machine that saves starting
a process from Python for each of them. Copies go as the transport below makes them. The contract
is in ``transports``.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeVar

from benchrunner.transports import OutcomeUnknownError
from benchrunner.transports.exchange import StreamLostError
from benchrunner.transports.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from benchrunner.transports import Completed, Streaming, Waited

_Result = TypeVar("_Result")
_TRIES = 3


class ServedTransport:
    """A host with a server of ours at the other end."""

    def __init__(self, inner: Streaming, program: str) -> None:
        """Takes the connection over; ``program`` is the supervisor there."""
        self.host = inner.host
        self._inner = inner
        self._program = program
        self._lock = threading.Lock()
        self._serving: Serving | None = None

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        input: bytes | None = None,  # noqa: A002
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Completed:
        """See ``Transport.run``. What may have begun is not repeated."""

        def run(serving: Serving) -> Completed:
            try:
                return serving.run(argv, timeout_s=timeout_s, input=input, env=env, cwd=cwd)
            except StreamLostError as error:
                if not error.may_have_run:
                    raise
                raise OutcomeUnknownError(
                    f"{error.message}: nobody knows whether {argv[0]} ran", error.hint
                ) from error

        return self._ask(run)

    def read(self, remote: str, offset: int = 0, limit: int | None = None) -> bytes:
        """See ``Transport.read``."""
        return self._ask(lambda serving: serving.read(remote, offset, limit))

    def size(self, remote: str) -> int | None:
        """See ``Transport.size``."""
        return self._ask(lambda serving: serving.size(remote))

    def wait_run(self, run_dir: str, timeout_s: float) -> Waited:
        """Waits there until a supervised run is over, or so long; the host tells at once."""
        return self._ask(lambda serving: serving.wait(run_dir, timeout_s))

    def put(self, local: Path, remote: str, mode: int | None = None) -> None:
        """See ``Transport.put``."""
        self._inner.put(local, remote, mode)

    def get(self, remote: str, local: Path) -> None:
        """See ``Transport.get``."""
        self._inner.get(remote, local)

    def close(self) -> None:
        """Gives up server and connection."""
        with self._lock:
            if self._serving is not None:
                self._serving.close()
        self._inner.close()

    def _ask(self, request: Callable[[Serving], _Result]) -> _Result:
        """Asks the server, a new one when the connection of the old one broke."""
        for _ in range(_TRIES - 1):
            try:
                return request(self._served())
            except StreamLostError:
                continue
        return request(self._served())

    def _served(self) -> Serving:
        with self._lock:
            if self._serving is None or self._serving.is_lost:
                self._serving = self._begun()
            return self._serving

    def _begun(self) -> Serving:
        ending = ExitStack()
        running = ending.enter_context(self._inner.stream([self._program, "serve"]))
        return Serving(running.read, running.write, self.host, ending.close)
