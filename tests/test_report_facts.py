"""Facts of a host as the Setup section of a page says them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from report_data import small_data

from benchrunner.probes.facts import collect_facts
from benchrunner.report.facts import host_view, summary
from benchrunner.transports.local import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchrunner.report.view import HostView


def view_of(facts: Mapping[str, Any]) -> HostView:
    return host_view(replace(small_data(), host_facts={"a": facts}), "a")


@pytest.mark.parametrize(
    ("group", "facts", "text"),
    [
        ("cpu", {"model": "EPYC", "smt": True, "governor": "performance",
                 "energy_preference": "balance_power", "turbo": False, "max_mhz": 3700},
         "EPYC, SMT on, governor performance, energy preference balance_power, turbo off, "
         "at most 3700 MHz"),
        ("memory", {"total_kib": 2**25, "swap_kib": 2**21, "ksm": True,
                    "damon": ["damon_reclaim", "kdamond 0"], "huge_pages": 0, "dirty_ratio": 20},
         "total 32.0 GiB, swap 2.0 GiB, KSM on, DAMON damon_reclaim, kdamond 0, dirty ratio 20 %"),
        ("memory", {"swap_kib": 0, "damon": [], "zone_reclaim_mode": 0}, "no swap, DAMON off"),
        ("device", {"name": "nvme0n1", "virtual": False, "rotational": False,
                    "max_sectors_kib": 128, "read_ahead_kib": 128, "wbt_lat_us": 0,
                    "max_hw_sectors_kib": 2**31 - 1, "logical_block_bytes": 512,
                    "physical_block_bytes": 4096},
         "nvme0n1, not rotational, requests of at most 128 KiB, read ahead 128 KiB, "
         "no write-back throttling, physical block 4.0 KiB"),
        ("device", {"max_hw_sectors_kib": 2048, "wbt_lat_us": 75000, "logical_block_bytes": 4096},
         "of the hardware at most 2.0 MiB, write-back throttling at 75000 us, "
         "logical block 4.0 KiB"),
        ("file_system", {"type": "xfs", "options": ["noatime", "rw"], "total_kib": 2**20},
         "xfs, mounted with noatime,rw, total 1.0 GiB"),
        ("cgroup", {"cpus": 1.5, "memory_bytes": 2**31, "allowed_cpus": None},
         "at most 1.5 CPUs, at most 2.0 GiB of memory"),
        ("numa", {"count": 2, "balancing": True}, "2 nodes, balancing on"),
        ("numa", {"count": 2, "distances": "16 to 22, to its own 10"},
         "2 nodes, distance to another node 16 to 22, to its own 10"),
        ("kernel", {"release": "6.1", "version": "#1 SMP", "io_uring_disabled": 2, "tainted": 0},
         "6.1, build #1 SMP, io_uring off"),
        ("os", {"libc": "glibc 2.36", "open_files": 1024}, "glibc 2.36, at most 1024 open files"),
        ("tools", {"fio": "fio-3.33", "make": "GNU Make 4.3"}, "fio-3.33, make GNU Make 4.3"),
        ("rack", {"row": 7, "size_kib": 0}, "row 7, size kib 0"),
    ],
)  # fmt: skip
def test_facts_are_put_in_words(group: str, facts: dict[str, Any], text: str) -> None:
    assert summary(facts, group) == text


def test_what_repeats_or_says_nothing_is_left_out() -> None:
    mitigations = {"mds": "Not affected", "retbleed": "Vulnerable"}
    view = view_of(
        {
            "cpu": {"model": "EPYC", "mitigations": mitigations},
            "numa": {"count": 1, "nodes": {"0": {"cpus": "0-1"}}},
            "device": {"name": "vda", "disk": "vda", "size_bytes": 2**30, "disk_size_bytes": 2**30},
        }
    )
    assert dict(view.facts) == {
        "CPU": "EPYC", "NUMA": "1 node", "Device": "vda, size 1.0 GiB",
    }  # fmt: skip
    assert dict(view.more) == {"CPU": "EPYC, mitigations (retbleed Vulnerable)"}
    safe = view_of({"cpu": {"model": "EPYC", "mitigations": {"mds": "Not affected"}}})
    assert dict(safe.more) == {"CPU": "EPYC, mitigations not needed"}
    disk = {"name": "dm-0", "disk": "vda", "size_bytes": 2**30, "disk_size_bytes": 2**31}
    assert dict(view_of({"device": disk}).more) == {
        "Device": "dm-0, disk vda, size 1.0 GiB, disk size 2.0 GiB"
    }


def test_numa_nodes_are_told_with_their_distances() -> None:
    rows = ([10, 16, 22], [16, 10, 16], [22, 16, 10])
    nodes = {
        str(node): {"cpus": f"{4 * node}-{4 * node + 3}", "memory_kib": 2**24, "distances": row}
        for node, row in enumerate(rows)
    }
    view = view_of({"numa": {"count": 3, "nodes": nodes, "balancing": False}})
    assert dict(view.facts) == {
        "NUMA": "3 nodes, distance to another node 16 to 22, to its own 10, balancing off"
    }
    assert dict(view.more)["NUMA"] == (
        "3 nodes, node 0 with CPUs 0-3, 16 GiB, distances 10 16 22; node 1 with CPUs 4-7, 16 GiB, "
        "distances 16 10 16; node 2 with CPUs 8-11, 16 GiB, distances 22 16 10, balancing off"
    )
    bare = view_of({"numa": {"count": 2, "nodes": {"0": {"distances": None}, "1": {}}}})
    assert dict(bare.facts) == {"NUMA": "2 nodes"}
    assert dict(bare.more) == {"NUMA": "2 nodes, node 0; node 1"}


def test_no_name_of_this_machines_facts_shows_through() -> None:
    facts = collect_facts(LocalTransport(), ["/"], "a").facts
    view = view_of(facts)
    shown = " | ".join(f"{name}: {text}" for name, text in view.facts)
    for word in (" kib", " bytes ", "smt ", "ksm ", "damon ", "wbt", "open files 1"):
        assert word not in shown, shown
    assert f"Kernel: {facts['kernel']['release']}" in shown
