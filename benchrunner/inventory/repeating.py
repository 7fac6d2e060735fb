"""The A/A score of a host: measured while nobody else is there, kept in the store, shown again.

In: a session and a host. Out: the score, and a record of it that is plain data.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from benchrunner.host_places import reach, roots
from benchrunner.host_session import supervisor_on
from benchrunner.inventory.taking import existing_store, taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchrunner.definitions import Host
    from benchrunner.probes.repeatability import AaScore
    from benchrunner.session import Session

ROUNDS = 20
SAMPLE_S = 0.2


def measure(
    session: Session, host: Host, note: Callable[[str], None], rounds: int = ROUNDS,
    sample_s: float = SAMPLE_S,
) -> dict[str, Any]:  # fmt: skip
    """Measures the A/A score of a host, where its databases will be, and keeps it if it can.

    Args:
        session: Of the store.
        host: Its definition.
        note: Told how far it is.
        rounds: Pairs of A and B of each kind.
        sample_s: How long one sample should take.

    Raises:
        HostBusyError: Another controller uses the host.
        TransportError: The host cannot be reached, or none of the work runs there.
    """
    from benchrunner.probes.repeatability import aa_score

    places = roots(session, host, session.settings.choices)
    transport = reach(session, host)
    try:
        places.claim(transport)
        supervisor = supervisor_on(session, host, transport)
        with taken(host, transport, "check --noise", supervisor):
            folder = places.databases or places.work
            score = aa_score(transport, folder, rounds=rounds, sample_s=sample_s, note=note)
    finally:
        transport.close()
    record = _record(score)
    store = existing_store(session)
    if store is not None:
        store.save_setting(_key(host.name), record)
    return record | {"kept": store is not None}


def last_score(session: Session, host: str) -> dict[str, Any] | None:
    """What was measured last and kept; ``None`` when nothing was."""
    store = existing_store(session)
    record: dict[str, Any] | None = None if store is None else store.setting(_key(host))
    return record


def score_line(record: dict[str, Any]) -> str:
    """A kept score in one line.

    >>> score_line({"taken_at": 0, "kinds": {"cpu": {"within_pct": 1.26}}})
    'A/A score of 1970-01-01: numbers repeat within 1.3 % (cpu 1.3 %)'
    """
    day = time.strftime("%Y-%m-%d", time.gmtime(record["taken_at"]))
    each = {kind: one["within_pct"] for kind, one in record["kinds"].items()}
    if not each:
        return f"A/A score of {day}: none of the work ran"
    told = ", ".join(f"{kind} {within:.1f} %" for kind, within in each.items())
    return f"A/A score of {day}: numbers repeat within {max(each.values()):.1f} % ({told})"


def _record(score: AaScore) -> dict[str, Any]:
    """A score as plain data, without its samples."""
    return {
        "taken_at": time.time(),
        "sentence": score.sentence(),
        "kinds": {
            kind: {
                "spread_pct": one.spread_pct, "ratio": one.ratio, "low": one.low, "high": one.high,
                "within_pct": one.within_pct, "samples": len(one.samples),
            }
            for kind, one in score.kinds.items()
        },
    }  # fmt: skip


def _key(host: str) -> str:
    return f"hosts/{host}/aa-score"
