"""hostbench's, iperf3's and openssl's parsers: laws, and forms that no stored case has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchrunner.errors import OutputNotRecognisedError
from benchrunner.parse.hostbench import parse_hostbench
from benchrunner.parse.iperf3 import parse_iperf3
from benchrunner.parse.openssl import parse_openssl

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchrunner.model import Parsed

CASES = Path(__file__).parent / "cases"
PAGE = CASES / "numbers-page" / "2023" / "stdout"
READERS: dict[str, Callable[[list[str]], Parsed]] = {
    "hostbench": parse_hostbench,
    "iperf3": parse_iperf3,
    "openssl": parse_openssl,
}
OUTPUTS = [
    (tool, (case / "stdout").read_text())
    for tool in READERS
    for case in sorted((CASES / tool).iterdir())
]
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["end", "start", "sum_sent", "sum_received", "sum", "bytes", "seconds", "test_start",
             "blksize", "bits_per_second", "error", "benchmarks", "name", "skipped", "settings",
             "compiler", "latency_ns"]
        ),
        inner,
    ),
    max_leaves=12,
)  # fmt: skip


def values(parsed: Parsed) -> dict[str, float]:
    return {m.metric: m.value for m in parsed.measurements}


@pytest.mark.parametrize(("tool", "text"), OUTPUTS)
def test_no_cut_of_a_real_output_gives_a_wrong_number(tool: str, text: str) -> None:
    whole = set(READERS[tool]([text]).measurements)
    for size in range(0, len(text), max(1, len(text) // 200)):
        try:
            part = READERS[tool]([text[:size]]).measurements
        except OutputNotRecognisedError:
            continue
        assert set(part) <= whole


@settings(max_examples=60, deadline=None)
@given(end=st.dictionaries(st.sampled_from(["sum_sent", "sum_received", "sum"]), JSON), start=JSON)
def test_no_json_of_the_right_outline_breaks_a_reader(end: Any, start: Any) -> None:
    document = {"hostbench": "1", "benchmarks": end, "settings": start, "end": end, "start": start}
    for reader in (parse_iperf3, parse_hostbench):
        for measurement in reader([json.dumps(document)]).measurements:
            assert measurement.value >= 0


# ---------------------------------------------------------------- hostbench


def test_hostbench_figures_are_those_of_the_document() -> None:
    text = (CASES / "hostbench" / "1.0-some" / "stdout").read_text()
    document = json.loads(text)
    found = {(m.phase, m.metric): m.value for m in parse_hostbench([text]).measurements}
    for one in document["benchmarks"]:
        own = {metric: value for (phase, metric), value in found.items() if phase == one["name"]}
        assert own.items() <= one.items()
        (result,) = own.keys() & {
            "latency_ns", "bandwidth_mb_per_sec", "ns_per_op", "hash_mb_per_sec"
        }  # fmt: skip
        assert own[result] == sorted(one["repetitions"])[1]
    assert found["hash/crc32c", "block_bytes"] == 16384


def test_what_hostbench_skipped_is_a_fact() -> None:
    text = (CASES / "hostbench" / "1.0-skipped" / "stdout").read_text()
    parsed = parse_hostbench([text])
    assert {m.phase for m in parsed.measurements} == {"syscall"}
    assert parsed.facts["skipped latency/normal/256MiB"] == "the kernel gave no 256 MiB of memory"


def test_hostbench_that_refused_its_arguments_says_why() -> None:
    with pytest.raises(OutputNotRecognisedError) as caught:
        parse_hostbench([], ["hostbench: no benchmark is called 'x'; --list prints them\n"])
    assert str(caught.value) == (
        "hostbench: no benchmark is called 'x'; --list prints them\n"
        "  try: run hostbench with --json and let it end"
    )
    with pytest.raises(OutputNotRecognisedError, match="no complete JSON document of hostbench"):
        parse_hostbench(['{"hostbench": "1.0", "benchmarks": ['])


# ---------------------------------------------------------------- iperf3


def test_iperf3_figures_agree_with_the_document() -> None:
    text = (CASES / "iperf3" / "3.12-tcp" / "stdout").read_text()
    document = json.loads(text)
    sent, received = document["end"]["sum_sent"], document["end"]["sum_received"]
    found = values(parse_iperf3([text]))
    assert found["network_gbit_per_sec"] == received["bits_per_second"] / 1e9
    assert found["network_sent_gbit_per_sec"] == sent["bits_per_second"] / 1e9
    assert found["tcp_retransmits"] == sent["retransmits"]
    block = document["start"]["test_start"]["blksize"]
    assert found["ops_per_sec"] == pytest.approx(sent["bits_per_second"] / 8 / block)


def test_old_iperf3_has_one_sum_for_both_sides() -> None:
    document = {"end": {"sum": {"bits_per_second": 2e9}}, "start": {}}
    found = values(parse_iperf3([json.dumps(document)]))
    assert found == {"network_gbit_per_sec": 2.0, "network_sent_gbit_per_sec": 2.0}


def test_iperf3_without_a_result_is_a_problem() -> None:
    assert parse_iperf3(['{"end": {}}']).problems == (
        "iperf3's JSON has no sum of what was received",
    )
    parsed = parse_iperf3([], ["iperf3: error - unable to connect to server: Connection refused\n"])
    assert parsed.problems == (
        "iperf3 reports: error - unable to connect to server: Connection refused",
    )


def test_a_text_that_is_not_iperf3s_is_not_recognised() -> None:
    with pytest.raises(OutputNotRecognisedError) as caught:
        parse_iperf3(["hello\n"])
    assert str(caught.value) == (
        "the text is not iperf3's output: it has neither its JSON nor a summary line\n"
        "  try: run iperf3 with --json and check that the file is complete"
    )


@pytest.mark.parametrize(("prefix", "factor"), [("", 1e-9), ("K", 1e-6), ("M", 1e-3), ("T", 1e3)])
def test_iperf3_text_in_any_unit(prefix: str, factor: float) -> None:
    line = (
        f"[  5]   0.00-10.04  sec  17.6 GBytes  15.1 {prefix}bits/sec                  receiver\n"
    )
    found = values(parse_iperf3([line]))
    assert found == {"network_gbit_per_sec": pytest.approx(15.1 * factor)}


@pytest.mark.parametrize("rate", ["1.5.1 Gbits/sec", f"{'9' * 400} Gbits/sec"])
def test_a_rate_that_is_no_number_is_left_out(rate: str) -> None:
    line = f"[  5]   0.00-10.04  sec  17.6 GBytes  {rate}                  receiver\n"
    with pytest.raises(OutputNotRecognisedError):
        parse_iperf3([line])


# ---------------------------------------------------------------- openssl


def test_openssl_rates_agree_with_its_own_words() -> None:
    """What it says on stderr while it works: so many calls in so many seconds."""
    for name in ("3.0-sha3-256", "3.0-md5-and-sha1", "3.0-all-sizes"):
        case = CASES / "openssl" / name
        parsed = parse_openssl((case / "stdout").read_text().splitlines(keepends=True))
        found = {
            (m.phase, m.role): m.value for m in parsed.measurements if m.metric == "hash_mb_per_sec"
        }
        words = r"Doing (\S+) for \ds on (\d+) size blocks: (\d+) \S+ in ([\d.]+)s"
        lines = re.findall(words, (case / "stderr").read_text())
        assert len(lines) == len(found)
        for algorithm, size, calls, seconds in lines:
            role = f"{size} bytes" if name == "3.0-all-sizes" else None
            rate = int(size) * int(calls) / float(seconds) / 2**20
            assert found[algorithm, role] == pytest.approx(rate, rel=1e-6)


def test_a_row_with_too_few_cells_is_left_out() -> None:
    text = ["type  16 bytes  64 bytes\n", "md5   1.00k\n", "sha1  2.00k  4.00k\n"]
    assert {m.phase for m in parse_openssl(text).measurements} == {"sha1"}


def test_openssl_without_a_table_says_what_it_complained_of() -> None:
    with pytest.raises(OutputNotRecognisedError) as caught:
        parse_openssl([], ["speed: nosuch is an unknown cipher or digest\n"])
    assert str(caught.value) == (
        "openssl speed: nosuch is an unknown cipher or digest\n"
        "  try: openssl list -digest-algorithms prints what it can measure"
    )
    with pytest.raises(OutputNotRecognisedError, match="the text has no table of openssl speed"):
        parse_openssl(["hello\n"])
