"""Work on several hosts at once: a thread for each, which none of the others waits for.

In: what to do with one host. Out: nothing, or one error that tells of every host that failed.
Ctrl-C reaches the main thread only; it is passed on by a flag that the others look at.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from benchrunner.errors import EXIT_TRIAL_FAILED, BenchrunnerError
from benchrunner.events import Event, Observer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_LOOK_S = 0.2


class HostsFailedError(BenchrunnerError):
    """Some hosts could not go on; what was finished, there and elsewhere, is stored."""

    exit_code = EXIT_TRIAL_FAILED


def on_each(hosts: Sequence[str], work: Callable[[str], None], stop: threading.Event) -> None:
    """Does the work for every host at the same time, and waits for all of them.

    Args:
        hosts: their names; a single one is worked on in this thread.
        work: for one host; it ends soon after ``stop`` is set.
        stop: set when this thread is interrupted.

    Raises:
        HostsFailedError: Work failed on some hosts; the others went on to their end.
        BenchrunnerError: The one host there is failed.
    """
    if len(hosts) == 1:
        work(hosts[0])
        return
    failed: dict[str, BaseException] = {}
    # Not Thread.join: interrupted in it, Python 3.11 takes a thread that runs for one that ended.
    over = {host: threading.Event() for host in hosts}

    def guarded(host: str) -> None:
        try:
            work(host)
        except BaseException as error:
            failed[host] = error
        finally:
            over[host].set()

    threads = [threading.Thread(target=guarded, args=(host,), name=host) for host in hosts]
    for thread in threads:
        thread.start()
    try:
        _wait(over.values())
    except KeyboardInterrupt:
        stop.set()
        _wait(over.values())
        _refuse_mistakes(failed)
        raise
    _tell(failed, len(hosts))


def _wait(all_over: Iterable[threading.Event]) -> None:
    for over in all_over:
        while not over.wait(_LOOK_S):
            pass


def _tell(failed: dict[str, BaseException], hosts: int) -> None:
    """One error for all."""
    _refuse_mistakes(failed)
    if not failed:
        return
    said = [error.message for error in failed.values() if isinstance(error, BenchrunnerError)]
    hints = [error.hint for error in failed.values() if isinstance(error, BenchrunnerError)]
    one = "1 host" if len(failed) == 1 else f"{len(failed)} hosts"
    raise HostsFailedError(
        f"{one} of {hosts} did not finish: {'; '.join(said)}",
        next((hint for hint in hints if hint), ""),
    )


def _refuse_mistakes(failed: dict[str, BaseException]) -> None:
    """A mistake of this program is raised as it is, with its traceback."""
    for error in failed.values():
        if not isinstance(error, BenchrunnerError | KeyboardInterrupt):
            raise error


def tagged(observer: Observer, host: str, lock: threading.Lock) -> Observer:
    """An observer for one of several hosts: texts begin with its name, one event at a time."""

    def observe(event: Event) -> None:
        text = f"{host}: {event.text}" if event.text else ""
        with lock:
            observer(Event(event.kind, text, {**event.data, "host": host}))

    return observe
