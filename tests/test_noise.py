from __future__ import annotations

import os
import statistics
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from benchrunner.errors import ConfigurationError, TransportError
from benchrunner.probes import noise, preparation
from benchrunner.probes.noise import Look, noise_facts, noise_taints, read_look
from benchrunner.probes.preparation import Preparer, check_preparations, cpu_temperature
from benchrunner.probes.repeatability import AaScore, Repeatability, aa_score, score
from benchrunner.transports.local import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchrunner.transports import Completed

HOST = LocalTransport()
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a file system without devices


def look_of(uptime_s: float, *processes: tuple[int, str, int, int], throttled: int = 0) -> Look:
    """Processes are pid, name, parent, ticks; all began at the same time."""
    lines = [f"{uptime_s:.2f} 1.00"]
    lines += [
        f"{pid} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 500 0"
        for pid, name, parent, ticks in processes
    ]
    counts = {"cpu0/core": 3 + throttled, "cpu0/package": 4, "cpu1/package": 4}
    return Look(counts, "\n".join(lines) + "\n")


# ---------------------------------------------------------------- looks


def test_a_quiet_step_has_no_taints() -> None:
    before = look_of(100, (10, "sshd", 1, 50), (20, "db_bench", 1, 0))
    after = look_of(110, (10, "sshd", 1, 140), (20, "db_bench", 1, 900))
    assert noise_taints(before, after, ours={20}) == ()
    assert noise_facts(before, after, ours={20}) == {
        "window_s": 10.0,
        "throttled": 0,
        "busiest": [{"name": "sshd", "pid": 10, "pct": 9.0}],
    }


def test_a_busy_process_is_named() -> None:
    before = look_of(100, (10, "cc1 plus", 1, 0), (11, "cron", 1, 0))
    after = look_of(110, (10, "cc1 plus", 1, 450), (11, "cron", 1, 101))
    (taint,) = noise_taints(before, after)
    assert taint.name == "other-busy-processes"
    assert taint.evidence == (
        "other processes used a core for more than 10 %: cc1 plus (pid 10) 45 %, cron (pid 11) 10 %"
    )
    assert taint.remedy == "ps -o pid,pcpu,args -p 10,11"


def test_many_busy_processes_are_counted() -> None:
    before = look_of(100)
    after = look_of(110, *((pid, "cc1", 1, 200) for pid in range(10, 18)))
    assert noise_taints(before, after)[0].evidence.endswith("cc1 (pid 14) 20 % and 3 more")


def test_threads_of_the_kernel_do_not_count() -> None:
    before = look_of(100, (2, "kthreadd", 0, 0), (30, "kswapd0", 2, 0))
    after = look_of(110, (2, "kthreadd", 0, 500), (30, "kswapd0", 2, 900))
    assert noise_taints(before, after) == ()
    assert noise_facts(before, after)["busiest"] == []


def test_throttling_is_a_taint() -> None:
    (taint,) = noise_taints(look_of(100), look_of(110, throttled=7))
    assert taint.name == "thermal-throttling"
    assert taint.evidence == (
        "the CPU lowered its clock because of heat 7 times (1 counters rose, cpu0/core among them)"
    )
    assert noise_facts(look_of(100), look_of(110, throttled=7))["throttled"] == 7


def test_where_nothing_is_counted_nothing_is_said() -> None:
    silent = read_look("")
    assert noise_taints(silent, silent) == ()
    assert noise_facts(silent, silent) == {"window_s": None, "throttled": None, "busiest": []}


def test_a_real_look_sees_who_is_busy() -> None:
    before = noise.look(HOST)
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as spinner:
        try:
            time.sleep(0.3)
            after = noise.look(HOST)
        finally:
            spinner.kill()
    facts = noise_facts(before, after)
    assert spinner.pid in [one["pid"] for one in facts["busiest"]]
    assert facts["window_s"] > 0
    assert any(f"(pid {spinner.pid})" in t.evidence for t in noise_taints(before, after))


def test_throttle_counts_are_read(tmp_path: Path) -> None:
    for cpu, kind, count in ((0, "core", 5), (0, "package", 9), (12, "core", 0)):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/thermal_throttle"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{kind}_throttle_count").write_text(f"{count}\n")
        (folder / f"{kind}_throttle_max_time_ms").write_text("77\n")
    seen = noise.look(HOST, str(tmp_path))
    assert seen.throttled == {"cpu0/core": 5, "cpu0/package": 9, "cpu12/core": 0}
    assert seen.processes.count("\n") > 3


@given(st.text(), st.text())
def test_any_output_is_understood_as_far_as_it_goes(one: str, other: str) -> None:
    processes = "\n".join(line for line in one.splitlines() if line.strip())
    before, after = read_look(f"{other}\n\n1.5 1\n{processes}"), read_look("\n2.5 1\n")
    noise_taints(before, after)
    noise_facts(before, after)


# ---------------------------------------------------------------- the A/A score

times = st.floats(0.01, 10.0)


@limits(max_examples=30, deadline=None)
@given(st.lists(times, min_size=3, max_size=12))
def test_the_same_times_give_a_ratio_of_one(side: list[float]) -> None:
    found = score(side, side)
    assert found is not None
    assert found.ratio == 1.0
    assert found.low <= 1.0 <= found.high


@limits(max_examples=30, deadline=None)
@given(st.lists(times, min_size=3, max_size=12), st.floats(0.5, 2.0))
def test_the_interval_scales_with_one_side(side: list[float], factor: float) -> None:
    plain, scaled = score(side, side), score([t * factor for t in side], side)
    assert plain is not None
    assert scaled is not None
    assert scaled.ratio == pytest.approx(factor)
    assert scaled.low == pytest.approx(plain.low * factor)
    assert scaled.high == pytest.approx(plain.high * factor)


def test_what_repeats_exactly_has_no_spread() -> None:
    found = score([2.0] * 5, [2.0] * 5)
    assert found == Repeatability(0.0, 1.0, 1.0, 1.0, (2.0,) * 10)
    assert found.within_pct == 0.0


def test_the_spread_is_that_of_all_samples() -> None:
    found = score([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    assert found is not None
    every = [1.0, 1.0, 2.0, 2.0, 3.0, 4.0]
    assert found.spread_pct == pytest.approx(
        statistics.stdev(every) / statistics.fmean(every) * 100
    )
    assert found.within_pct == pytest.approx(max(1 - found.low, found.high - 1) * 100)


def test_two_samples_say_nothing() -> None:
    assert score([1.0, 1.0], [1.0, 1.0, 1.0]) is None
    assert AaScore(None, None, None).sentence() == (
        "how well numbers repeat on this host cannot be told: none of the work ran"
    )


def test_the_work_runs_here(tmp_path: Path) -> None:
    told: list[str] = []
    found = aa_score(HOST, str(tmp_path), rounds=3, sample_s=0.01, note=told.append)
    assert {"cpu", "memory"} <= found.kinds.keys()
    assert all(len(one.samples) == 6 for one in found.kinds.values())
    assert all(one.low <= one.ratio <= one.high for one in found.kinds.values())
    assert found.sentence().startswith("numbers on this host repeat within ")
    assert found.sentence().endswith("with 3 runs a side, differences below that cannot be seen")
    assert told == ["round 1 of 3", "round 2 of 3", "round 3 of 3"]
    assert list(tmp_path.iterdir()) == []


def test_work_that_cannot_run_is_left_out() -> None:
    found = aa_score(HOST, "/proc", rounds=3, sample_s=0.01)
    assert found.disk is None
    assert found.cpu is not None


def test_a_host_where_nothing_runs_is_an_error() -> None:
    class Bare(LocalTransport):
        def run(self, argv: Sequence[str], **options: Any) -> Completed:
            return super().run(["env", "-i", "PATH=/nowhere", "/bin/sh", *argv[1:]], **options)

    with pytest.raises(TransportError, match="none of the work of the A/A score runs on this") as e:
        aa_score(Bare(), "/tmp")  # noqa: S108 - nothing is written there
    assert e.value.hint == "install awk and dd, and name a directory that can be written"


# ---------------------------------------------------------------- before a step


class Replacing(LocalTransport):
    """This machine with a program of the test's in front of the others."""

    def __init__(self, folder: Path, name: str, script: str) -> None:
        self._folder = folder
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)

    def run(self, argv: Sequence[str], **options: Any) -> Completed:
        path = {"PATH": f"{self._folder}:{os.environ['PATH']}"}
        return super().run(argv, **{**options, "env": {**(options.get("env") or {}), **path}})


class Forbidden(LocalTransport):
    """A host that may not be asked for anything."""

    def run(self, argv: Sequence[str], **options: Any) -> Completed:
        raise AssertionError(argv)


def sensor(root: Path, celsius: float) -> None:
    zone, chip = root / "sys/class/thermal/thermal_zone0", root / "sys/class/hwmon/hwmon1"
    for folder in (zone, chip):
        folder.mkdir(parents=True, exist_ok=True)
    (zone / "type").write_text("x86_pkg_temp\n")
    (zone / "temp").write_text(f"{int(celsius * 1000)}\n")
    (chip / "name").write_text("nvme\n")
    (chip / "temp1_input").write_text("99000\n")


def test_nothing_wanted_asks_nothing() -> None:
    assert Preparer(Forbidden(), "/").prepare(()) == preparation.Prepared()


def test_sync_is_done_and_said() -> None:
    assert Preparer(HOST, "/").prepare(["sync"]).facts == {"sync": {"done": True}}


@pytest.mark.skipif(not os.access("/proc/sys/vm/drop_caches", os.W_OK), reason="wants root")
def test_caches_are_dropped_in_their_turn() -> None:
    prepared = Preparer(HOST, "/").prepare(["sync", "drop-caches"])
    assert list(prepared.facts) == ["sync", "drop-caches"]
    assert prepared.facts["drop-caches"].keys() == {"before_kib", "after_kib"}
    assert prepared.taints == ()


@pytest.mark.parametrize(
    ("script", "facts", "taint"),
    [
        ("echo '/mnt: 1.2 GiB (1288490188 bytes) trimmed on /dev/sda'",
         {"trimmed_bytes": 1288490188}, None),
        ("echo trimmed", {"trimmed_bytes": None}, None),
        ("echo 'fstrim: /mnt: the discard operation is not supported' >&2; exit 1",
         {"trimmed_bytes": None, "note": "fstrim: /mnt: the discard operation is not supported"},
         None),
        ("echo 'fstrim: /mnt: FITRIM ioctl failed: Operation not permitted' >&2; exit 1",
         {"trimmed_bytes": None,
          "note": "fstrim: /mnt: FITRIM ioctl failed: Operation not permitted"},
         "the file system of /mnt was not trimmed: fstrim: /mnt: FITRIM ioctl failed: Operation "
         "not permitted"),
    ],
)  # fmt: skip
@pytest.mark.skipif(os.getuid() != 0, reason="else sudo comes first")
def test_trimming(tmp_path: Path, script: str, facts: dict[str, Any], taint: str | None) -> None:
    prepared = Preparer(Replacing(tmp_path, "fstrim", script), "/mnt").prepare(["fstrim"])
    assert prepared.facts == {"fstrim": facts}
    assert [t.evidence for t in prepared.taints] == ([taint] if taint else [])
    assert all(t.name == "not-trimmed" and "sudoers" in t.remedy for t in prepared.taints)


@pytest.mark.skipif(os.getuid() != 0, reason="wants root")
def test_trimming_what_has_no_device_is_a_note() -> None:
    prepared = Preparer(HOST, SHARED_MEMORY).prepare(["fstrim"])
    assert prepared.taints == ()
    assert prepared.facts["fstrim"]["trimmed_bytes"] is None


def cooling(root: Path, *celsius: float) -> Callable[[float], None]:
    """A sleep that lets the CPU have the next temperature."""
    following = iter(celsius)
    return lambda _seconds: sensor(root, next(following))


def test_it_waits_until_the_cpu_is_cool(tmp_path: Path) -> None:
    sensor(tmp_path, 70)
    assert cpu_temperature(HOST, str(tmp_path)) == 70.0
    sleep = cooling(tmp_path, 60, 50.5, 44.9)
    prepared = Preparer(HOST, "/", 40.0, str(tmp_path), sleep).prepare(["cool-down=60"])
    assert prepared.facts["cool-down"] == {
        "waited_s": 6.0, "before_c": 70.0, "after_c": 44.9, "goal_c": 45.0,
    }  # fmt: skip
    assert prepared.taints == ()


def test_what_stays_hot_is_a_taint(tmp_path: Path) -> None:
    sensor(tmp_path, 70)
    sleep = cooling(tmp_path, 66, 65)
    prepared = Preparer(HOST, "/", 40.0, str(tmp_path), sleep).prepare(["cool-down=3"])
    (taint,) = prepared.taints
    assert taint.name == "still-hot"
    assert taint.evidence == (
        "the CPU had 65 °C after 3 s of cooling down, and 45 °C were to be reached"
    )


def test_without_a_sensor_all_of_the_time_is_waited(tmp_path: Path) -> None:
    naps: list[float] = []
    prepared = Preparer(HOST, "/", None, str(tmp_path), naps.append).prepare(["cool-down=7"])
    assert naps == [7.0]
    assert prepared.taints == ()
    assert prepared.facts["cool-down"]["after_c"] is None


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("dropcaches", "steps.a.before: there is no preparation 'dropcaches'; did you mean "
         "'drop-caches'?", "one of cool-down, drop-caches, fstrim, sync"),
        ("cool-down", "steps.a.before: 'cool-down' is not understood", "cool-down=60"),
        ("cool-down=x", "steps.a.before: 'cool-down=x' is not understood", "cool-down=60"),
        ("sync=1", "steps.a.before: 'sync=1' is not understood", "sync"),
    ],
)  # fmt: skip
def test_preparations_that_are_not_known(text: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_preparations(["sync", text], "steps.a.before")
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_step_has_its_own_preparations_or_those_of_its_workload() -> None:
    from benchrunner.definitions import Step, Workload

    own = Step(name="a", tool="fio", before=["fstrim", "cool-down=5"])
    none = Step(name="b", tool="fio", before=[])
    plain = Step(name="c", tool="fio")
    load = Step(name="d", tool="fio", measure=False)
    workload = Workload(
        name="w", title="W", engine="e", before=["drop-caches"], steps=[own, none, plain, load]
    )
    assert [preparation.preparations(workload, step) for step in workload.steps] == [
        ("fstrim", "cool-down=5"), (), ("drop-caches",), (),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="before"):
        Step(name="a", tool="fio", before=["reboot"])
