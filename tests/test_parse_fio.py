"""fio's outputs that the stored cases do not contain, and the laws of its parser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchrunner.errors import OutputNotRecognisedError
from benchrunner.parse.fio import parse_fio

ROOT = Path(__file__).parent / "cases" / "fio"
NORMAL_AND_JSON = (ROOT / "3.33-randread" / "stdout").read_text()
SEED = (ROOT / "2.14-seed" / "stdout").read_text()


def test_the_seed_pages_figures() -> None:
    """117331 and 136854 IOPS: the ceilings that the page of October 2022 quotes."""
    found = {(m.run, m.metric): m.value for m in parse_fio([SEED]).measurements}
    assert found[1, "read_iops"] == 117331
    assert found[1, "read_mb_per_sec"] == pytest.approx(469326 / 1024)
    assert found[2, "read_iops"] == 136854
    assert found[1, "device_util_pct"] == 100.0
    assert (1, "clat_p99_us") not in found


def test_json_figures_agree_with_the_document() -> None:
    start, end = NORMAL_AND_JSON.index("{"), NORMAL_AND_JSON.rindex("\n}") + 2
    read = json.loads(NORMAL_AND_JSON[start:end])["jobs"][0]["read"]
    found = {m.metric: m.value for m in parse_fio([NORMAL_AND_JSON]).measurements}
    assert found["read_iops"] == read["iops"]
    assert found["read_mb_per_sec"] == read["bw_bytes"] / 2**20
    assert found["clat_p99_us"] == read["clat_ns"]["percentile"]["99.000000"] / 1000
    assert not [metric for metric in found if metric.startswith(("write_", "trim_"))]


@settings(max_examples=150, deadline=None)
@given(size=st.integers(0, len(NORMAL_AND_JSON)))
def test_a_cut_output_never_gives_a_wrong_number(size: int) -> None:
    try:
        found = parse_fio([NORMAL_AND_JSON[:size]]).measurements
    except OutputNotRecognisedError:
        return
    assert set(found) <= set(parse_fio([NORMAL_AND_JSON]).measurements)


@settings(max_examples=150, deadline=None)
@given(size=st.integers(0, len(SEED)))
def test_a_cut_text_never_gives_a_wrong_number(size: int) -> None:
    try:
        found = parse_fio([SEED[:size]]).measurements
    except OutputNotRecognisedError:
        return
    assert set(found) <= set(parse_fio([SEED]).measurements)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("read", "write", "jobname", "error", "clat_ns", "percentile", "N", "iops"),
                    *("io_bytes", "sync", "lat_ns", "bw", "util", "name", "99.000000", "runtime"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(jobs=st.lists(JSON, max_size=3), disks=JSON)
def test_any_json_raises_nothing_else(jobs: list[object], disks: object) -> None:
    parse_fio([json.dumps({"jobs": jobs, "disk_util": disks}, indent=1)])


@settings(max_examples=100, deadline=None)
@given(text=st.text())
def test_any_text_raises_nothing_else(text: str) -> None:
    parse_fio([text, "\na: (groupid=0, jobs=1): err= 0: pid=1\n", text])


def test_fio_2_json_has_microseconds_and_no_bytes() -> None:
    clat = {"N": 9, "mean": 12.5, "max": 80, "percentile": {"99.000000": 70}}
    read = {"io_bytes": 4096, "bw": 2048, "iops": 512.0, "runtime": 1000, "clat": clat}
    document = {"fio version": "fio-2.14", "jobs": [{"jobname": "old", "error": 0, "read": read}]}
    found = {m.metric: m.value for m in parse_fio([json.dumps(document)]).measurements}
    assert found == {
        "read_iops": 512.0,
        "read_mb_per_sec": 2.0,
        "elapsed_s": 1.0,
        "clat_p99_us": 70.0,
        "clat_mean_us": 12.5,
        "clat_max_us": 80.0,
    }


def test_a_jobs_error_is_a_problem() -> None:
    job = {"jobname": "full", "error": 28, "read": {"io_bytes": 4096, "iops": 1.0}}
    parsed = parse_fio([json.dumps({"jobs": [job]})])
    assert parsed.problems == ("fio job full ended with error 28",)


def test_an_error_in_the_text_is_a_problem() -> None:
    text = SEED.replace("err= 0", "err=28", 1)
    assert parse_fio([text]).problems == ("fio job test ended with error 28",)


def test_jobs_without_io_are_a_problem() -> None:
    parsed = parse_fio(['{"jobs": []}\n'], ["fio: no such file\n"])
    assert parsed.problems == (
        "fio's JSON has no job that did any I/O",
        "fio reports: fio: no such file",
    )


def test_other_text_is_not_recognised() -> None:
    with pytest.raises(OutputNotRecognisedError) as caught:
        parse_fio(["{\nno JSON\n"])
    assert str(caught.value) == (
        "the text is not fio's output: it has neither JSON with jobs nor a job's summary\n"
        "  try: run fio with --output-format=normal,json and check that the file is complete"
    )


def test_jobs_of_one_name_are_runs() -> None:
    job = {"jobname": "test", "read": {"io_bytes": 1, "iops": 5.0}}
    parsed = parse_fio([json.dumps({"jobs": [job, job]})])
    assert [(m.phase, m.run, m.value) for m in parsed.measurements] == [
        ("test", 1, 5.0),
        ("test", 2, 5.0),
    ]
