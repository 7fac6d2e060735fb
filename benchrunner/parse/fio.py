"""fio's output, as JSON (alone or inside other text) or as the text that fio-2 and fio-3 print.

Pure. A phase is a job (or a group, with --group_reporting); directions are roles. A direction in
which nothing was done, and a percentile that was not measured (--gtod_reduce=1), are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from benchrunner.errors import ConfigurationError, OutputNotRecognisedError
from benchrunner.model import Measurement, Parsed
from benchrunner.parse.figure import number
from benchrunner.parse.json_text import find_document, read_whole, records_at, value_at
from benchrunner.parse.text import Lines
from benchrunner.units import parse_count, parse_duration_s, parse_size_bytes

if TYPE_CHECKING:
    from benchrunner.parse.text import Text

PARSER_VERSION = 2
_DIRECTIONS = ("read", "write", "trim")
_PERCENTILES = {
    "50.000000": "p50_us",
    "75.000000": "p75_us",
    "99.000000": "p99_us",
    "99.900000": "p99_9_us",
    "99.990000": "p99_99_us",
}
_MIB = 1024.0 * 1024.0
_JOB = re.compile(r"(?P<name>.+): \(groupid=\d+, jobs=\d+\): err=\s*(?P<error>\d+)(?P<rest>.*)")
_IO = re.compile(r"\s+(?P<direction>read|write|trim)\s*: (?P<rest>.*)")
_IOPS = re.compile(r"\biops=(?P<value>[\d.]+[kKMG]?)", re.IGNORECASE)
_BANDWIDTH = re.compile(r"\bbw=(?P<value>[\d.]+\s*[KMG]?i?B)/s", re.IGNORECASE)
_RUN_TIME = re.compile(r"\brunt=\s*(?P<value>\d+msec)|/(?P<v3>\d+msec)\)")
_CPU = re.compile(r"\s+cpu\s+: usr=(?P<user>[\d.]+)%, sys=(?P<system>[\d.]+)%, ctx=(?P<ctx>\d+)")
_DISK = re.compile(r"\s+(?P<name>\S+): ios=\d+/\d+.*, util=(?P<percent>[\d.]+)%")
_VERSION = re.compile(r"(?P<version>fio-\d\S*)\s*")


def parse_fio(stdout: Text, stderr: Text = ()) -> Parsed:
    """What fio measured, from its JSON if there is any, else from its text.

    Raises:
        OutputNotRecognisedError: neither is in the text.
    """
    lines, rest = read_whole(stdout)
    document = find_document("\n".join([*lines, rest]), "jobs", list)
    parsed = _from_json(document) if document is not None else _from_text(lines)
    complaints = tuple(line for line in Lines(stderr) if line.startswith("fio: "))
    if complaints and not parsed.measurements:
        return Parsed((), problems=(*parsed.problems, f"fio reports: {complaints[0]}"))
    return parsed


# ---------------------------------------------------------------- JSON


def _from_json(document: dict[str, Any]) -> Parsed:
    found: list[Measurement] = []
    problems: list[str] = []
    runs: Counter[str] = Counter()
    for job in document["jobs"]:
        if not isinstance(job, dict) or not isinstance(job.get("jobname"), str):
            continue
        name = job["jobname"]
        runs[name] += 1
        found += _job(name, runs[name], job)
        error = value_at(job.get("error"))
        if error:
            problems.append(f"fio job {name} ended with error {error:.0f}")
    for disk in records_at(document, "disk_util"):
        percent = value_at(disk.get("util"))
        if percent is not None:
            found.append(Measurement(None, 1, str(disk.get("name")), "device_util_pct", percent))
    if not found and not problems:
        problems.append("fio's JSON has no job that did any I/O")
    version = document.get("fio version")
    facts = {"version": version} if isinstance(version, str) else {}
    return Parsed(tuple(found), problems=tuple(problems), facts=facts)


def _job(name: str, run: int, job: dict[str, Any]) -> list[Measurement]:
    values: dict[tuple[str | None, str], float | None] = {
        (None, "cpu_user_pct"): value_at(job.get("usr_cpu")),
        (None, "cpu_sys_pct"): value_at(job.get("sys_cpu")),
        (None, "ctx_total"): value_at(job.get("ctx")),
    }
    for direction in _DIRECTIONS:
        io = job.get(direction)
        if isinstance(io, dict) and value_at(io.get("io_bytes", io.get("io_kbytes"))):
            values.update({(direction, key): v for key, v in _io(direction, io).items()})
    sync = job.get("sync")
    if isinstance(sync, dict):
        latency = _latency(sync, "lat").items()
        values.update({(None, f"fsync_{key}"): value for key, value in latency})
        values[None, "fsync_per_sec"] = _syncs_per_s(job, sync)
    return [
        Measurement(name, run, role, metric, value)
        for (role, metric), value in values.items()
        if value is not None
    ]


def _syncs_per_s(job: dict[str, Any], sync: dict[str, Any]) -> float | None:
    """Over the time in which it wrote; fio counts none unless it times them."""
    syncs, run_time_ms = value_at(sync, "total_ios"), value_at(job, "write", "runtime")
    return syncs * 1000.0 / run_time_ms if syncs and run_time_ms else None


def _io(direction: str, io: dict[str, Any]) -> dict[str, float | None]:
    bytes_per_s = value_at(io.get("bw_bytes"))
    kib_per_s = value_at(io.get("bw"))
    if bytes_per_s is None and kib_per_s is not None:
        bytes_per_s = kib_per_s * 1024.0
    run_time_ms = value_at(io.get("runtime"))
    return {
        f"{direction}_iops": value_at(io.get("iops")),
        f"{direction}_mb_per_sec": None if bytes_per_s is None else bytes_per_s / _MIB,
        "elapsed_s": None if run_time_ms is None else run_time_ms / 1000.0,
        **{f"clat_{key}": value for key, value in _latency(io, "clat").items()},
    }


def _latency(section: dict[str, Any], name: str) -> dict[str, float | None]:
    """fio-3 has ``clat_ns`` in nanoseconds, fio-2 ``clat`` in microseconds."""
    for key, per_us in ((f"{name}_ns", 1000.0), (name, 1.0)):
        latency = section.get(key)
        if not isinstance(latency, dict):
            continue
        percentiles = latency.get("percentile")
        percentiles = percentiles if isinstance(percentiles, dict) else {}
        # Without a count nothing was timed, and the zeros printed beside it mean nothing.
        if not value_at(latency.get("N")) and not any(map(value_at, percentiles.values())):
            return {}
        values = {metric: percentiles.get(text) for text, metric in _PERCENTILES.items()}
        values.update(mean_us=latency.get("mean"), max_us=latency.get("max"))
        return {
            metric: number_ / per_us
            for metric, value in values.items()
            if (number_ := value_at(value)) is not None
        }
    return {}


# ---------------------------------------------------------------- text


def _from_text(lines: list[str]) -> Parsed:
    found: list[Measurement] = []
    problems: list[str] = []
    runs: Counter[str] = Counter()
    facts: dict[str, str] = {}
    job: str | None = None
    for line in lines:
        if match := _JOB.match(line):
            job = match["name"]
            runs[job] += 1
            if int(match["error"][:9]):
                problems.append(f"fio job {job} ended with error {match['error']}")
        elif match := _VERSION.fullmatch(line):
            facts.setdefault("version", match["version"])
        elif job is not None:
            found += _text_line(line, job, runs[job])
    if job is None:
        raise OutputNotRecognisedError(
            "the text is not fio's output: it has neither JSON with jobs nor a job's summary",
            "run fio with --output-format=normal,json and check that the file is complete",
        )
    return Parsed(tuple(found), problems=tuple(problems), facts=facts)


def _text_line(line: str, job: str, run: int) -> list[Measurement]:
    if match := _IO.match(line):
        direction = match["direction"]
        values = _text_io(direction, match["rest"])
        return [Measurement(job, run, direction, key, v) for key, v in values.items()]
    if match := _CPU.match(line):
        texts = ("cpu_user_pct", "user"), ("cpu_sys_pct", "system"), ("ctx_total", "ctx")
        pairs = [(metric, number(match[group])) for metric, group in texts]
        return [Measurement(job, run, None, metric, v) for metric, v in pairs if v is not None]
    if (match := _DISK.match(line)) and (percent := number(match["percent"])) is not None:
        return [Measurement(None, run, match["name"], "device_util_pct", percent)]
    return []


def _text_io(direction: str, text: str) -> dict[str, float]:
    values: dict[str, float] = {}
    iops, bandwidth, run_time = _IOPS.search(text), _BANDWIDTH.search(text), _RUN_TIME.search(text)
    try:
        if iops:
            values[f"{direction}_iops"] = parse_count(iops["value"])
        if bandwidth:
            values[f"{direction}_mb_per_sec"] = parse_size_bytes(bandwidth["value"]) / _MIB
        if run_time:
            values["elapsed_s"] = parse_duration_s(run_time["value"] or run_time["v3"])
    except (ConfigurationError, OverflowError):
        return {}
    return values
