"""What a sweep needs to know about a host before it starts: tried for real, not looked up.

In: a transport, or facts already taken. Out: a ``Check`` each. Nothing is changed on the host but
short-lived files of our own and, where it is asked for, the page cache.
"""

from __future__ import annotations

import re
import secrets
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchrunner.errors import TransportError
from benchrunner.model import Taint
from benchrunner.probes.check import Check
from benchrunner.probes.machine import meminfo_lines
from benchrunner.probes.remedies import own

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from benchrunner.transports import Completed, Transport

_SHORT_S = 60.0
_SYNC_S = 600.0
TICKS_PER_S = 100
_BLOCK_BYTES = 4096
_DROP_FILE = "/proc/sys/vm/drop_caches"
_NEGLIGIBLE_KIB = 64 * 1024
"""What may stay cached: mapped programs and libraries are not dropped."""
_BUSY = r"""
look() { cat /proc/uptime; cat /proc/[0-9]*/stat 2>/dev/null; echo; }
look; sleep "$1"; look
"""


def check_writable(transport: Transport, directory: str) -> Check:
    """Whether files can be made in a directory."""
    path = _probe_path(directory)
    done = transport.run(["touch", "--", path], timeout_s=_SHORT_S)
    transport.run(["rm", "-f", "--", path], timeout_s=_SHORT_S)
    ok = done.exit_code == 0
    evidence = f"a file can be made in {directory}" if ok else _complaint(done)
    return Check("writable", ok, evidence, "" if ok else own(directory), purpose="databases, runs")


def check_direct_io(transport: Transport, directory: str) -> Check:
    """Whether the file system takes O_DIRECT: an aligned block is written and read with it."""
    path = _probe_path(directory)
    block = [f"bs={_BLOCK_BYTES}", "count=1"]
    steps = [
        ["dd", "if=/dev/zero", f"of={path}", "oflag=direct", *block],
        ["dd", f"if={path}", "of=/dev/null", "iflag=direct", *block],
    ]
    done = None
    for argv in steps:
        done = transport.run(argv, timeout_s=_SHORT_S, env={"LC_ALL": "C"})
        if done.exit_code != 0:
            break
    transport.run(["rm", "-f", "--", path], timeout_s=_SHORT_S)
    ok = done is not None and done.exit_code == 0
    evidence = f"a block was written and read with O_DIRECT in {directory}"
    if not ok and done is not None:
        complaint = _complaint(done)
        if "Permission denied" in complaint:
            evidence = f"whether there is O_DIRECT in {directory} cannot be told: {complaint}"
            return Check("direct-io", None, evidence, required=False, purpose="the variant DIO")
        evidence = f"no O_DIRECT in {directory}: {complaint}"
    remedy = "" if ok else "use a work directory on ext4, xfs or btrfs"
    return Check("direct-io", ok, evidence, remedy, required=False, purpose="the variant DIO")


def check_free_space(free_bytes: int, needed_bytes: int | None, directory: str) -> Check:
    """Whether the expected space is there; ``None`` when it is not known how much is needed."""
    gib = free_bytes / 2**30
    if needed_bytes is None:
        return Check("free-space", None, f"{gib:.1f} GiB are free in {directory}")
    ok = free_bytes >= needed_bytes
    evidence = f"{gib:.1f} GiB are free in {directory}, {needed_bytes / 2**30:.1f} GiB are needed"
    remedy = "" if ok else f"df -h {shlex.quote(directory)}"
    return Check("free-space", ok, evidence, remedy)


def check_io_uring(transport: Transport) -> Check:
    """Whether the kernel offers io_uring to everybody."""
    path = "/proc/sys/kernel/io_uring_disabled"
    purpose = "fio with ioengine=io_uring, asynchronous reads of RocksDB"
    if transport.size(path) is not None:
        value = transport.read(path).decode().strip()
        remedy = "" if value == "0" else "sysctl kernel.io_uring_disabled=0"
        evidence = f"kernel.io_uring_disabled is {value}"
        return Check("io-uring", value == "0", evidence, remedy, required=False, purpose=purpose)
    argv = ["grep", "-cw", "-E", r"(__\w+_)?sys_io_uring_setup", "/proc/kallsyms"]
    found = transport.run(argv, timeout_s=_SHORT_S).exit_code == 0
    evidence = f"the kernel {'has' if found else 'shows no'} io_uring_setup"
    return Check("io-uring", found, evidence, required=False, purpose=purpose)


def facts_checks(facts: Mapping[str, Any]) -> tuple[Check, ...]:
    """Settings that make numbers worse to trust, from facts already taken.

    Turbo is noted, not faulted: it is how most published numbers were taken.
    """
    cpu, memory = facts.get("cpu", {}), facts.get("memory", {})
    return (
        _setting("cpu-governor", cpu.get("governor"), ("performance",), "the CPU governor",
                 "cpupower frequency-set --governor performance"),
        _setting("swap-on", _amount(memory.get("swap_kib")), ("none",), "swap space", "swapoff -a"),
        _setting("transparent-huge-pages", memory.get("transparent_huge_pages"),
                 ("madvise", "never"), "the setting of transparent huge pages",
                 "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"),
    )  # fmt: skip


def busy_processes(
    transport: Transport, *, window_s: float = 0.5, limit_pct: float = 10.0,
    ignore: Collection[int] = (),
) -> Check:  # fmt: skip
    """Whether another process uses more than ``limit_pct`` of a core over a short window.

    Args:
        transport: The host.
        window_s: How long to watch.
        limit_pct: Of one core.
        ignore: Pids that do not count: ours.
    """
    argv = ["sh", "-c", _BUSY, "sh", f"{window_s}"]
    done = transport.run(argv, timeout_s=_SHORT_S + window_s)
    shares = cpu_shares(done.stdout.decode(errors="replace"))
    busy = [s for s in shares if s.pct > limit_pct and s.pid not in ignore]
    if not busy:
        evidence = f"no other process used more than {limit_pct:g} % of a core"
        return Check("busy-host", ok=True, evidence=evidence, required=False)
    listed = ", ".join(f"{share.name} (pid {share.pid}) {share.pct:.0f} %" for share in busy[:5])
    more = f" and {len(busy) - 5} more" if len(busy) > 5 else ""
    evidence = f"other processes use the CPU: {listed}{more} of a core"
    remedy = f"ps -o pid,pcpu,args -p {','.join(str(share.pid) for share in busy)}"
    return Check("busy-host", ok=False, evidence=evidence, remedy_command=remedy, required=False)


@dataclass(frozen=True, slots=True)
class CpuShare:
    """How much of one core a process used over a window."""

    pid: int
    name: str
    pct: float


def cpu_shares(text: str) -> tuple[CpuShare, ...]:
    """Shares of all processes that used the CPU between two looks at /proc, largest first.

    Each look is a line of /proc/uptime followed by lines of /proc/PID/stat, and ended by an empty
    line. A process that began between the looks counts from its beginning.
    """
    looks = [look.splitlines() for look in text.strip().split("\n\n")]
    if len(looks) != 2:
        return ()
    (before_s, before), (after_s, after) = (_look(look) for look in looks)
    window_s = after_s - before_s
    if window_s <= 0:
        return ()
    per_tick = 100 / TICKS_PER_S / window_s
    shares = [
        CpuShare(pid, name, (ticks - before.get((pid, began), ("", 0))[1]) * per_tick)
        for (pid, began), (name, ticks) in after.items()
    ]
    return tuple(sorted((s for s in shares if s.pct > 0), key=lambda share: -share.pct))


@dataclass(frozen=True, slots=True)
class DroppedCaches:
    """What dropping the page cache did: droppable before and after, and the taint if it failed."""

    before_kib: int
    after_kib: int
    taint: Taint | None


def drop_caches(transport: Transport) -> DroppedCaches:
    """Writes dirty pages out, drops the page cache, and checks in /proc/meminfo that it is gone."""
    transport.run(["sync"], timeout_s=_SYNC_S)
    before = _droppable_kib(transport)
    done = _write_drop_file(transport)
    after = _droppable_kib(transport)
    taint = None
    if done.exit_code != 0:
        taint = _not_dropped(f"it is not permitted: {_complaint(done)}")
    elif after >= before and after > _NEGLIGIBLE_KIB:
        taint = _not_dropped(f"{before} KiB were cached before and {after} KiB after")
    return DroppedCaches(before, after, taint)


def check_drop_caches(transport: Transport) -> Check:
    """Whether the page cache could be dropped, without doing it."""
    as_root = transport.run(["test", "-w", _DROP_FILE], timeout_s=_SHORT_S).exit_code == 0
    ok = as_root or _sudo(transport, ["-l", "tee", _DROP_FILE]).exit_code == 0
    evidence = f"{_DROP_FILE} {'can' if ok else 'cannot'} be written"
    remedy = "" if ok else "run as root, or allow `tee /proc/sys/vm/drop_caches` in sudoers"
    purpose = "steps that start with a cold page cache"
    return Check("drop-caches", ok, evidence, remedy, required=False, purpose=purpose)


def _write_drop_file(transport: Transport) -> Completed:
    done = transport.run(["tee", _DROP_FILE], input=b"3\n", timeout_s=_SYNC_S)
    return done if done.exit_code == 0 else _sudo(transport, ["tee", _DROP_FILE], b"3\n")


def _sudo(transport: Transport, argv: list[str], given: bytes | None = None) -> Completed:
    """Runs a command as root where that needs no password; without sudo it fails like a command."""
    script = 'command -v sudo >/dev/null || { echo "not root, and no sudo" >&2; exit 1; }\n'
    script += 'exec sudo -n "$@"'
    return transport.run(["sh", "-c", script, "sh", *argv], input=given, timeout_s=_SYNC_S)


def _droppable_kib(transport: Transport) -> int:
    """Page cache without the pages of tmpfs, which count as cached and cannot be dropped."""
    info = meminfo_lines(tuple(transport.read("/proc/meminfo").decode().splitlines()))
    try:
        return info["Cached"] + info["Buffers"] - info.get("Shmem", 0)
    except KeyError as error:
        raise TransportError(
            f"/proc/meminfo on {transport.host} has no line {error.args[0]}"
        ) from error


def _not_dropped(evidence: str) -> Taint:
    remedy = "run as root, or allow `tee /proc/sys/vm/drop_caches` in sudoers"
    return Taint("page-cache-not-dropped", f"the page cache was not dropped: {evidence}", remedy)


def _look(lines: list[str]) -> tuple[float, dict[tuple[int, str], tuple[str, int]]]:
    """Uptime, and (pid, start time) -> (name, ticks used). Names change: kernel workers rename."""
    used: dict[tuple[int, str], tuple[str, int]] = {}
    for line in lines[1:]:
        match = re.match(r"(\d+) \((.*)\) (.*)", line)
        fields = match[3].split() if match else []
        if match and len(fields) > 19:
            used[int(match[1]), fields[19]] = (match[2], int(fields[11]) + int(fields[12]))
    return float(lines[0].split()[0]), used


def _setting(name: str, value: str | None, good: tuple[str, ...], what: str, remedy: str) -> Check:
    """A setting that should be one of a few values; not known is not bad."""
    if value is None:
        return Check(name, None, f"{what} is not known here", required=False)
    ok = value in good
    return Check(name, ok, f"{what} is {value}", "" if ok else remedy, required=False)


def _amount(kib: int | None) -> str | None:
    return None if kib is None else f"{kib / 2**20:.1f} GiB" if kib else "none"


def _probe_path(directory: str) -> str:
    return f"{directory}/.benchrunner-probe-{secrets.token_hex(4)}"


def _complaint(done: Completed) -> str:
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[0] if lines else f"exit code {done.exit_code}"
