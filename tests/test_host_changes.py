from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrunner.definitions import Host, HostLimits
from benchrunner.model import HostFacts
from benchrunner.probes.changes import Change, changes, label
from benchrunner.probes.doctor import Needs, check_clock, check_perf, host_checks
from benchrunner.probes.facts import collect_facts
from benchrunner.probes.mounts import Mount, check_mounted, mounted
from benchrunner.probes.settings import SETTINGS
from benchrunner.transports.local import LocalTransport

if TYPE_CHECKING:
    from benchrunner.probes.check import Check

HOST = LocalTransport()
ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "host-settings.md"
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - looked at, not written to


def facts_of(**groups: Any) -> HostFacts:
    return HostFacts("id", "nvme1", 0.0, "boot", groups)


# ---------------------------------------------------------------- changes between visits


def test_changes_are_said_in_words_the_most_telling_first() -> None:
    old = facts_of(
        tools={"fio": "fio-3.33"},
        kernel={"release": "6.1.0-17"},
        cpu={"smt": True, "mitigations": {"retbleed": "Vulnerable"}},
        memory={"damon": [], "swappiness": 60},
        now={"load_1": 1.0},
    )
    new = facts_of(
        cpu={"smt": False, "mitigations": {"retbleed": "Mitigation: IBRS"}},
        kernel={"release": "6.1.0-18"},
        memory={"damon": ["damon_reclaim"], "swappiness": 60},
        tools={"fio": "fio-3.33", "git": "git version 2.39.2"},
        now={"load_1": 9.0},
    )
    assert [str(change) for change in changes(old, new)] == [
        "SMT: yes -> no",
        "kernel version: 6.1.0-17 -> 6.1.0-18",
        "CPU mitigations retbleed: Vulnerable -> Mitigation: IBRS",
        "DAMON: none -> damon_reclaim",
        "tools git: not known -> git version 2.39.2",
    ]


def test_memory_of_a_node_that_a_guest_comes_to_use_is_no_change() -> None:
    def seen(node_kib: int, total_kib: int) -> HostFacts:
        return facts_of(
            numa={"nodes": {"0": {"memory_kib": node_kib}}}, memory={"total_kib": total_kib}
        )

    assert changes(seen(8743116, 24684084), seen(13592780, 24684084)) == ()
    assert [str(change) for change in changes(seen(1000, 4000), seen(500, 2000))] == [
        "memory in KiB: 4000 -> 2000",
        "NUMA nodes 0 memory kib: 1000 -> 500",
    ]


def test_a_group_that_was_not_taken_is_not_known() -> None:
    (change,) = changes(facts_of(device=None), facts_of(device={"now": 1}, more=None))
    assert change == Change("device.now", None, 1)


def test_a_group_nobody_has_thought_about_comes_last() -> None:
    found = changes(facts_of(), facts_of(aaa={"x": 1}, tools={"x": 1}))
    assert [label(change.path) for change in found] == ["tools x", "aaa x"]


facts = st.dictionaries(
    st.sampled_from(["cpu", "kernel", "odd"]),
    st.dictionaries(st.sampled_from("abc"), st.none() | st.booleans() | st.lists(st.text())),
)


@given(facts)
def test_nothing_has_changed_since_now(same: dict[str, Any]) -> None:
    assert changes(facts_of(**same), facts_of(**same, now={"x": 1})) == ()


@given(facts, facts)
def test_changes_are_the_same_both_ways(one: dict[str, Any], other: dict[str, Any]) -> None:
    there = changes(facts_of(**one), facts_of(**other))
    back = changes(facts_of(**other), facts_of(**one))
    assert [(c.path, c.after, c.before) for c in there] == [
        (c.path, c.before, c.after) for c in back
    ]


def test_two_looks_at_this_machine_do_not_differ(tmp_path: Path) -> None:
    first, second = (collect_facts(HOST, [str(tmp_path)], "local") for _ in range(2))
    assert changes(first, second) == ()
    assert second.facts["now"]["round_trip_s"] > 0


# ---------------------------------------------------------------- mounts

DISK = Mount("/mnt/nvme", "xfs", "/dev/nvme1n1")


@pytest.mark.parametrize(
    ("mount", "wanted", "evidence"),
    [
        (DISK, "", "/mnt/nvme/x is on /dev/nvme1n1 (xfs, mounted at /mnt/nvme)"),
        (DISK, "xfs", "/mnt/nvme/x is on /dev/nvme1n1 (xfs, mounted at /mnt/nvme)"),
        (DISK, "/dev/nvme1n1", "/mnt/nvme/x is on /dev/nvme1n1 (xfs, mounted at /mnt/nvme)"),
        (Mount("/", "ext4", "/dev/sda1"), "ext4",
         "/mnt/nvme/x is on /dev/sda1 (ext4, mounted at /)"),
    ],
)  # fmt: skip
def test_what_is_mounted_as_it_should(mount: Mount, wanted: str, evidence: str) -> None:
    check = mounted(mount, "/mnt/nvme/x", wanted)
    assert (check.ok, check.evidence, check.remedy_command) == (True, evidence, "")


@pytest.mark.parametrize(
    ("mount", "wanted", "evidence", "remedy"),
    [
        (DISK, "ext4",
         "/mnt/nvme is on /dev/nvme1n1 (xfs, mounted at /mnt/nvme), and not on ext4",
         "sudo mkdir -p /mnt/nvme && sudo mount -t ext4 DEVICE /mnt/nvme"),
        (DISK, "/dev/sdb",
         "/mnt/nvme is on /dev/nvme1n1 (xfs, mounted at /mnt/nvme), and not on /dev/sdb",
         "sudo mkdir -p /mnt/nvme && sudo mount /dev/sdb /mnt/nvme"),
        (Mount("/", "ext4", "/dev/sda1"), "/dev/sda1",
         "/mnt/nvme is on the root file system, and /dev/sda1 was to be mounted",
         "sudo mkdir -p /mnt/nvme && sudo mount /dev/sda1 /mnt/nvme"),
    ],
)  # fmt: skip
def test_what_is_not(mount: Mount, wanted: str, evidence: str, remedy: str) -> None:
    check = mounted(mount, "/mnt/nvme", wanted)
    assert (check.ok, check.evidence, check.remedy_command) == (False, evidence, remedy)


def test_mounts_of_this_machine(tmp_path: Path) -> None:
    memory = check_mounted(HOST, f"{SHARED_MEMORY}/not/there/yet", "tmpfs")
    assert memory.ok is True
    assert memory.evidence.endswith(f"(tmpfs, mounted at {SHARED_MEMORY})")
    (tmp_path / "by-id").symlink_to("/dev/null")
    check = check_mounted(HOST, SHARED_MEMORY, str(tmp_path / "by-id"))
    assert check.ok is False
    assert check.evidence.endswith(f"and not on {tmp_path}/by-id")


def test_where_df_says_nothing_it_cannot_be_told() -> None:
    class Bare(LocalTransport):
        def run(self, argv: Any, **options: Any) -> Any:
            return super().run(["env", "-i", "PATH=/nowhere", "/bin/sh", *argv[1:]], **options)

    check = check_mounted(Bare(), "/", "xfs")
    assert check.ok is None
    assert check.evidence.startswith("what / is on cannot be told: ")


# ---------------------------------------------------------------- what a host needs


def by_name(checks: tuple[Check, ...]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def test_a_host_is_checked_from_end_to_end(tmp_path: Path) -> None:
    data = str(tmp_path / "data" / "deeper")
    host = Host(
        name="here", work_dir=str(tmp_path), data={data: "nosuchfs"}, tune={"governor": "x"},
        limits=HostLimits(disk_gib=1e9),
    )  # fmt: skip
    found = collect_facts(HOST, [data], "here").facts
    every = host_checks(HOST, host, None, found)
    checks = by_name(every)
    assert {"cc", "libzstd-dev", "writable", "direct-io", "io-uring", "drop-caches", "clock",
            "perf-events", "perf", "swap-on"} <= checks.keys()  # fmt: skip
    assert "python" not in checks
    assert "cpu-governor" not in checks
    assert checks["clock"].ok is True
    assert checks["mounted"].ok is False
    assert checks["mounted"].remedy_command == (
        f"sudo mkdir -p {data} && sudo mount -t nosuchfs DEVICE {data}"
    )
    space = [check.ok for check in every if check.name == "free-space"]
    assert space == [None, False]
    assert all(check.remedy_command for check in every if check.ok is False)
    assert list(tmp_path.iterdir()) == []


def test_space_that_nobody_asked_for_is_not_required(tmp_path: Path) -> None:
    host = Host(name="here", work_dir=str(tmp_path), data={str(tmp_path / "data"): ""})
    space = [c for c in host_checks(HOST, host, Needs(packages={}), {}) if c.name == "free-space"]
    assert [(check.ok is None, check.required) for check in space] == [(True, False), (False, True)]


class NobodyTransport(LocalTransport):
    """A user who may write nowhere."""

    def run(self, argv: Any, **options: Any) -> Any:
        return super().run(["false"] if argv[0] == "touch" else argv, **options)


def test_whoever_may_not_write_is_told_to_own_the_folder_itself() -> None:
    host = Host(name="here", work_dir="/bench", data={"/mnt/no such disk/data": ""})
    checks = host_checks(NobodyTransport(), host, Needs(packages={}), {})
    assert [check.remedy_command for check in checks if check.name == "writable"] == [
        'sudo mkdir -p /bench && sudo chown "$USER" /bench',
        "sudo mkdir -p '/mnt/no such disk/data' && sudo chown \"$USER\" '/mnt/no such disk/data'",
    ]


def test_a_host_that_does_not_compile_needs_no_compiler(tmp_path: Path) -> None:
    host = Host(name="here", work_dir=str(tmp_path), build="controller")
    checks = by_name(host_checks(HOST, host, Needs(packages={"libx-dev": "a test"}), {}))
    assert not {"cc", "cargo", "libx-dev", "libzstd-dev"} & checks.keys()
    assert {"fio", "free-space"} <= checks.keys()
    assert checks["clock"].ok is None
    assert checks["perf-events"].ok is None


@pytest.mark.parametrize(
    ("ahead_s", "trip_s", "ok"),
    [(0.2, 0.3, True), (1.4, 0.5, True), (1.6, 0.5, False), (-0.9, 0.3, True), (-1.1, 0.2, False)],
)
def test_clocks_are_compared_within_the_round_trip(ahead_s: float, trip_s: float, ok: bool) -> None:
    check = check_clock({"clock_ahead_s": ahead_s, "round_trip_s": trip_s})
    assert check.ok is ok
    assert ("chrony" in check.remedy_command) is not ok
    least = f"{ahead_s - trip_s:+.1f}"
    assert check.evidence.startswith(f"the host's clock is {least} to {ahead_s:+.1f} s ahead")


def test_perf_wants_a_setting() -> None:
    assert check_perf(1).ok is True
    assert check_perf(3).remedy_command == "sudo sysctl kernel.perf_event_paranoid=1"


def test_a_rebuilt_kernel_is_told_from_another_version() -> None:
    labels = {label(path) for path in ("kernel.release", "kernel.version")}
    assert labels == {"kernel version", "kernel build"}


# ---------------------------------------------------------------- documentation


def test_every_setting_is_documented() -> None:
    page = PAGE.read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", page, re.MULTILINE))
    assert rows.keys() >= SETTINGS.keys()
    for name, setting in SETTINGS.items():
        assert rows[name] == setting.takes
        for place in setting.places:
            assert f"`{place.glob}`" in page, f"{place.glob} of {name}"


def test_every_taint_of_a_host_is_documented() -> None:
    page = PAGE.read_text()
    names = {"untuned-NAME"}
    for path in (*(ROOT / "benchrunner/probes").glob("*.py"), ROOT / "benchrunner/parse/noise.py"):
        names |= set(re.findall(r'Taint\(\s*"([a-z-]+)"', path.read_text()))
    names |= {"cpu-governor", "swap-on", "transparent-huge-pages", "busy-host"}
    assert {"still-hot", "thermal-throttling", "cpu-steal", "page-cache-not-dropped"} <= names
    missing = [name for name in sorted(names) if f"| `{name}` |" not in page]
    assert not missing


def test_the_limits_in_the_page_are_those_of_the_program() -> None:
    from benchrunner.parse.noise import MAX_MEMORY_STALL_PART, MAX_OTHER_CORES, MAX_STEAL_PART
    from benchrunner.probes.noise import MAX_OTHER_PCT
    from benchrunner.probes.preparation import COOL_ENOUGH_C

    page = PAGE.read_text()
    assert f"more than {MAX_STEAL_PART:.0%}".replace("%", " %") in page
    assert f"more than {MAX_OTHER_CORES:.2f} cores" in page
    assert f"more than {MAX_OTHER_PCT:g} % of a core" in page
    assert f"more than {MAX_MEMORY_STALL_PART:.0%}".replace("%", " %") in page
    assert f"{COOL_ENOUGH_C:g} °C" in page
