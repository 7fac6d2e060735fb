"""Report data made from rows of the page "Performance Benchmarks October 2022", for tests.

Versions 7.2.2, 6.29.1, 6.24.0 and 6.10.4, in both variants as far as that page has them. The page
prints usec/op in the p50 column of test 3 for 6.10.4 and loses p99.99; here p99.99 is missing.
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.definitions import ColumnDefinition, Metric, Workload
from benchrunner.model import Artifact, FlagNote, StepState, Taint, TrialState
from benchrunner.report.input import (
    CeilingView,
    Cell,
    MeasurementKey,
    OptionDifference,
    RawText,
    ReportData,
    StepView,
    TrialView,
)
from benchrunner.units import parse_duration_s

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[1]
FLASH = ROOT / "workloads" / "rocksdb-flash.toml"

ROWS = {
    "bulkload": """
7.2.2 None 4021 1003732 402.0 1.0 0.5 0.8 2 7 22 00:00:52.558 6.3 101406408
7.2.2 DIO 3976 1021386 409.1 1.0 0.5 0.8 2 3 32 00:00:41.215 4.9 101404476
6.29.1 None 3898 1045486 418.8 1.0 0.5 0.8 2 3 55 00:01:17.876 9.3 101405948
6.29.1 DIO 3819 1065706 426.9 0.9 0.5 0.8 2 3 25 00:01:09.405 8.3 101404236
6.24.0 None 3983 1025562 410.8 1.0 0.5 0.8 2 3 32 00:01:12.296 8.6 101406524
6.24.0 DIO 3880 1052049 421.4 1.0 0.5 0.8 2 3 22 00:01:05.862 7.8 101405064
6.10.4 None 4002 1062310 425.5 0.9 0.5 0.8 1 3 1013 00:02:24.652 17.2 101402936
""",
    "readrandom": """
7.2.2 None 136915 34.7 467.4 615.5 772.8 1270 1801 2840
7.2.2 DIO 189236 47.9 338.2 419.6 539.1 1022 1693 2297
6.29.1 None 145577 36.9 439.6 606.3 751.0 1204 1292 2091
6.29.1 DIO 189243 47.9 338.2 430.0 540.9 854 969 1291
6.24.0 None 130852 33.1 489.1 632.6 791.4 1266 1297 2152
6.24.0 DIO 189240 47.9 338.2 430.0 540.7 854 930 1292
6.10.4 None 138496 35.1 462.1 617.1 764.3 1240 1295 2484
""",
    "multireadrandom": """
7.2.2 None 136928 4657.7 5774.9 9416 9873 18001
7.2.2 DIO 189216 3415.8 4064.2 6422 6586 8602
6.29.1 None 145652 4376.9 5549.2 8702 9813 15243
6.29.1 DIO 189233 3410.8 4048.6 6406 6583 7498
6.24.0 None 130859 4836.9 5995.1 9630 9880 14169
6.24.0 DIO 189234 3409.0 4047.2 6406 6584 7996
6.10.4 None 138476 4583.0 5710.9 9298 9864
""",
    "fwdrange": """
7.2.2 None 70097 280.8 913.0 791.9 1435.5 1892 2811 10210
7.2.2 DIO 78828 315.7 811.9 836.9 1093.2 1771 2601 2894
6.29.1 None 74530 298.5 858.7 775.8 1392.9 1881 1899 7807
6.29.1 DIO 78830 315.7 811.8 870.2 1090.8 1434 1862 2668
6.24.0 None 67004 268.4 955.1 802.8 1480.1 1884 1899 7216
6.24.0 DIO 78832 315.8 811.8 870.4 1090.2 1376 1856 2582
6.10.4 None 70973 284.3 901.7 787.6 1438.0 1882 1899 9945
""",
    "revrange": """
7.2.2 None 68785 275.5 930.4 806.0 1467.2 1892 2859 12052
7.2.2 DIO 76200 305.2 839.9 897.5 1114.2 1776 2617 2898
6.29.1 None 73167 293.1 874.7 788.9 1406.9 1882 1900 12818
6.29.1 DIO 76204 305.2 839.8 910.2 1112.1 1562 1874 2764
""",
    "overwrite": """
7.2.2 None 86617 34.7 9.5 149.7 738.9 449.7 777.6 10479 30005 58328 00:04:43.188 5.3 158540048
7.2.2 DIO 86839 34.8 9.4 154.6 737.0 460.7 775.4 9534 29149 54278 00:03:00.102 3.4 159135832
6.29.1 None 90711 36.3 9.4 155.1 705.5 418.2 740.0 10213 29779 57100 00:05:28.848 6.1 161099792
6.29.1 DIO 89469 35.8 9.5 154.4 715.3 431.6 748.0 9568 29143 54324 00:04:06.106 4.6 159661172
6.24.0 None 90829 36.4 4.7 155.2 704.6 397.1 726.4 10359 29968 58160 00:07:01.849 7.9 160757048
6.24.0 DIO 90105 36.1 4.8 153.7 710.3 421.8 736.9 9344 28869 52676 00:05:22.128 6.0 160833572
6.10.4 None 94539 37.9 4.7 161.9 676.9 328.4 700.4 10022 29843 56548 00:07:11.226 8.0 162965216
""",
    "readwhilewriting": """
7.2.2 None 98240 31.1 18.1 11.4 651.4 600.6 829.8 3963 6041 10139 140646588
7.2.2 DIO 143283 45.3 17.1 7.3 446.7 394.8 539.8 2820 4315 6393 140470436
6.29.1 None 100445 31.8 28.3 18.2 637.1 593.0 810.3 3906 6524 18544 140795968
6.29.1 DIO 141799 44.8 31.5 14.2 451.3 397.1 541.4 2792 4744 9095 140017864
6.24.0 None 92974 29.5 27.6 19.0 688.3 624.8 869.7 4010 6436 14558 140384360
6.24.0 DIO 141491 44.7 32.7 15.0 452.3 395.8 540.8 2802 4867 9311 140255568
6.10.4 None 95649 30.5 30.2 19.7 669.1 608.1 834.5 3999 6597 17861 141636760
""",
    "fwdrangewhilewriting": """
7.2.2 None 40675 162.9 17.4 7.4 1573.4 1374.6 1855.1 6293 13434 24996 141346104
7.2.2 DIO 35619 142.7 18.3 7.5 1796.6 1540.7 2171.8 6533 9698 13325 140957044
6.29.1 None 43138 172.8 17.6 7.8 1483.5 1294.3 1804.6 6089 13026 25065 141561940
6.29.1 DIO 36460 146.0 16.5 7.1 1755.2 1517.8 2128.9 6381 9572 12979 140761644
6.24.0 None 38940 156.0 17.7 8.1 1643.4 1445.8 1970.8 6411 13480 21757 141724476
6.24.0 DIO 35955 144.0 17.1 7.5 1779.8 1534.8 2173.0 6427 9615 13093 140989196
6.10.4 None 41827 167.5 17.6 8.0 1530.0 1329.2 1826.2 6212 13129 23244 142497356
""",
    "revrangewhilewriting": """
7.2.2 None 33680 134.9 17.3 7.5 1900.1 1668.2 2417.1 7207 16605 29880 142066536
7.2.2 DIO 31215 125.0 16.4 6.9 2050.0 1755.3 2528.0 7637 10178 13981 141817860
6.29.1 None 35535 142.3 17.6 7.8 1800.8 1598.9 2320.1 6572 16547 30132 142191812
6.29.1 DIO 31839 127.5 16.8 7.3 2009.9 1731.9 2489.0 7184 9882 13917 141520096
""",
}


def _metric(title: str, unit: str, better: str = "lower", digits: int | None = None) -> Metric:
    values = {"title": title, "unit": unit, "better": better, "digits": digits}
    return Metric.model_validate({**values, "text": f"What {title} means."})


METRICS: Mapping[str, Metric] = {
    "test_time_s": _metric("Time", "s", digits=0),
    "ops_per_sec": _metric("ops/sec", "ops/s", "higher", 0),
    "mb_per_sec": _metric("mb/sec", "MB/s", "higher", 1),
    "w_amp_lsm": _metric("W-Amp", "ratio", digits=1),
    "w_amp_sum_over_l0": _metric("W-Amp", "ratio", digits=1),
    "w_amp_device": _metric("W-Amp device", "ratio", digits=1),
    "compaction_write_mb_per_sec": _metric("W-MB/s", "MB/s", "neither", 1),
    "usec_per_op": _metric("usec/op", "us/op", digits=1),
    "p50_us": _metric("p50", "us", digits=1),
    "p75_us": _metric("p75", "us", digits=1),
    "p99_us": _metric("p99", "us", digits=0),
    "p99_9_us": _metric("p99.9", "us", digits=0),
    "p99_99_us": _metric("p99.99", "us", digits=0),
    "stall_time_s": _metric("Stall-time", "s", digits=3),
    "stall_pct": _metric("Stall%", "%", digits=1),
    "du_kib": _metric("du -s -k", "KiB", digits=0),
    "found_ratio": _metric("found", "ratio", "neither", 2),
    "cpu_user_s": _metric("user CPU", "s", "neither", 1),
    "cpu_sys_s": _metric("sys CPU", "s", "neither", 1),
    "cpu_pct": _metric("CPU %", "%", "neither", 0),
    "cpu_us_per_op": _metric("CPU us/op", "us/op", digits=1),
    "ctx_voluntary": _metric("ctx vol", "count", "neither", 0),
    "ctx_involuntary": _metric("ctx invol", "count", "neither", 0),
    "ctx_per_op": _metric("ctx/op", "count/op", "neither", 2),
    "rss_max_kib": _metric("RSS", "KiB", digits=0),
    "read_bytes": _metric("read bytes", "bytes", "neither", 0),
    "write_bytes": _metric("write bytes", "bytes", "neither", 0),
    "read_bytes_per_op": _metric("read B/op", "bytes/op", digits=1),
    "write_bytes_per_op": _metric("write B/op", "bytes/op", digits=1),
    "read_iops": _metric("read IOPS", "io/s", "higher", 0),
}

PHASES = {
    "bulkload": "fillrandom",
    "fwdrange": "seekrandom",
    "revrange": "seekrandom",
    "fwdrangewhilewriting": "seekrandomwhilewriting",
    "revrangewhilewriting": "seekrandomwhilewriting",
}

STALE = Taint("cpu-steal", "4.1 % of CPU time was stolen", "Run on a host of its own")
DROPPED = FlagNote("hard_rate_limit", "3", None, "dropped", "removed in 7.0")
GIVEN = FlagNote("threads", "64", "--threads=64", "given")

FACTS = {
    "instance": "m5d.2xlarge",
    "cpu": {"model": "Intel Xeon Platinum 8175M", "count": 8},
    "memory": {"total_kib": 32 * 1024 * 1024},
    "kernel": "Linux 4.14.177-139.253.amzn2.x86_64",
    "file_system": {"type": "xfs", "mount_options": ["rw", "discard"]},
    "device": {"model": "NVMe SSD", "size_bytes": 300 * 10**9},
}


def shipped_metrics() -> dict[str, Metric]:
    """The definitions as they are shipped."""
    text = (ROOT / "benchrunner" / "metrics.toml").read_text(encoding="utf-8")
    return {name: Metric.model_validate(values) for name, values in tomllib.loads(text).items()}


def flash_workload() -> Workload:
    """The shipped workload of the flash page."""
    return Workload.model_validate(tomllib.loads(FLASH.read_text(encoding="utf-8")))


def columns_of(workload: Workload, step: str) -> list[str]:
    """The metric ids of a test's first table, in order."""
    table = next(table for table in workload.page.tables if table.step == step)
    return [c.metric if isinstance(c, ColumnDefinition) else c for c in table.columns]


def number(text: str) -> float:
    """A figure of the page: a plain number or a clock time."""
    return parse_duration_s(text) if ":" in text else float(text)


def parsed_rows(workload: Workload, step: str) -> dict[tuple[str, str], dict[str, float]]:
    """(version, variant) -> metric id -> value, of one test."""
    columns = columns_of(workload, step)
    rows: dict[tuple[str, str], dict[str, float]] = {}
    for line in ROWS[step].split("\n"):
        if line:
            version, variant, *figures = line.split()
            numbers = [number(figure) for figure in figures]
            rows[version, variant] = dict(zip(columns, numbers, strict=False))
    return rows


def artifact(version: str) -> Artifact:
    """A binary that could have made the rows."""
    return Artifact(
        id=f"artifact-{version}",
        engine="rocksdb",
        version=version,
        source="git",
        ref=f"v{version}",
        state="built",
        commit=("c0ffee" + version.replace(".", "")) * 4,
        compiler="gcc 12.2.0",
        sha256={"db_bench": ("5ba0" + version.replace(".", "")) * 8},
        build_flags={"DEBUG_LEVEL": "0"},
    )


def step_view(
    step: str, version: str, variant: str, values: Mapping[str, float], curve_points: int = 30
) -> StepView:
    """A step that ended well with the page's figures and a plausible curve."""
    measurements: dict[MeasurementKey, float] = {
        (None if name in ("du_kib", "rss_max_kib") else PHASES.get(step, step), 1, None, name): v
        for name, v in values.items()
    }
    rate = values["ops_per_sec"]
    curve = [(60.0 * place, rate * (1 + 0.1 * (place % 3 - 1))) for place in range(curve_points)]
    direct = ("--use_direct_reads=true",) if variant == "DIO" else ()
    return StepView(
        StepState.OK,
        argv=("/opt/db_bench", f"--benchmarks={PHASES.get(step, step)},stats", *direct),
        env={"LD_PRELOAD": ""},
        flags=(GIVEN, DROPPED) if version.startswith("7") else (GIVEN,),
        measurements=measurements,
        series={"ops_per_sec": tuple(curve)},
        option_differences=(OptionDifference("max_open_files", "-1", "5000"),),
    )


def seed_data(versions: tuple[str, ...] | None = None) -> ReportData:
    """The page's figures as report data."""
    workload = flash_workload()
    rows = {step: parsed_rows(workload, step) for step in ROWS}
    cells: list[Cell] = []
    for version, variant in sorted(rows["bulkload"]):
        if versions is not None and version not in versions:
            continue
        steps: dict[str, StepView] = {}
        for step, table in rows.items():
            if (version, variant) not in table:
                continue
            values = dict(table[version, variant])
            if step == "bulkload":
                du: dict[MeasurementKey, float] = {(None, 1, None, "du_kib"): values.pop("du_kib")}
                steps[step] = step_view(step, version, variant, values)
                steps["bulkload-compact"] = StepView(
                    StepState.OK, argv=("/opt/db_bench", "--benchmarks=compact"), measurements=du
                )
            else:
                steps[step] = step_view(step, version, variant, values)
        trial_id = f"t-{version}-{variant}-1"
        trial = TrialView(trial_id, 1, TrialState.OK, "", artifact(version), steps)
        cells.append(Cell("rocksdb", version, variant, "nvme1", trials=(trial,)))
    return ReportData(
        workload=workload,
        params=workload.params,
        scale="published",
        host_facts={"nvme1": FACTS},
        cells=tuple(cells),
        metrics=METRICS,
        generated_at=datetime(2022, 10, 6, 12, 0, tzinfo=UTC),
        ceilings=(CeilingView("nvme1", "fio-randread", "read_iops", 117331.0, "randread-sync"),),
        appendix=(
            RawText(
                "fio test results",
                "test: (groupid=0, jobs=32): err= 0\n  read : iops=117331, runt=285980msec\n",
                ("fio", "--name=test", "--filename=/data/test file"),
            ),
        ),
        command_line=("benchrunner", "sweep", "rocksdb-flash", "--versions", "6.10..7.2"),
        benchrunner_version="0.1.0",
    )


SMALL = """
name = "small"
title = "A small page"
engine = "rocksdb"
params = { NUM = 1000000, CACHE = "16MiB" }
[[variants]]
name = "None"
[[variants]]
name = "DIO"
[[steps]]
name = "fill"
tool = "db_bench"
title = "Test 1. Fill (benchmark.sh fill)"
command = "NUM={NUM} benchmark.sh fill"
text = "Load {NUM:,} keys; `Time` is a|b."
phase = "fillrandom"
[[steps]]
name = "read"
tool = "db_bench"
title = "Test 2. Read"
text = "Of the keys {found_ratio:.0%} exist."
phase = "readrandom"
[page]
title = "Small page"
intro = "One test_page."
setup = ["NUM={NUM}"]
[[page.tables]]
step = "fill"
columns = ["ops_per_sec", "w_amp_lsm", "stall_time_s", "du_kib"]
[[page.tables]]
step = "read"
columns = ["ops_per_sec", "p50_us", "p99_us"]
[[page.charts]]
step = "read"
kind = "by-version"
"""


def small_trial(trial_id: str, steps: Mapping[str, StepView], **changes: object) -> TrialView:
    """A trial of the small workload."""
    trial = TrialView(trial_id, 1, TrialState.OK, "", artifact("7.2.2"), steps)
    return replace(trial, **changes)  # type: ignore[arg-type]


def ok_step(phase: str, **values: float) -> StepView:
    """A step that ended well with these values."""
    numbers: dict[MeasurementKey, float] = {
        (phase, 1, None, name): value for name, value in values.items()
    }
    return StepView(StepState.OK, argv=("db_bench", f"--benchmarks={phase}"), measurements=numbers)


def small_data() -> ReportData:
    """Two versions and every way in which a number can be missing or in doubt."""
    fill = ok_step("fillrandom", ops_per_sec=86617.4, stall_time_s=283.188, du_kib=158540048.0)
    read = ok_step(
        "readrandom", ops_per_sec=136915.2, p50_us=615.52, p99_us=1270.4, found_ratio=0.632
    )
    tainted = replace(read, taints=(STALE,), flags=(DROPPED,))
    killed = StepView(StepState.FAILED, "db_bench was killed by signal 9", ("db_bench",))
    odd = replace(read, state=StepState.INVALID, problems=("p50 615.5 is above p99 12.7",))
    failed = small_trial(
        "t4", {"fill": fill, "read": killed}, state=TrialState.FAILED, reason="read failed"
    )
    skipped = small_trial(
        "t5",
        {},
        state=TrialState.SKIPPED,
        reason="7.10 <script>alert(1)</script> | no build",
        artifact=None,
    )
    cells = (
        Cell(
            "rocksdb",
            "6.9",
            "DIO",
            "here",
            trials=(small_trial("t1", {"fill": fill, "read": odd}),),
        ),
        Cell(
            "rocksdb",
            "6.9",
            "None",
            "here",
            trials=(small_trial("t2", {"fill": fill, "read": read}),),
        ),
        Cell("rocksdb", "6.10", "DIO", "here", trials=(failed,)),
        Cell(
            "rocksdb",
            "6.10",
            "None",
            "here",
            trials=(small_trial("t3", {"fill": fill, "read": tainted}),),
        ),
        Cell("rocksdb", "7.10<script>", "None", "here", trials=(skipped,)),
    )
    return ReportData(
        workload=Workload.model_validate(tomllib.loads(SMALL)),
        params={"NUM": 1000000, "CACHE": "16MiB"},
        scale="published",
        host_facts={"here": FACTS},
        cells=cells,
        metrics=METRICS,
        generated_at=datetime(2022, 10, 6, 12, 0, tzinfo=UTC),
        appendix=(RawText("fio test results", "```\nread : iops=117331\n"),),
    )
