"""Folders that dead controllers have left on a host, found and deleted.

In: a session and a host. Out: what was deleted, and what was kept and why. Only folders with our
marker below claimed work directories go, and none of a step that runs or of an unfinished sweep.
"""

from __future__ import annotations

import os
import posixpath
import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from benchrunner import memory_disk, workdir
from benchrunner.errors import ConfigurationError, ForeignDirectoryError, TransportError
from benchrunner.host_places import cache_dir, reach, roots
from benchrunner.host_session import supervisor_on
from benchrunner.inventory.taking import existing_store, taken
from benchrunner.launchers.direct import DirectLauncher
from benchrunner.model import TrialState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchrunner.definitions import Host
    from benchrunner.host_lease import HostLease
    from benchrunner.model import Handle
    from benchrunner.places import Roots
    from benchrunner.session import Session
    from benchrunner.transports import Transport

_LIMIT_S = 600.0
_GRACE_S = 10.0
_FIELDS = 5
# Prints, each ended by a NUL: kind, work directory, folder, KiB, marked. Arguments: first a cache
# or nothing, then work directories. Kind `run`: a run folder that has no status yet.
_LOOK = r"""
said() { printf '%s\0' "$@"; }
size() { du -sk -- "$1" 2>/dev/null | cut -f1; }
marked() { [ -f "$1/.benchrunner" ] && echo yes; }
only_known() {
  for entry in "$1"/* "$1"/.[!.]*; do
    case ${entry##*/} in
      artifacts | binaries | builds | sources | supervisor | .benchrunner | '*' | '.[!.]*') ;;
      *) return 1 ;;
    esac
  done
  echo yes
}
open() { [ -f "$2/command.json" ] && [ ! -f "$2/status.json" ] && said run "$1" "$2" "" ""; }
cache=$1; shift
for root; do
  [ -f "$root/.benchrunner" ] || continue
  for folder in "$root"/trials/*; do
    [ -d "$folder" ] && [ ! -L "$folder" ] || continue
    said trial "$root" "$folder" "$(size "$folder")" "$(marked "$folder")"
    for run in "$folder"/runs/*/*; do open "$folder" "$run"; done
  done
done
if [ -n "$cache" ] && [ -d "$cache" ]; then
  said cache "${cache%/*}" "$cache" "$(size "$cache")" "$(only_known "$cache")"
  for run in "$cache"/builds/*; do open "$cache" "$run"; done
fi
exit 0
"""
_MARK = r"""[ -f "$1/.benchrunner" ] || printf '%s\n' '{"what": "cache"}' >"$1/.benchrunner" """
"""The cache lies in a claimed work directory and is as a whole ours, but nobody has marked it."""
_CACHE = "the cache"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one thing that was found."""

    word: Literal["removed", "would go", "kept"]
    name: str
    """A trial, or the cache."""
    size_bytes: int
    why: str = ""
    """Of what is kept."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """The folders of one trial, or the cache."""

    name: str
    folders: tuple[tuple[str, str], ...]
    """(claimed work directory, folder) pairs, all on the host."""
    size_bytes: int
    kept: str
    """Why it must stay; empty: it can go."""
    lost: tuple[Handle, ...]
    """Runs whose supervisor is gone; what they left running is ended first."""


def clean(session: Session, host: Host, *, everything: bool, dry: bool) -> Iterator[Outcome]:
    """Deletes what dead controllers have left, one after the other; each is told when it is gone.

    Args:
        session: Of the store whose unfinished sweeps keep their trials.
        host: Its definition.
        everything: Also the host's cache: builds, sources, supervisors.
        dry: Only tell.

    Raises:
        HostBusyError: Another controller uses the host.
        ForeignDirectoryError: The work directory is not ours.
    """
    if everything and not host.address:
        raise ConfigurationError(
            f"--all is for remote hosts, and host {host.name} is this machine, whose cache "
            f"{session.settings.cache.absolute()} all its results share",
            "leave out --all; the cache can be deleted by hand while nothing runs",
        )
    places = roots(session, host, session.settings.choices)
    transport = reach(session, host)
    try:
        workdir.check_claimable(transport, places.work)
        if transport.size(f"{places.work}/{workdir.MARKER}") is None:
            return  # nobody has ever been there
        cache = cache_dir(session, host) if everything else ""
        if dry:
            found = _found(session, transport, _work_dirs(host, places), cache)
            yield from (_told(one, "would go") for one in found)
            return
        with _at_work(session, host, transport, places, everything=everything) as right:
            found = _found(session, transport, _work_dirs(host, places), cache)
            kept: list[str] = []
            for one in found:
                # Our own supervisor's folder has no name that anybody else's could have.
                if not right.supervisor.startswith(f"{one.folders[0][1]}/"):
                    right.lease.check()
                    outcome = _gone(transport, right, one)
                    kept += [path for _, path in one.folders if outcome.word == "kept"]
                    yield outcome
            right.lease.check()
            _give_memory_back(transport, places.work, kept)
    finally:
        transport.close()


@dataclass(frozen=True, slots=True)
class _Right:
    """To delete on a host: with what, and under which lease."""

    supervisor: str
    lease: HostLease


def has_store(session: Session) -> bool:
    """Whether there is a store that can tell whose trials are still wanted."""
    return existing_store(session) is not None


@contextmanager
def _at_work(
    session: Session, host: Host, transport: Transport, places: Roots, *, everything: bool
) -> Iterator[_Right]:
    """The host is ours; the supervisor is in a folder of its own when the cache is to go."""
    supervisor = supervisor_on(session, host, transport)
    if not everything:
        with taken(host, transport, "clean", supervisor) as lease:
            yield _Right(supervisor, lease)
        return
    folder = f"{places.work}/trials/cleaning-{secrets.token_hex(4)}"
    workdir.claim(transport, folder, "the supervisor of benchrunner hosts clean --all")
    copied = f"{folder}/{posixpath.basename(supervisor)}"
    try:
        transport.run(["cp", "--", supervisor, copied], timeout_s=_LIMIT_S)
        with taken(host, transport, "clean --all", copied) as lease:
            yield _Right(copied, lease)
    finally:
        workdir.remove(transport, copied, [(places.work, folder)])


def _work_dirs(host: Host, places: Roots) -> tuple[str, ...]:
    """Every folder of a host that trials may have used, whichever options they were given."""
    in_memory = memory_disk.folders(places.work)
    return tuple(dict.fromkeys((*places.claimed, *host.data, *host.wal, *in_memory)))


def _give_memory_back(transport: Transport, work: str, kept: Sequence[str]) -> None:
    """Unmounts the memory disk, unless a database that is still wanted lies on it."""
    mounted, shared = memory_disk.folders(work)
    if not any(path.startswith(f"{mounted}/") for path in kept):
        memory_disk.unmount(transport, work)
    if not any(path.startswith(f"{shared}/") for path in kept):
        memory_disk.leave_shared(transport, work)


# ---------------------------------------------------------------- looking


def _found(
    session: Session, transport: Transport, work_dirs: Sequence[str], cache: str
) -> tuple[Leftover, ...]:
    """What is there, and what of it must stay."""
    done = transport.run(["sh", "-c", _LOOK, "sh", cache, *work_dirs], timeout_s=_LIMIT_S)
    if done.exit_code != 0:
        why = done.stderr.decode(errors="replace").strip() or f"exit code {done.exit_code}"
        raise TransportError(f"the work directories of {transport.host} cannot be read: {why}")
    words = os.fsdecode(done.stdout).split("\0")[:-1]
    lines = [words[at : at + _FIELDS] for at in range(0, len(words), _FIELDS)]
    owners = _unfinished(session)
    runs: dict[str, list[str]] = {}
    for kind, above, path, _, _ in lines:
        if kind == "run":
            runs.setdefault(above, []).append(path)
    trials: dict[str, list[list[str]]] = {}
    for line in lines:
        if line[0] != "run":
            name = posixpath.basename(line[2]) if line[0] == "trial" else _CACHE
            trials.setdefault(name, []).append(line)
    return tuple(_leftover(transport, name, parts, runs, owners) for name, parts in trials.items())


def _leftover(
    transport: Transport, name: str, parts: Sequence[Sequence[str]],
    runs: Mapping[str, Sequence[str]], owners: Mapping[str, int],
) -> Leftover:  # fmt: skip
    folders = tuple((root, path) for _, root, path, _, _ in parts)
    size_bytes = sum(int(kib or 0) for _, _, _, kib, _ in parts) * 1024
    running, lost = _standing(transport, [run for _, path in folders for run in runs.get(path, [])])
    unmarked = [path for _, _, path, _, marked in parts if not marked]
    kept = ""
    if running:
        kept = f"{running[0]} still runs"
    elif name in owners:
        kept = f"sweep {owners[name]} has not ended: benchrunner resume {owners[name]}"
    elif unmarked:
        what = (
            "holds what is not benchrunner's" if name == _CACHE else f"has no {workdir.MARKER} file"
        )
        kept = f"{unmarked[0]} {what}"
    return Leftover(name, folders, size_bytes, kept, lost)


def _standing(
    transport: Transport, run_dirs: Sequence[str]
) -> tuple[tuple[str, ...], tuple[Handle, ...]]:
    """Run folders in which something runs, and runs that have lost their supervisor."""
    launcher = DirectLauncher(transport, "")  # looking takes no program
    running, lost = [], []
    for run_dir in run_dirs:
        handle = launcher.find(run_dir)
        state = launcher.poll(handle).state if handle is not None else "absent"
        if state == "running":
            running.append(run_dir)
        elif state == "lost" and handle is not None:
            lost.append(handle)
    return tuple(running), tuple(lost)


def _unfinished(session: Session) -> dict[str, int]:
    """Trial -> sweep, of those that the store still wants something of."""
    store = existing_store(session)
    if store is None:
        return {}
    states = [state for state in TrialState if not state.final]
    return {trial.id: trial.sweep_id for trial in store.trials(states=states)}


# ---------------------------------------------------------------- deleting


def _gone(transport: Transport, right: _Right, one: Leftover) -> Outcome:
    if one.kept:
        return _told(one, "kept")
    launcher = DirectLauncher(transport, right.supervisor)
    for handle in one.lost:
        launcher.stop(handle, _GRACE_S)
    if one.name == _CACHE:
        transport.run(["sh", "-c", _MARK, "sh", one.folders[0][1]], timeout_s=_LIMIT_S)
    try:
        workdir.remove(transport, right.supervisor, one.folders, right.lease.start_arguments())
    except ForeignDirectoryError as error:
        return Outcome("kept", one.name, one.size_bytes, error.message)
    return _told(one, "removed")


def _told(one: Leftover, word: Literal["removed", "would go", "kept"]) -> Outcome:
    return Outcome("kept" if one.kept else word, one.name, one.size_bytes, one.kept)
