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

_BESIDE_A_WRITER = "whilewriting"
"""End of the names of benchmarks in which one more thread writes while the others read."""

MAX_BATCH_ERROR = 0.03
"""How far mean latency / usec per op may be from a whole number to be taken as a batch size."""

RATES = {"reader": "read_rate", "writer": "write_rate"}
"""Role of those who worked in a phase -> what its operations/s are called."""

_GIB = 1024.0**3
_WARM_UP = "warm-up"


@dataclass(frozen=True, slots=True)
class DeriveContext:
    """What the step asked for; ``None`` where it is not known."""

    key_bytes: int | None = None
    value_bytes: int | None = None
    threads: int | None = None
    """How many did the operations; the time per operation is that of one of them."""
    mapped: bool = False
    """Whether the database's file is the process's memory: both are the same bytes."""
    duration_s: float | None = None
    """How long a benchmark was to run, where that alone ended it."""
    writer_bytes_per_s: float | None = None
    """What the one writer beside readers was limited to, keys and values."""


class _Values:
    """Measurements by name: of the process (phase ``None``) and of each phase run."""

    def __init__(self, measurements: Iterable[Measurement]) -> None:
        self.process: dict[str, float] = {}
        self.phases: dict[tuple[str, int, str | None], dict[str, float]] = {}
        self.rates: list[Measurement] = []
        """Operations/s of a phase's readers and of its writer, where they are told apart."""
        self.mixed: set[tuple[str, int]] = set()
        """Phase runs with a histogram per operation type: no single one counts all operations."""
        for phase, run, role, metric, value in measurements:
            if role in RATES and metric == "ops_per_sec":
                self.rates.append(Measurement(phase, run, None, RATES[role], value))
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
    if cpu_s:
        for part, metric in (
            ("cpu_user_s", "cpu_user_share_pct"),
            ("cpu_sys_s", "cpu_sys_share_pct"),
        ):
            found.append(Measurement(None, 1, None, metric, 100.0 * values.process[part] / cpu_s))
    name = values.sole_phase()
    if name is not None and name.endswith(_BESIDE_A_WRITER):
        found += _writer(values, name, context or DeriveContext())
    operations = values.operations(name) if name is not None else None
    if name is not None and operations:
        found += _per_operation(values, name, operations)
    written = values.total("write_bytes")
    user_bytes = _user_bytes(values, name, operations, context or DeriveContext())
    if written is not None and user_bytes:
        found.append(Measurement(None, 1, None, "w_amp_device", written / user_bytes))
    total_kib = _total_kib(values, context or DeriveContext())
    if total_kib is not None:
        found.append(Measurement(None, 1, None, "total_kib", total_kib))
    return (*found, *values.rates, *_operations_per_s(values, context or DeriveContext()))


def _operations_per_s(values: _Values, context: DeriveContext) -> list[Measurement]:
    """Of phases where the tool printed only the time that an operation took one thread."""
    if context.threads is None:
        return []
    return [
        Measurement(phase, run, role, "ops_per_sec", context.threads * 1e6 / found["usec_per_op"])
        for (phase, run, role), found in values.phases.items()
        if found.get("usec_per_op") and "ops_per_sec" not in found and phase not in ADMINISTRATIVE
    ]


def _total_kib(values: _Values, context: DeriveContext) -> float | None:
    """Database and process together; the larger one where the file is the process's memory."""
    if context.mapped:
        parts = [values.process.get("du_kib"), values.process.get("rss_max_kib")]
        known = [part for part in parts if part is not None]
        return max(known) if len(known) == len(parts) else None
    return values.total("du_kib", "rss_max_kib")


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


def _writer(values: _Values, name: str, context: DeriveContext) -> list[Measurement]:
    """What the one writer did per second, against what it was asked for.

    RocksDB's db_bench leaves its writer out of what it prints: the database counts the writes since
    it was opened, and in a process with this benchmark alone they are the writer's.
    """
    found: list[Measurement] = []
    printed = [m.value for m in values.rates if m.metric == "write_rate"]
    seconds, writes = _phase_seconds(values, name, context), values.process.get("write_count")
    rate = printed[0] if len(printed) == 1 else None
    if not printed and seconds and writes is not None:
        rate = writes / seconds
        found.append(Measurement(name, 1, None, "write_rate", rate))
    pair_bytes = (context.key_bytes or 0) + (context.value_bytes or 0)
    if context.writer_bytes_per_s and context.key_bytes and pair_bytes:
        asked = context.writer_bytes_per_s / pair_bytes
        found.append(Measurement(name, 1, None, "write_rate_asked", asked))
        if rate is not None:
            found.append(Measurement(name, 1, None, "write_rate_pct", 100.0 * rate / asked))
    return found


def _phase_seconds(values: _Values, name: str, context: DeriveContext) -> float | None:
    """How long a phase ran: as printed, else operations over their rate, else as it was asked.

    Keys looked for do not tell: db_bench prints those of one thread only.
    """
    runs = [key for key in values.phases if key[0] == name]
    if len(runs) != 1:
        return None
    phase = values.phases[runs[0]]
    if "elapsed_s" in phase:
        return phase["elapsed_s"]
    operations = operations_of(phase, mixed=runs[0][:2] in values.mixed)
    rate = phase.get("ops_per_sec")
    return operations / rate if operations and rate else context.duration_s


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
