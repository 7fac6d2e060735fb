"""Measurements of a step, or of the steps of a test, in; what follows from them out.

Pure. A quotient exists only when both of its parts are known and belong together: the process's
CPU time is divided by operations only when one benchmark did all of the process's work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchrunner.model import Measurement

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ADMINISTRATIVE = frozenset(
    {
        "compact", "compactall", "compact0", "compact1", "flush", "waitforcompaction",
        "backup", "restore", "open", "verifychecksum", "verifyfilechecksums",
    }
)  # fmt: skip
"""db_bench benchmarks that count no operations: it prints "1 operations" for them."""

_WRITING = ("fill", "overwrite")
"""Names of benchmarks in which each operation writes one key and one value."""

MAX_BATCH_ERROR = 0.03
"""How far mean latency / usec per op may be from a whole number to be taken as a batch size."""

_GIB = 1024.0**3
_WARM_UP = "warm-up"


@dataclass(frozen=True, slots=True)
class DeriveContext:
    """What the step asked for; ``None`` where it is not known."""

    key_bytes: int | None = None
    value_bytes: int | None = None


class _Values:
    """Measurements by name: of the process (phase ``None``) and of each phase run."""

    def __init__(self, measurements: Iterable[Measurement]) -> None:
        self.process: dict[str, float] = {}
        self.phases: dict[tuple[str, int, str | None], dict[str, float]] = {}
        self.mixed: set[tuple[str, int]] = set()
        """Phase runs with a histogram per operation type: no single one counts all operations."""
        for phase, run, role, metric, value in measurements:
            if phase is None and role is None:
                # Several ``stats`` dumps: the last one is of the whole process.
                self.process[metric] = value
            elif phase is not None and role in (None, _WARM_UP):
                self.phases.setdefault((phase, run, role), {})[metric] = value
            elif phase is not None and metric == "latency_count":
                self.mixed.add((phase, run))

    def sole_phase(self) -> str | None:
        """The one benchmark that did the work of the process, if it was one."""
        names = {phase for phase, _, _ in self.phases} - ADMINISTRATIVE
        return names.pop() if len(names) == 1 else None

    def operations(self, name: str) -> float | None:
        """Operations of all runs of a phase, warm-ups included; ``None`` unless all are known."""
        counts = [
            operations_of(values, mixed=(phase, run) in self.mixed)
            for (phase, run, _), values in self.phases.items()
            if phase == name
        ]
        known = [count for count in counts if count is not None]
        return sum(known) if known and len(known) == len(counts) else None

    def total(self, *metrics: str) -> float | None:
        """Sum of metrics of the process; ``None`` unless all are known."""
        known = [self.process[metric] for metric in metrics if metric in self.process]
        return sum(known) if len(known) == len(metrics) else None


def operations_of(values: dict[str, float], *, mixed: bool) -> float | None:
    """Operations of one phase run: as printed from 7.3 on, else from the latency histogram.

    The histogram counts calls, and one call may be a batch (multireadrandom). Mean time per call
    over time per operation is the batch size; when it is no whole number, nothing is known.
    """
    if "operations" in values:
        return values["operations"]
    calls, mean_us, usec = (values.get(m) for m in ("latency_count", "mean_us", "usec_per_op"))
    if mixed or calls is None or mean_us is None or not usec:
        return None
    batch = round(mean_us / usec)
    if batch < 1 or abs(mean_us / usec / batch - 1.0) > MAX_BATCH_ERROR:
        return None
    return calls * batch


def derive_step(
    measurements: Iterable[Measurement], context: DeriveContext | None = None
) -> tuple[Measurement, ...]:
    """What follows from one step's measurements (the tool's and the supervisor's together)."""
    values = _Values(measurements)
    found: list[Measurement] = []
    cpu_s, wall_s = values.total("cpu_user_s", "cpu_sys_s"), values.total("wall_s")
    if cpu_s is not None and wall_s:
        found.append(Measurement(None, 1, None, "cpu_pct", 100.0 * cpu_s / wall_s))
    name = values.sole_phase()
    operations = values.operations(name) if name is not None else None
    if name is not None and operations:
        found += _per_operation(values, name, operations)
    written = values.total("write_bytes")
    user_bytes = _user_bytes(values, name, operations, context or DeriveContext())
    if written is not None and user_bytes:
        found.append(Measurement(None, 1, None, "w_amp_device", written / user_bytes))
    return tuple(found)


def derive_test(steps: Sequence[Iterable[Measurement]]) -> tuple[Measurement, ...]:
    """The test's time: the wall time of its steps (bulkload = fillrandom + compact)."""
    walls = [_Values(step).total("wall_s") for step in steps]
    known = [wall for wall in walls if wall is not None]
    if not known or len(known) != len(walls):
        return ()
    return (Measurement(None, 1, None, "test_time_s", sum(known)),)


def _per_operation(values: _Values, name: str, operations: float) -> list[Measurement]:
    totals = {
        "cpu_us_per_op": (values.total("cpu_user_s", "cpu_sys_s"), 1e6),
        "ctx_per_op": (values.total("ctx_voluntary", "ctx_involuntary"), 1.0),
        "ctx_voluntary_per_op": (values.total("ctx_voluntary"), 1.0),
        "ctx_involuntary_per_op": (values.total("ctx_involuntary"), 1.0),
        "read_bytes_per_op": (values.total("read_bytes"), 1.0),
        "write_bytes_per_op": (values.total("write_bytes"), 1.0),
    }
    return [
        Measurement(name, 1, None, metric, total * factor / operations)
        for metric, (total, factor) in totals.items()
        if total is not None
    ]


def _user_bytes(
    values: _Values, name: str | None, operations: float | None, context: DeriveContext
) -> float | None:
    """Bytes the user wrote: keys and values of a writing benchmark, else RocksDB's ingest.

    Ingest is printed to 0.01 GB; below 0.2 GB its rounding would show in the quotient.
    """
    if name is not None and name.startswith(_WRITING):
        if operations is None or context.key_bytes is None or context.value_bytes is None:
            return None
        return operations * (context.key_bytes + context.value_bytes)
    ingest_gb = values.total("ingest_gb")
    return ingest_gb * _GIB if ingest_gb is not None and ingest_gb >= 0.2 else None
