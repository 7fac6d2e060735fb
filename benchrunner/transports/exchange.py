"""Many requests at once over one byte stream to ``br-supervise serve``, and what becomes of them.

In: two callables that carry bytes, requests from any thread. Out: for each request its answer, or
one ``StreamLostError``. It knows frames, not what they mean. They are described with the
supervisor.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from benchrunner.transports import ConnectionLostError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MOST_LINE_BYTES = 1 << 20
_PROTOCOL = 1
_PIECE_BYTES = 256 << 10
_CANCEL_S = 3.0
"""How long an interrupted caller waits for its command to be dead."""
_JOIN_S = 5.0


class StreamLostError(ConnectionLostError):
    """The stream to the host broke before an answer came.

    ``may_have_run`` is false only when the host cannot have got the request: then it is safe to
    ask again. Otherwise nobody knows.
    """

    def __init__(self, host: str, why: str, *, may_have_run: bool) -> None:
        super().__init__(
            f"the connection to {host} is lost: {why}",
            "see whether the host answers; what runs under the supervisor goes on",
        )
        self.may_have_run = may_have_run


class LineTooLongError(Exception):
    """A request does not fit in a line."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """What the far end says about itself when it begins."""

    version: str
    boot_id: str
    pid: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The last frame of an answer, and the bytes of all its frames."""

    words: Mapping[str, Any]
    stdout: bytes
    """Also the content of a file."""
    stderr: bytes


class Exchange:
    """Both directions of one stream. See ``serving.Serving`` for the arguments."""

    def __init__(
        self,
        receive: Callable[[int], bytes],
        send: Callable[[bytes], object],
        host: str,
        on_close: Callable[[], object],
        patience_s: float,
    ) -> None:
        self._receive = receive
        self._send = send
        self._host = host
        self._on_close = on_close
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._calls: dict[int, _Call] = {}
        self._outbox: SimpleQueue[_Call | None] = SimpleQueue()
        self._lost: str | None = None
        self._greeting: Greeting | None = None
        self._greeted = threading.Event()
        self._moved_at = time.monotonic()
        self._threads = [
            threading.Thread(target=work, name=f"{name} {host}", daemon=True)
            for work, name in ((self._read_all, "from"), (self._write_all, "to"))
        ]
        for thread in self._threads:
            thread.start()

    @property
    def is_lost(self) -> bool:
        """Whether it broke or was closed."""
        return self._lost is not None

    def greeting(self) -> Greeting:
        """Waits for the first line of the far end.

        Raises:
            StreamLostError: It did not come, or something else did.
        """
        if not self._greeted.wait(self._patience_s):
            self._break(f"no greeting came within {self._patience_s:g} s")
        if self._greeting is None:
            raise StreamLostError(self._host, str(self._lost), may_have_run=False)
        return self._greeting

    def ask(self, request: Mapping[str, Any], limit_s: float = 0.0, data: bytes = b"") -> Answer:
        """Sends a request, with ``data`` behind it, and waits for its answer.

        Args:
            request: What stands in the line, without its id.
            limit_s: How long the host may take by agreement.
            data: Input of a command.

        Raises:
            LineTooLongError: Nothing was sent.
            StreamLostError: There will be no answer.
        """
        call = self._post(request, data)
        try:
            left_s = self._patience_s
            while not call.done.wait(left_s):
                left_s = self._patience_left_s(call, limit_s)
                if left_s <= 0.0:
                    self._break(f"nothing was heard of it for {self._patience_s:g} s")
        except BaseException:
            self._cancel(call)
            raise
        if call.lost is not None:
            raise call.lost
        return call.answer()

    def close(self) -> None:
        """Ends it; whoever waits gets an error."""
        self._break("it was closed")
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_JOIN_S)

    def _post(self, request: Mapping[str, Any], data: bytes = b"") -> _Call:
        with self._lock:
            call = _Call(next(self._numbers))
            input_bytes = {"input_bytes": len(data)} if data else {}
            frame = {"id": call.number, **request, **input_bytes}
            line = json.dumps(frame, separators=(",", ":")).encode()
            if len(line) > MOST_LINE_BYTES:
                raise LineTooLongError
            if self._lost is not None:
                raise StreamLostError(self._host, self._lost, may_have_run=False)
            call.frame = b"".join((line, b"\n", data))
            self._calls[call.number] = call
            self._outbox.put(call)
        return call

    def _patience_left_s(self, call: _Call, limit_s: float) -> float:
        """Seconds until the host counts as lost: it must be silent, and its answer overdue.

        Large inputs and outputs take their time on the way, in which bytes move.
        """
        now = time.monotonic()
        silent_until = max(self._moved_at, call.asked_at) + self._patience_s
        if call.sent_at is None:
            return silent_until - now
        return max(silent_until, call.sent_at + limit_s + self._patience_s) - now

    def _cancel(self, call: _Call) -> None:
        """Nobody waits for the answer any more. Returns when the host has ended the command."""
        if not call.done.is_set():
            with contextlib.suppress(StreamLostError):  # then the host ends it by itself
                self._post({"cancel": call.number})
                call.done.wait(_CANCEL_S)

    # ------------------------------------------------------------ the two threads

    def _write_all(self) -> None:
        while (call := self._outbox.get()) is not None:
            try:
                call.may_have_run = True
                for begin in range(0, len(call.frame), _PIECE_BYTES):
                    self._send(call.frame[begin : begin + _PIECE_BYTES])
                    self._moved_at = time.monotonic()
            except Exception as error:  # of whatever kind: who waits gets it
                self._break(_sentence(error))
                return
            call.sent_at = self._moved_at
            call.frame = b""

    def _read_all(self) -> None:
        stream = _Stream(self._receive_some)
        try:
            self._greeting = _greeting(stream.line())
            self._greeted.set()
            while True:
                self._take(_words(stream.line()), stream)
        except Exception as error:  # of whatever kind: who waits gets it
            self._break(_sentence(error))

    def _receive_some(self) -> bytes:
        data = self._receive(_PIECE_BYTES)
        self._moved_at = time.monotonic()
        return data

    def _take(self, words: dict[str, Any], stream: _Stream) -> None:
        """Gives an answer, or a part of one, to whoever waits for it."""
        stdout = stream.exactly(words.get("stdout_bytes", 0) + words.get("bytes", 0))
        stderr = stream.exactly(words.get("stderr_bytes", 0))
        if "id" not in words:
            raise _NotServedError(f"it refused a request: {words.get('message')}")
        is_last = "more" not in words
        with self._lock:
            number = words["id"]
            call = self._calls.pop(number, None) if is_last else self._calls.get(number)
        if call is not None:
            call.stdout.append(stdout)
            call.stderr.append(stderr)
        if call is not None and is_last:
            call.words = words
            call.done.set()

    def _break(self, why: str) -> None:
        with self._lock:
            if self._lost is not None:
                return
            self._lost = why
            calls = list(self._calls.values())
            self._calls.clear()
        for call in calls:
            call.lost = StreamLostError(self._host, why, may_have_run=call.may_have_run)
            call.done.set()
        self._greeted.set()
        self._outbox.put(None)
        self._on_close()


class _NotServedError(Exception):
    """What comes is not what ``serve`` sends."""


class _Call:
    """One request and what has come of its answer."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.frame = b""
        self.asked_at = time.monotonic()
        self.sent_at: float | None = None
        self.may_have_run = False
        self.done = threading.Event()
        self.words: Mapping[str, Any] = {}
        self.stdout: list[bytes] = []
        self.stderr: list[bytes] = []
        self.lost: StreamLostError | None = None

    def answer(self) -> Answer:
        """All parts of it together."""
        return Answer(self.words, b"".join(self.stdout), b"".join(self.stderr))


class _Stream:
    """Lines and counted bytes, out of whatever pieces they come in."""

    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive = receive
        self._buffer = bytearray()

    def line(self) -> bytes:
        """The next line without its end."""
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > MOST_LINE_BYTES:
                raise _NotServedError(f"it said {bytes(self._buffer[:80])!r} without end")
            self._fill()
        return self._cut(end + 1)[:-1]

    def exactly(self, count: int) -> bytes:
        """So many bytes."""
        while len(self._buffer) < count:
            self._fill()
        return self._cut(count)

    def _cut(self, count: int) -> bytes:
        data = bytes(memoryview(self._buffer)[:count])
        del self._buffer[:count]
        return data

    def _fill(self) -> None:
        data = self._receive()
        if not data:
            raise _NotServedError("it ended")
        self._buffer += data


def _words(line: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        words = json.loads(line)
        if isinstance(words, dict):
            return words
    raise _NotServedError(f"it said {line[:80]!r}")


def _greeting(line: bytes) -> Greeting:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        words = json.loads(line)
        if words["serve"] == _PROTOCOL:
            return Greeting(words["version"], words["boot_id"], words["pid"])
    raise _NotServedError(f"it said {line[:80]!r} instead of a greeting")


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return str(error) or type(error).__name__
