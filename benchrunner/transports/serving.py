"""Commands and files of a host through ``br-supervise serve``: one round trip each, many at once.

In: two callables that carry bytes to and from that program, requests from any thread. Out: what
``Transport`` promises, in the words of the local one. It opens no connection and repeats nothing.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from benchrunner.errors import TransportError
from benchrunner.transports import Completed, MissingFileError, Waited
from benchrunner.transports.exchange import (
    Answer,
    Exchange,
    Greeting,
    LineTooLongError,
    StreamLostError,
)
from benchrunner.transports.local import reason, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Greeting", "Serving", "StreamLostError", "Waited"]

_MOST_INPUT_BYTES = 64 << 20
_LONGEST_S = 1e8
_WAIT_SLICE_S = 20.0
"""Longest single wait: an answer at least this often shows that the host is not frozen."""


class Serving:
    """One running ``br-supervise serve``. Any number of threads may use it at once.

    Args:
        receive: Returns up to so many bytes of its stdout, at least one; ``b""`` at the end. It
            is called by one thread only.
        send: Hands all of the bytes over to its stdin. It is called by one other thread only.
        host: How messages call the host.
        on_close: Called once, when the stream broke or ``close`` was called. It must make
            ``receive`` and ``send`` return or raise.
        patience_s: How long nothing may move before a host that owes an answer counts as lost.
    """

    def __init__(
        self,
        receive: Callable[[int], bytes],
        send: Callable[[bytes], object],
        host: str,
        on_close: Callable[[], object],
        patience_s: float = 30.0,
    ) -> None:
        self.host = host
        self._exchange = Exchange(receive, send, host, on_close, patience_s)

    def greeting(self) -> Greeting:
        """Waits for the first line of the far end. Requests need not wait for it.

        Raises:
            StreamLostError: It did not come, or something else did.
        """
        return self._exchange.greeting()

    @property
    def is_lost(self) -> bool:
        """Whether it broke or was closed: every further request is refused."""
        return self._exchange.is_lost

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        input: bytes | None = None,  # noqa: A002
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Completed:
        """See ``Transport.run``. An exception that interrupts it ends the command, too."""
        if not argv:
            raise TransportError("an empty argument list cannot be run")
        data = input or b""
        env = dict(env or {})
        what = f"{words_of(argv)} cannot run"
        self._check(what, _problem_of_run(argv, env, cwd, data))
        limit_s = min(max(timeout_s, 0.0), _LONGEST_S)
        request = {"run": list(argv), "env": env, "cwd": cwd, "timeout_s": limit_s}
        answer = self._ask(what, request, limit_s, data)
        error = answer.words.get("error")
        if error is None:
            return Completed(answer.words["exit_code"], answer.stdout, answer.stderr)
        if error == "timeout":
            raise TransportError(
                f"{words_of(argv)} did not end within {timeout_s:g} s on {self.host}",
                "find out what it waits for by running it by hand",
            )
        if error == "not-found":
            raise TransportError(f"{argv[0]} was not found on {self.host}", "benchrunner doctor")
        if error == "no-cwd":
            raise MissingFileError(f"{what} in {cwd} on {self.host}: no such folder")
        raise self._failure(what, answer)

    def read(self, remote: str, offset: int = 0, limit: int | None = None) -> bytes:
        """See ``Transport.read``."""
        what = f"{remote} cannot be read"
        self._check_path(what, remote)
        self._check(what, f"offset {offset} is negative" if offset < 0 else None)
        asked = None if limit is None or limit < 0 else limit
        answer = self._ask(what, {"read": remote, "offset": offset, "limit": asked})
        if answer.words.get("error") == "missing":
            raise MissingFileError(f"{what} on {self.host}: {remote} is not there")
        self._refuse_errors(what, answer)
        return answer.stdout

    def size(self, remote: str) -> int | None:
        """See ``Transport.size``."""
        what = f"{remote} cannot be looked at"
        self._check_path(what, remote)
        answer = self._ask(what, {"size": remote})
        self._refuse_errors(what, answer)
        size: int | None = answer.words["size"]
        return size

    def wait(self, run_dir: str, timeout_s: float | None) -> Waited:
        """Waits until the supervised run in a folder is over, or the time is; ``None`` = no limit.

        The host tells the end by itself, at once. A run that goes on is ``running``.
        """
        what = f"{run_dir} cannot be looked at"
        self._check_path(what, run_dir)
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left_s = _WAIT_SLICE_S if until is None else max(0.0, until - time.monotonic())
            slice_s = min(left_s, _WAIT_SLICE_S)
            answer = self._ask(what, {"wait": run_dir, "timeout_s": slice_s}, slice_s)
            self._refuse_errors(what, answer)
            over = until is not None and time.monotonic() >= until
            if answer.words["state"] != "running" or over:
                return _waited(answer)

    def close(self) -> None:
        """Ends it: commands that run through it are killed by the host, waiting callers raise."""
        self._exchange.close()

    def _ask(
        self, what: str, request: Mapping[str, Any], limit_s: float = 0.0, data: bytes = b""
    ) -> Answer:
        try:
            return self._exchange.ask(request, limit_s, data)
        except LineTooLongError:
            raise TransportError(f"{what} on {self.host}: argument list too long") from None

    def _check_path(self, what: str, path: str) -> None:
        if not path.startswith("/"):
            raise TransportError(f"{path!r} is not an absolute path on {self.host}")
        self._check(what, _problem_of_text(path))

    def _check(self, what: str, problem: str | None) -> None:
        """Refuses what would not arrive as it is."""
        if problem is not None:
            raise TransportError(f"{what} on {self.host}: {problem}")

    def _failure(self, what: str, answer: Answer) -> TransportError:
        why = OSError(0, answer.words.get("message", answer.words["error"]))
        return TransportError(f"{what} on {self.host}: {reason(why)}")

    def _refuse_errors(self, what: str, answer: Answer) -> None:
        if "error" in answer.words:
            raise self._failure(what, answer)


def _problem_of_text(*texts: str) -> str | None:
    """Why a text cannot be an argument or a path, in Python's words."""
    try:
        has_null = any(b"\0" in os.fsencode(text) for text in texts)
    except ValueError as error:
        return str(error)
    return "embedded null byte" if has_null else None


def _problem_of_run(
    argv: Sequence[str], env: Mapping[str, str], cwd: str | None, data: bytes
) -> str | None:
    if any(not name or "=" in name for name in env):
        return "illegal environment variable name"
    if len(data) > _MOST_INPUT_BYTES:
        return f"its input of {len(data)} bytes is over {_MOST_INPUT_BYTES}"
    return _problem_of_text(*argv, *env, *env.values(), cwd or "")


def _waited(answer: Answer) -> Waited:
    words = answer.words
    return Waited(
        state=words["state"],
        status_bytes=answer.stdout if words["state"] == "finished" else None,
        stdout_bytes=words["stdout_size"],
        stderr_bytes=words["stderr_size"],
        reason=words.get("reason"),
    )
