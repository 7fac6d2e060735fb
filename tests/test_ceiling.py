"""Ceilings of hosts: which numbers of a step are one, and which steps come near to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrunner.ceiling import Limit, best_of, device_rates, limit_at, limits_given, saturation
from benchrunner.definitions import Ceiling, Gift
from benchrunner.model import Measurement

MIB = 1024 * 1024
IOPS = Ceiling(taints={"device_read_iops": "read_iops"})


def rates(iops: float, mb_per_sec: float, kind: str = "read") -> list[Measurement]:
    """What a device did during a step."""
    return [
        Measurement(None, 1, None, f"device_{kind}_iops", iops),
        Measurement(None, 1, None, f"device_{kind}_mb_per_sec", mb_per_sec),
    ]


def test_a_step_near_the_device_s_bandwidth_says_so_in_words() -> None:
    ceiling = Ceiling(workload="w", taints={"device_read_mb_per_sec": "read_mb_per_sec"})
    near = [Measurement(None, 1, None, "device_read_mb_per_sec", 960.0)]
    (taint,) = saturation(ceiling, near, [Limit("read_mb_per_sec", 1000.0)])
    assert taint.name == "device-saturated"
    assert taint.evidence.startswith("the device served 960 MB of reads a second, 96% of the 1,000")
    assert saturation(ceiling, near, [Limit("read_mb_per_sec", 1100.0)]) == ()
    assert saturation(ceiling, near, []) == (), "nobody has measured that host"


def test_reads_are_held_against_those_of_their_own_size() -> None:
    limits = [Limit("read_iops", 100_000.0, 4096), Limit("read_iops", 20_000.0, 65536)]
    of_4k = rates(50_000.0, 50_000 * 4096 / MIB)
    of_64k = rates(19_500.0, 19_500 * 65536 / MIB)
    assert saturation(IOPS, of_4k, limits) == ()
    (taint,) = saturation(IOPS, of_64k, limits)
    assert taint.evidence == (
        "the device served 19,500 reads of 64 KiB a second, 98% of the 20,000 that fio reached: "
        "the step measured the device, not the engine"
    )
    assert saturation(IOPS, of_64k, limits[:1]) != (), "64 KiB of the largest known size's bytes"


def test_flushes_and_memory_have_words_of_their_own() -> None:
    ceiling = Ceiling(
        taints={
            "device_flushes_per_sec": "device_flushes_per_sec",
            "mb_per_sec": "bandwidth_mb_per_sec",
        }
    )
    near = [
        Measurement(None, 1, None, "device_flushes_per_sec", 990.0),
        Measurement("readrandom", 1, None, "mb_per_sec", 9_600.0),
    ]
    limits = [Limit("device_flushes_per_sec", 1000.0), Limit("bandwidth_mb_per_sec", 10_000.0)]
    flushes, memory = saturation(ceiling, near, limits)
    assert flushes.evidence.startswith(
        "the device was flushed 990 times a second, 99% of the 1,000 that fio's fsyncs reached"
    )
    assert memory.evidence == (
        "keys and values of 9,600 MB a second were moved, 96% of the 10,000 that reading memory "
        "reached: the step measured the memory, not the engine"
    )


@given(
    rates=st.tuples(st.floats(1e3, 1e6), st.floats(1e2, 1e3)),
    block=st.floats(512, 1 << 24),
)
def test_between_two_sizes_a_ceiling_is_between_theirs(
    rates: tuple[float, float], block: float
) -> None:
    small, large = rates
    limits = [Limit("r", small, 4096), Limit("r", large, 262144)]
    found = limit_at(limits, block)
    assert found is not None
    slack = 1e-9 * small
    if block <= 262144:
        assert large - slack <= found <= small + slack
    else:
        assert found * block == pytest.approx(large * 262144)
    assert limit_at(limits, None) == small


def test_a_ceiling_of_whatever_size_counts_where_no_size_is_known() -> None:
    assert limit_at([Limit("r", 5.0)], 4096.0) == 5.0
    assert limit_at([Limit("r", 5.0), Limit("r", 7.0, 4096)], 4096.0) == 7.0
    assert limit_at([], 4096.0) is None


def test_a_gift_is_the_best_of_its_phases() -> None:
    measured: dict[tuple[str | None, int, str | None, str], float] = {
        ("a", 1, None, "read_iops"): 100.0,
        ("a", 1, None, "read_mb_per_sec"): 100.0 * 4096 / MIB,
        ("b", 1, None, "read_iops"): 120.0,
        ("b", 1, None, "read_mb_per_sec"): 120.0 * 4095 / MIB,
        ("c", 1, None, "read_iops"): 50.0,
        ("c", 1, None, "read_mb_per_sec"): 50.0 * 65536 / MIB,
        ("d", 1, None, "read_iops"): 500.0,
    }
    assert limits_given(Gift(metric="read_iops", block="each"), measured) == (
        Limit("read_iops", 120.0, 4096),
        Limit("read_iops", 50.0, 65536),
    )
    assert limits_given(Gift(metric="read_iops"), measured) == (Limit("read_iops", 500.0),)
    assert limits_given(Gift(metric="read_iops", phases="c"), measured) == (
        Limit("read_iops", 50.0),
    )
    assert limits_given(Gift(metric="write_iops"), measured) == ()


def test_memory_gives_what_its_largest_block_did() -> None:
    measured: dict[tuple[str | None, int, str | None, str], float] = {
        ("read/normal/4KiB", 1, None, "bandwidth_mb_per_sec"): 90_000.0,
        ("read/normal/4KiB", 1, None, "block_bytes"): 4096.0,
        ("read/normal/1GiB", 1, None, "bandwidth_mb_per_sec"): 9_000.0,
        ("read/normal/1GiB", 1, None, "block_bytes"): 2.0**30,
        ("read/normal/1GiB/2-threads", 1, None, "bandwidth_mb_per_sec"): 15_000.0,
        ("read/normal/1GiB/2-threads", 1, None, "block_bytes"): 2.0**30,
        ("write/normal/1GiB", 1, None, "bandwidth_mb_per_sec"): 20_000.0,
        ("write/normal/1GiB", 1, None, "block_bytes"): 2.0**30,
    }
    gift = Gift(metric="bandwidth_mb_per_sec", phases="read/*", block="largest")
    assert limits_given(gift, measured) == (Limit("bandwidth_mb_per_sec", 15_000.0),)


def test_the_best_of_several_steps_counts() -> None:
    limits = [Limit("r", 1.0, 4096), Limit("r", 3.0, 4096), Limit("r", 2.0, 4096), Limit("r", 1.0)]
    assert best_of(limits) == (Limit("r", 3.0, 4096), Limit("r", 1.0))


def test_flushes_are_the_mean_of_their_curve() -> None:
    (found,) = device_rates({"dev_flushes_per_sec": ((1.0, 100.0), (3.0, 40.0))})
    assert found == Measurement(None, 1, None, "device_flushes_per_sec", 60.0)
