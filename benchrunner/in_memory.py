"""Whether data that should have been in memory was: a step's measurements in, a taint out. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchrunner.model import Taint
from benchrunner.units import about_size

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchrunner.definitions import Step, Workload
    from benchrunner.model import Measurement


def not_in_memory(
    workload: Workload, step: Step, measurements: Iterable[Measurement]
) -> tuple[Taint, ...]:
    """The mark of a measured step that fetched something from a device.

    Data in memory means no page fault that reads, and no byte read: whatever was, the program's own
    pages included, the threads waited for.
    """
    if workload.data_on != "memory" or not step.measure:
        return ()
    seen = {m.metric: m.value for m in measurements if m.phase is None and m.role is None}
    faults, read_bytes = seen.get("faults_major", 0.0), seen.get("read_bytes", 0.0)
    if not faults and not read_bytes:
        return ()
    said = [f"{about_size(read_bytes)} were read from a device"] if read_bytes else []
    if faults:
        said.append(f"{faults:.0f} page fault{'s' * (faults != 1)} waited for a device")
    return (
        Taint(
            "not-in-memory",
            " and ".join(said),
            "leave more memory free, and look for what pages memory out (kernel threads, a control "
            "group's limit)",
        ),
    )
