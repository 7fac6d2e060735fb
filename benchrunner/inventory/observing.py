"""Facts of a host taken now, stored, compared with those of earlier visits, and put into lines.

In: a session and a host. Out: facts, changes, and text with units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchrunner.host_places import reach, roots
from benchrunner.inventory.taking import existing_store
from benchrunner.probes.changes import changes, label
from benchrunner.units import about_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchrunner.definitions import Host
    from benchrunner.model import HostFacts
    from benchrunner.probes.changes import Change
    from benchrunner.session import Session

_SIZES = {"_kib": 1024, "_bytes": 1}
_UNITS = {"_s": "s", "_us": "us", "_mhz": "MHz"}
_PASSING = "now"


@dataclass(frozen=True, slots=True)
class Since:
    """What has changed since an earlier visit."""

    when: str
    """``since the last trial there``"""
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Observed:
    """A visit to a host."""

    facts: HostFacts
    is_stored: bool
    since: tuple[Since, ...]
    """One for each kind of earlier visit that is known."""


def observe(session: Session, host: Host) -> Observed:
    """Takes facts, as a sweep does; with a store they are kept and compared with earlier ones.

    Raises:
        TransportError: The host cannot be reached.
    """
    from benchrunner.probes.facts import collect_facts

    places = roots(session, host, session.settings.choices)
    transport = reach(session, host)
    try:
        facts = collect_facts(transport, [places.databases or places.work], host.name)
    finally:
        transport.close()
    store = existing_store(session)
    if store is None:
        return Observed(facts, is_stored=False, since=())
    key = f"hosts/{host.name}/facts"
    visited = store.setting(key)
    earlier = {
        "since the last trial there": store.last_facts(host.name),
        "since facts were last taken": store.facts(visited) if visited else None,
    }
    store.save_facts(facts)
    store.save_setting(key, facts.id)
    return Observed(facts, is_stored=True, since=tuple(_compared(earlier, facts)))


def _compared(earlier: Mapping[str, HostFacts | None], facts: HostFacts) -> Iterator[Since]:
    """Visits that saw the same are told of once."""
    told: set[str] = set()
    for when, before in earlier.items():
        if before is not None and before.id not in told:
            told.add(before.id)
            yield Since(when, changes(before, facts))


def sections(facts: Mapping[str, Any]) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """Facts for people: (heading, (label, text) pairs); what is not known is left out."""
    found = []
    for group, value in facts.items():
        if isinstance(value, Mapping):
            rows = tuple(_rows(value, group))
        else:
            rows = tuple(_row(group, value))
        heading = label(group)
        if rows:
            short = tuple((name.removeprefix(f"{heading} "), text) for name, text in rows)
            found.append(("at the moment" if group == _PASSING else heading, short))
    return tuple(found)


def _rows(value: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _rows(inner, f"{path}.{name}")
        else:
            yield from _row(f"{path}.{name}", inner)


def _row(path: str, value: Any) -> Iterator[tuple[str, str]]:
    text = fact_text(path, value)
    if text:
        known = label(path)
        # A name of its own may say the unit; one made of the path ends in it.
        yield label(_without_unit(path)) if _is_sized(path) else known, text


def fact_text(path: str, value: Any) -> str:
    """A fact with its unit; empty when it is not known.

    >>> fact_text("memory.total_kib", 25165824), fact_text("device.wbt_lat_us", 75000)
    ('24 GiB', '75000 us')
    >>> fact_text("cpu.smt", False), fact_text("now.free_kib", [1024, None])
    ('no', '1.0 MiB')
    """
    if isinstance(value, Sequence) and not isinstance(value, str):
        texts = [text for text in (fact_text(path, inner) for inner in value) if text]
        return ", ".join(texts) or ("none" if not value else "")
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _number_text(path, value)
    return str(value)


def _number_text(path: str, value: float) -> str:
    for ending, factor in _SIZES.items():
        if path.endswith(ending):
            return about_size(value * factor) if value else "none"
    unit = next((unit for ending, unit in _UNITS.items() if path.endswith(ending)), "")
    return f"{value} {unit}".rstrip()


def _is_sized(path: str) -> bool:
    return _without_unit(path) != path


def _without_unit(path: str) -> str:
    ending = next((one for one in (*_SIZES, *_UNITS) if path.endswith(one)), "")
    return path.removesuffix(ending)
