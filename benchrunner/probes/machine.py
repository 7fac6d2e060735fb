"""CPU, NUMA, memory, kernel, virtualisation and control group from what the host printed. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from benchrunner.probes.text import chosen, whole_number, yes_or_no

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchrunner.probes.text import Output

_CPU = "/sys/devices/system/cpu"
_FLAGS = (
    "sse4_2", "popcnt", "pclmulqdq", "vpclmulqdq", "aes", "sha_ni", "bmi2", "avx", "avx2",
    "avx512f", "avx512vl", "crc32", "pmull", "asimd", "atomics", "sve",
)  # fmt: skip
"""Those that engines choose code by: checksums, compression, Bloom filters, comparisons."""
_UNLIMITED_BYTES = 1 << 60


def cpu(output: Output) -> dict[str, Any]:
    """Model, topology, frequency policy, caches and mitigations."""
    info = cpuinfo(output)
    packages = output.matching(rf"{_CPU}/cpu(\d+)/topology/physical_package_id")
    cores = output.matching(rf"{_CPU}/cpu(\d+)/topology/core_id")
    pairs = {(packages.get(number), core) for number, core in cores.items()}
    flags = set((info.get("flags") or info.get("Features") or "").split())
    processors = sum(line.startswith("processor") for line in output.files.get("/proc/cpuinfo", ()))
    return {
        "model": info.get("model name") or info.get("Model") or _arm_model(info),
        "sockets": len(set(packages.values())) or None,
        "cores": len(pairs) or None,
        "threads": processors or None,
        "smt": yes_or_no(output.line(f"{_CPU}/smt/active")),
        "governor": _all_equal(output.matching(rf"{_CPU}/cpu(\d+)/cpufreq/scaling_governor")),
        "frequency_driver": output.line(f"{_CPU}/cpu0/cpufreq/scaling_driver"),
        "energy_preference": _all_equal(
            output.matching(rf"{_CPU}/cpu(\d+)/cpufreq/energy_performance_preference")
        ),
        "idle_driver": output.line(f"{_CPU}/cpuidle/current_driver"),
        "max_mhz": _mhz(output.number(f"{_CPU}/cpu0/cpufreq/cpuinfo_max_freq")),
        "min_mhz": _mhz(output.number(f"{_CPU}/cpu0/cpufreq/cpuinfo_min_freq")),
        "turbo": _turbo(output),
        "microcode": info.get("microcode"),
        "caches": _caches(output) or None,
        "flags": [name for name in _FLAGS if name in flags] or None,
        "isolated": output.line(f"{_CPU}/isolated"),
        "mitigations": output.matching(rf"{_CPU}/vulnerabilities/(\w+)") or None,
    }


def cpuinfo(output: Output) -> dict[str, str]:
    """Keys of the first processor in /proc/cpuinfo, and those said once for all of them."""
    found: dict[str, str] = {}
    for line in output.files.get("/proc/cpuinfo", ()):
        name, _, value = line.partition(":")
        if value.strip():
            found.setdefault(name.strip(), value.strip())
    return found


def mhz(output: Output) -> list[float]:
    """Frequency of each processor at that moment."""
    lines = output.files.get("/proc/cpuinfo", ())
    return [float(line.partition(":")[2]) for line in lines if line.startswith("cpu MHz")]


def numa(output: Output) -> dict[str, Any] | None:
    """Nodes with their processors, memory and distances; ``None`` without NUMA in the kernel."""
    node = r"/sys/devices/system/node/node(\d+)"
    cpus = output.matching(f"{node}/cpulist")
    distances = output.matching(f"{node}/distance")
    names = sorted({*cpus, *distances}, key=int)
    nodes = {
        name: {
            "cpus": cpus.get(name),
            "memory_kib": _node_memory(output, name),
            "distances": [int(text) for text in distances.get(name, "").split()] or None,
        }
        for name in names
    }
    if not nodes:
        return None
    balancing = output.number("/proc/sys/kernel/numa_balancing")
    on = None if balancing is None else balancing != 0
    return {"count": len(nodes), "nodes": nodes, "balancing": on}


def memory(output: Output) -> dict[str, Any]:
    """Sizes and the kernel's settings about memory."""
    info = meminfo(output)
    thp = "/sys/kernel/mm/transparent_hugepage"
    return {
        "total_kib": info.get("MemTotal"),
        "swap_kib": info.get("SwapTotal"),
        "huge_pages": info.get("HugePages_Total"),
        "huge_page_kib": info.get("Hugepagesize"),
        "transparent_huge_pages": chosen(output.line(f"{thp}/enabled")),
        "transparent_huge_pages_defrag": chosen(output.line(f"{thp}/defrag")),
        "ksm": _ksm(output),
        "damon": _damon(output),
        "swappiness": output.number("/proc/sys/vm/swappiness"),
        "dirty_ratio": output.number("/proc/sys/vm/dirty_ratio"),
        "dirty_background_ratio": output.number("/proc/sys/vm/dirty_background_ratio"),
        "zone_reclaim_mode": output.number("/proc/sys/vm/zone_reclaim_mode"),
        "overcommit_memory": output.number("/proc/sys/vm/overcommit_memory"),
    }


def meminfo(output: Output) -> dict[str, int]:
    """Numbers of /proc/meminfo by name; all but the counts of huge pages are in KiB."""
    return meminfo_lines(output.files.get("/proc/meminfo", ()))


def meminfo_lines(lines: tuple[str, ...]) -> dict[str, int]:
    """The same from the file's lines."""
    matches = (re.match(r"([^:]+):\s+(\d+)", line) for line in lines)
    return {match[1]: int(match[2]) for match in matches if match}


def kernel(output: Output) -> dict[str, Any]:
    """Release, build, command line and switches that change what a benchmark measures."""
    io_uring = output.number("/proc/sys/kernel/io_uring_disabled")
    return {
        "release": output.line("/proc/sys/kernel/osrelease"),
        "version": output.line("/proc/sys/kernel/version"),
        "architecture": output.section("machine"),
        "command_line": output.line("/proc/cmdline"),
        "clock_source": output.line(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        ),
        "io_uring_disabled": io_uring,
        "randomize_va_space": output.number("/proc/sys/kernel/randomize_va_space"),
        "perf_event_paranoid": output.number("/proc/sys/kernel/perf_event_paranoid"),
        "irq_balance": yes_or_no(output.section("irqbalance")),
        "tainted": output.number("/proc/sys/kernel/tainted"),
    }


def operating_system(output: Output) -> dict[str, Any]:
    """Name of the distribution, the C library, and how many files a process of ours may open."""
    names = (line.partition("=") for line in output.files.get("/etc/os-release", ()))
    release = {name: value.strip('"') for name, _, value in names}
    return {"name": release.get("PRETTY_NAME"), "libc": output.section("libc"),
            "open_files": whole_number(output.section("open files"))}  # fmt: skip


def virtualisation(output: Output) -> dict[str, Any]:
    """Whether this is a virtual machine or a container, and what the firmware calls it."""
    dmi = "/sys/class/dmi/id"
    return {
        "hypervisor": _not_none(output.section("virtualisation")) or _hypervisor(output),
        "container": _not_none(output.section("container")),
        "vendor": output.line(f"{dmi}/sys_vendor"),
        "product": output.line(f"{dmi}/product_name"),
        "board": output.line(f"{dmi}/board_name"),
        "bios": output.line(f"{dmi}/bios_version"),
    }


def cgroup(output: Output) -> dict[str, Any]:
    """Limits of the control group, the tightest of all its ancestors', versions 1 and 2."""
    cpus: list[float] = []
    memory_bytes: list[int] = []
    allowed: list[str] = []
    quota_us: int | None = None
    for line in output.sections.get("cgroup", ()):
        name, _, value = line.partition(" ")
        if name == "cpu.max":
            cpus += _share(*value.split())
        elif name == "cpu.cfs_quota_us":
            quota_us = whole_number(value)
        elif name == "cpu.cfs_period_us":
            cpus += _share(str(quota_us), value)
        elif name in ("memory.max", "memory.limit_in_bytes"):
            memory_bytes += [n for n in [whole_number(value)] if n is not None]
        elif name.startswith("cpuset.cpus") and value:
            allowed.append(value)
    tightest = min(memory_bytes, default=None)
    limited = tightest is not None and tightest < _UNLIMITED_BYTES
    return {
        "cpus": min(cpus, default=None),
        "memory_bytes": tightest if limited else None,
        "allowed_cpus": allowed[0] if allowed else None,
    }


def _share(quota: str, period: str = "100000") -> list[float]:
    quota_us, period_us = whole_number(quota), whole_number(period)
    return [quota_us / period_us] if quota_us and period_us and quota_us > 0 else []


def _arm_model(info: Mapping[str, str]) -> str | None:
    part = info.get("CPU part")
    return f"implementer {info.get('CPU implementer')} part {part}" if part else None


def _all_equal(values: Mapping[str, str]) -> str | None:
    """What all processors say, or all that they say."""
    return " and ".join(sorted(set(values.values()))) or None


def _mhz(khz: int | None) -> int | None:
    return None if khz is None else khz // 1000


def _turbo(output: Output) -> bool | None:
    no_turbo = yes_or_no(output.line(f"{_CPU}/intel_pstate/no_turbo"))
    if no_turbo is not None:
        return not no_turbo
    return yes_or_no(output.line(f"{_CPU}/cpufreq/boost"))


def _caches(output: Output) -> dict[str, str]:
    """``L1d``, ``L2`` and so on -> size, as the first processor sees them."""
    index = rf"{_CPU}/cpu0/cache/index(\d+)"
    levels, kinds = output.matching(f"{index}/level"), output.matching(f"{index}/type")
    ending = {"Data": "d", "Instruction": "i"}
    return {
        f"L{levels[number]}{ending.get(kinds.get(number, ''), '')}": size
        for number, size in output.matching(f"{index}/size").items()
        if number in levels
    }


def _node_memory(output: Output, node: str) -> int | None:
    lines = output.files.get(f"/sys/devices/system/node/node{node}/meminfo", ())
    found = (re.search(r"MemTotal:\s+(\d+)", line) for line in lines)
    return next((int(match[1]) for match in found if match), None)


def _ksm(output: Output) -> bool | None:
    run = output.number("/sys/kernel/mm/ksm/run")
    return None if run is None else run == 1


def _damon(output: Output) -> list[str] | None:
    """What of DAMON is on, by name; ``None`` where its files are not there or not for our eyes."""
    modules = output.matching(r"/sys/module/(damon_\w+)/parameters/enabled")
    threads = output.matching(r"/sys/kernel/mm/damon/admin/kdamonds/(\d+)/state")
    if not modules and not threads:
        return None
    on = [name for name, value in modules.items() if yes_or_no(value)]
    return sorted(on) + [f"kdamond {name}" for name, value in threads.items() if value == "on"]


def _hypervisor(output: Output) -> str | None:
    flagged = "hypervisor" in cpuinfo(output).get("flags", "").split()
    return output.line("/sys/hypervisor/type") or ("yes" if flagged else None)


def _not_none(text: str | None) -> str | None:
    return None if text == "none" else text
