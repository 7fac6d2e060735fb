"""Changes settings of a host for the time of a sweep, and puts them back whatever happens.

In: a transport, the claimed work directory on the host, and what a person wants. The journal lies
on the host, so that any controller can put back what another one left. An old value is in the
journal, synced, before anything is changed, and leaves it only when it has been seen to be back.
"""

from __future__ import annotations

import json
import shlex
import time
from dataclasses import asdict, dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING

from benchrunner.errors import ConfigurationError, TransportError
from benchrunner.model import Taint
from benchrunner.probes.settings import (
    SETTINGS,
    BlockDevices,
    all_globs,
    check_settings,
    is_place_of,
    is_reset_by,
    reset_paths,
    wanted_paths,
)
from benchrunner.probes.text import chosen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from benchrunner.transports import Transport

JOURNAL = "settings-journal.json"
_VERSION = 1
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the journal: what a file held before we changed it."""

    setting: str
    path: str
    old: str
    new: str | None
    """``None``: not changed by us, but by the kernel along with another setting."""
    by: str
    at: float
    """Unix time of the controller."""
    boot_id: str


@dataclass(frozen=True, slots=True)
class Tuned:
    """What became of the settings that were asked for."""

    changed: tuple[Entry, ...]
    taints: tuple[Taint, ...]
    """``untuned-NAME`` for each setting that is not in force."""
    in_force: Mapping[str, str]
    """Setting -> value, as asked for; those that were so already included."""
    left_over: Restored
    """What a former controller had left, put back first."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of the entries of a journal."""

    restored: tuple[Entry, ...] = ()
    failed: tuple[tuple[Entry, str], ...] = ()
    """With the reason; they stay in the journal."""
    forgotten: tuple[tuple[Entry, str], ...] = ()
    """With the reason; nothing was done about them and nothing will be."""


@dataclass(frozen=True, slots=True)
class HostSettings:
    """Where settings are changed and who does it."""

    transport: Transport
    work_dir: str
    """On the host, claimed; the journal is in it."""
    by: str = "benchrunner"
    """Who, for the journal: user, process and machine of the controller."""
    root: str = ""
    """Folder that stands for / in tests."""

    @property
    def journal(self) -> str:
        """Path of the journal on the host."""
        return f"{self.work_dir}/{JOURNAL}"


def tune(where: HostSettings, wanted: Mapping[str, str], devices: BlockDevices) -> Tuned:
    """Puts settings in force, as far as the host permits; what it does not permit is a taint.

    What an earlier call left is put back first, so calling it again gives the same. It takes one
    round trip if all is as wanted, three if not. Facts are best taken after it.

    Args:
        where: The host and the work directory.
        wanted: Setting -> value.
        devices: What lies below the databases.

    Raises:
        ConfigurationError: A name or value is not known, or the journal cannot be read.
        TransportError: The host cannot be reached, or the journal cannot be written. Nothing has
            been changed that the journal does not know.
    """
    check_settings(wanted, "tune")
    seen, left_over = _look(where, wanted), Restored()
    if seen.entries:
        left_over = _restore(where, seen.entries)
        seen = _look(where, wanted)
    targets = {name: wanted_paths(name, wanted[name], seen.values, devices) for name in wanted}
    entries = _entries(where, seen, targets, devices)
    after: Mapping[str, tuple[str, str]] = {}
    if any(entry.new is not None for entry in entries):
        anew = {entry.path for entry in entries}
        kept = [entry for entry in seen.entries if entry.path not in anew]
        _write_journal(where, (*kept, *entries))
        after = _apply(where, _lines(seen, targets))
    now = {path: (value or "", "") for path, value in seen.values.items()} | dict(after)
    shortfalls = {name: _shortfall(name, wanted[name], targets[name], now) for name in wanted}
    changed = tuple(e for e in entries if e.new is not None and now[e.path][0] == e.new)
    return Tuned(
        changed,
        tuple(taint for taint in shortfalls.values() if taint),
        {name: wanted[name] for name, taint in shortfalls.items() if taint is None},
        left_over,
    )


def restore(where: HostSettings) -> Restored:
    """Puts back what the journal on the host says, last changed first, and checks that it is back.

    It may be called at any time, any number of times, by any controller that holds the host.

    Raises:
        ConfigurationError: The journal cannot be read.
        TransportError: The host cannot be reached; calling it again goes on.
    """
    entries = pending(where)
    return _restore(where, entries) if entries else Restored()


def pending(where: HostSettings) -> tuple[Entry, ...]:
    """What the journal says has not been put back; reads only."""
    return _look(where, ()).entries


# ---------------------------------------------------------------- deciding; pure


@dataclass(frozen=True, slots=True)
class _Seen:
    """The host's settings at one moment. A value that cannot be read is ``None``."""

    boot_id: str
    values: Mapping[str, str | None]
    entries: tuple[Entry, ...]


def _entries(
    where: HostSettings,
    seen: _Seen,
    targets: Mapping[str, Mapping[str, str]],
    devices: BlockDevices,
) -> list[Entry]:
    """What has to be journalled: files to be changed, and those that change along with them.

    The first old value counts: one that could not be put back stays what has to come back.
    """
    at, first = time.time(), {entry.path: entry.old for entry in seen.entries}
    found: dict[str, Entry] = {}
    for name, paths in targets.items():
        differing = {path: new for path, new in paths.items() if seen.values[path] != new}
        for path, new in differing.items():
            old = seen.values[path]
            if old is not None:
                old = first.get(path, old)
                found[path] = Entry(name, path, old, new, where.by, at, seen.boot_id)
        for path in reset_paths(name, seen.values, devices) if differing else ():
            old = seen.values[path]
            if old is not None and path not in found:
                old = first.get(path, old)
                found[path] = Entry(name, path, old, None, where.by, at, seen.boot_id)
    return list(found.values())


def _lines(seen: _Seen, targets: Mapping[str, Mapping[str, str]]) -> dict[str, tuple[str, str]]:
    """Path -> old and wanted value; what could not be read could not be put back: it is left out.

    What is as wanted is there too: changing another setting can reset it.
    """
    wanted = {path: value for paths in targets.values() for path, value in paths.items()}
    olds = {path: seen.values[path] for path in wanted}
    return {path: (old, wanted[path]) for path, old in olds.items() if old is not None}


def _shortfall(
    name: str, value: str, paths: Mapping[str, str], now: Mapping[str, tuple[str, str]]
) -> Taint | None:
    """The taint of a setting that is not in force; ``None`` when it is."""
    taint = f"untuned-{name.replace('_', '-')}"
    setting = SETTINGS[name]
    if not paths:
        if setting.absent == value:
            return None
        files = " or ".join(one.glob for one in setting.places)
        evidence = f"{name} = {value} was asked for, and the host has no {files}"
        return Taint(taint, evidence, f"take {name} out of the host's tune table")
    wrong = [path for path, new in paths.items() if now[path][0] != new]
    if not wrong:
        return None
    value_now, why = now[wrong[0]]
    evidence = f"{name} = {value} was asked for, and {wrong[0]} is {value_now or 'not readable'}"
    evidence += f": {why.strip()}" if why.strip() else ""
    evidence += f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    return Taint(taint, evidence, _remedy(wrong[0], paths[wrong[0]]))


def _remedy(path: str, value: str) -> str:
    if path.startswith("service:"):
        verb = "start" if value == "active" else "stop"
        return f"sudo systemctl {verb} {path.removeprefix('service:')}"
    by_hand = f"echo {shlex.quote(value)} | sudo tee {shlex.quote(path)}"
    return f"{by_hand}; or run as root, or allow `tee {path}` in sudoers"


def _sorted_out(seen: _Seen) -> tuple[list[Entry], list[tuple[Entry, str]]]:
    """Entries that are to be put back, and those of which nothing is left to do, with the reason.

    Entries whose old value is in place are among the first: what is put back can reset it.
    """
    back: list[Entry] = []
    forgotten: list[tuple[Entry, str]] = []
    for entry in seen.entries:
        why = _nothing_to_do(entry, seen)
        if why:
            forgotten.append((entry, why))
        else:
            back.append(entry)
    return back, forgotten


def _nothing_to_do(entry: Entry, seen: _Seen) -> str:
    if not is_place_of(entry.setting, entry.path):
        return "it is no setting that benchrunner changes: somebody else wrote it"
    if entry.boot_id != seen.boot_id:
        return "the host was rebooted since, which put it back"
    if entry.path not in seen.values:
        return "it is not there any more"
    now = seen.values[entry.path]
    unsure = entry.new is None or any(
        is_reset_by(other.setting, entry.path) for other in seen.entries
    )
    if not unsure and now is not None and now not in (entry.old, entry.new):
        return f"somebody else has set it to {now}: it is left so"
    return ""


# ---------------------------------------------------------------- doing


def _restore(where: HostSettings, entries: Sequence[Entry]) -> Restored:
    seen = _look(where, dict.fromkeys(entry.setting for entry in entries))
    back, forgotten = _sorted_out(seen)
    differing = [entry for entry in back if seen.values[entry.path] != entry.old]
    after: Mapping[str, tuple[str, str]] = {}
    if differing:
        after = _apply(where, {entry.path: ("", entry.old) for entry in reversed(back)})
    failed = [
        (entry, why.strip() or f"it is {value or 'not readable'}")
        for entry in back
        for value, why in [after.get(entry.path, (entry.old, ""))]
        if value != entry.old
    ]
    left = [entry for entry, _ in failed]
    _write_journal(where, left)
    restored = tuple(entry for entry in reversed(differing) if entry not in left)
    return Restored(restored, tuple(failed), tuple(forgotten))


def _look(where: HostSettings, settings: Iterable[str]) -> _Seen:
    """Reads the journal, and all places of some settings."""
    text = _script(where, "look", where.journal, _BOOT_ID, *all_globs(settings))
    head, _, journal = text.partition("journal\n")
    values: dict[str, str | None] = {}
    for line in head.splitlines():
        if line.startswith("there:"):
            values.setdefault(line.removeprefix("there:"), None)
        elif line.startswith("service:"):
            service, _, value = line.rpartition(":")
            values[service] = value
        else:
            path, _, content = line.removeprefix(where.root).partition(":")
            values[path] = chosen(content.strip())
    return _Seen(values.pop(_BOOT_ID, None) or "", values, _read_journal(where, journal))


def _read_journal(where: HostSettings, text: str) -> tuple[Entry, ...]:
    if not text.strip():
        return ()
    try:
        content = json.loads(text)
        entries = tuple(Entry(**entry) for entry in content["entries"])
        sound = content["version"] == _VERSION and all(_is_sound(entry) for entry in entries)
    except (ValueError, TypeError, KeyError):
        entries, sound = (), False
    if not sound:
        raise ConfigurationError(
            f"{where.journal} on {where.transport.host} is no journal of settings that can be read",
            "look at it, put the settings back by hand, then delete it",
        )
    return entries


def _is_sound(entry: Entry) -> bool:
    """Whether what a file says has the types of an entry, and texts of one line."""
    texts: tuple[object, ...] = (
        entry.setting, entry.path, entry.old, entry.by, entry.boot_id, entry.new or ""
    )  # fmt: skip
    return all(isinstance(text, str) and not set(text) & set("\t\n\0") for text in texts)


def _write_journal(where: HostSettings, entries: Sequence[Entry]) -> None:
    text = b""
    if entries:
        content = {"version": _VERSION, "entries": [asdict(entry) for entry in entries]}
        text = json.dumps(content, indent=1).encode() + b"\n"
    _script(where, "journal", where.journal, str(len(text)), given=text)


def _apply(where: HostSettings, lines: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Writes path -> (value to go back to if it is not taken, value); path -> (value now, why)."""
    text = "".join(f"{path}\t{undo}\t{value}\n" for path, (undo, value) in lines.items())
    printed = _script(where, "apply", given=f"{text}end\n".encode())
    rows = (line.split("\t", 2) for line in printed.splitlines())
    return {path: (value, why) for path, value, why in rows}


def _script(where: HostSettings, verb: str, *args: str, given: bytes | None = None) -> str:
    script = resources.files("benchrunner.probes").joinpath("settings.sh").read_text("utf-8")
    argv = ["sh", "-c", script, "sh", verb, where.root, *args]
    done = where.transport.run(argv, timeout_s=_LIMIT_S, input=given)
    if done.exit_code != 0:
        why = done.stderr.decode(errors="replace").strip() or f"exit code {done.exit_code}"
        raise TransportError(
            f"settings of {where.transport.host}: {verb} with {where.journal}: {why}",
            "look whether the work directory can be written",
        )
    return done.stdout.decode(errors="replace")


def put_back(entries: Iterable[Entry]) -> tuple[str, ...]:
    """Lines for entries whose old value is back."""
    return _lines_for(entries, lambda e: f"is {e.old} again, and was {e.new or 'reset'}")


def changed(entries: Iterable[Entry]) -> tuple[str, ...]:
    """Lines for entries whose old value is not back."""
    return _lines_for(entries, lambda e: f"was {e.old}, and was {_became(e)}")


def _became(entry: Entry) -> str:
    return "reset by another setting" if entry.new is None else f"set to {entry.new}"


def _lines_for(entries: Iterable[Entry], told: Callable[[Entry], str]) -> tuple[str, ...]:
    """One line for each entry, as people read it; many files with the same values are one line."""
    counted: dict[Entry, int] = {}
    for entry in entries:
        alike = next((one for one in counted if _alike(one, entry)), entry)
        counted[alike] = counted.get(alike, 0) + 1
    lines = []
    for entry, count in counted.items():
        what = f"{entry.setting}: {entry.path}" + (f" and {count - 1} more" if count > 1 else "")
        lines.append(f"{what} {told(entry)}")
    return tuple(lines)


def _alike(one: Entry, other: Entry) -> bool:
    return replace(one, path="") == replace(other, path="")
