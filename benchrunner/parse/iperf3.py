"""iperf3's output, as JSON or as the text that iperf 2 and 3 print. Pure.

The rate is that of what arrived; the sender's own is kept beside it. Blocks sent per second are its
operations.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from benchrunner.errors import ConfigurationError, OutputNotRecognisedError
from benchrunner.model import Measurement, Parsed
from benchrunner.parse.figure import number
from benchrunner.parse.json_text import find_document, read_whole, value_at
from benchrunner.units import parse_bits_per_s

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchrunner.parse.text import Text

PARSER_VERSION = 1
_GIGA = 1e9
_SUMMARY = re.compile(
    r"\[(?P<id>SUM|\s*\d+)\]\s+[\d.]+-\s*(?P<end>[\d.]+)\s+sec\s+[\d.]+ [KMGT]?Bytes\s+"
    r"(?P<rate>[\d.]+ [KMGT]?bits/sec)\s*(?P<retries>\d+)?\s+(?P<side>sender|receiver)\s*$"
)
_STREAM = re.compile(r"\[\s*(?P<id>\d+)\] local .* connected ")
_ERROR = re.compile(r"iperf3?: (?P<text>error - .*)")


def parse_iperf3(stdout: Text, stderr: Text = ()) -> Parsed:
    """What iperf3 measured, from its JSON if there is any, else from its summary lines.

    Raises:
        OutputNotRecognisedError: neither is in the text, and no error either.
    """
    lines, rest = read_whole(stdout)
    document = find_document("\n".join([*lines, rest]), "end", dict)
    if document is not None:
        return _from_json(document)
    complaints = [
        m["text"] for line in (*lines, *read_whole(stderr)[0]) if (m := _ERROR.match(line))
    ]
    values = _from_text(lines)
    if not values and not complaints:
        raise OutputNotRecognisedError(
            "the text is not iperf3's output: it has neither its JSON nor a summary line",
            "run iperf3 with --json and check that the file is complete",
        )
    return Parsed(_measured(values), problems=tuple(f"iperf3 reports: {c}" for c in complaints[:1]))


def _measured(values: Mapping[str, float | None]) -> tuple[Measurement, ...]:
    return tuple(
        Measurement(None, 1, None, metric, value)
        for metric, value in values.items()
        if value is not None
    )


def _from_json(document: dict[str, Any]) -> Parsed:
    end, start = document["end"], document.get("start")
    # UDP has one sum of both sides, and older versions have only that.
    received = "sum_received" if "sum_received" in end else "sum"
    sent = "sum_sent" if "sum_sent" in end else "sum"
    values = {
        "network_gbit_per_sec": value_at(end, received, "bits_per_second"),
        "network_sent_gbit_per_sec": value_at(end, sent, "bits_per_second"),
    }
    scaled = {name: None if rate is None else rate / _GIGA for name, rate in values.items()}
    scaled["ops_per_sec"] = _blocks_per_s(end, sent, value_at(start, "test_start", "blksize"))
    scaled["elapsed_s"] = value_at(end, sent, "seconds")
    scaled["tcp_retransmits"] = value_at(end, sent, "retransmits")
    problems = []
    if isinstance(document.get("error"), str):
        problems.append(f"iperf3 reports: {document['error']}")
    elif values["network_gbit_per_sec"] is None:
        problems.append("iperf3's JSON has no sum of what was received")
    version = start.get("version") if isinstance(start, dict) else None
    facts = {"version": version} if isinstance(version, str) else {}
    return Parsed(_measured(scaled), problems=tuple(problems), facts=facts)


def _blocks_per_s(end: dict[str, Any], key: str, block_bytes: float | None) -> float | None:
    sent_bytes, seconds = value_at(end, key, "bytes"), value_at(end, key, "seconds")
    if sent_bytes is None or not seconds or not block_bytes:
        return None
    return sent_bytes / block_bytes / seconds


def _rate(text: str) -> float | None:
    try:
        return number(repr(parse_bits_per_s(text) / _GIGA))
    except ConfigurationError:
        return None


def _from_text(lines: list[str]) -> dict[str, float | None]:
    """The summary of each side; of several streams only their sum counts."""
    values: dict[str, float | None] = {}
    streams = {stream["id"] for line in lines if (stream := _STREAM.match(line))}
    for line in lines:
        match = _SUMMARY.match(line)
        if match is None or (len(streams) > 1 and match["id"] != "SUM"):
            continue
        rate = _rate(match["rate"])
        if rate is None:
            continue
        if match["side"] == "receiver":
            values["network_gbit_per_sec"] = rate
            continue
        values["network_sent_gbit_per_sec"] = rate
        values["elapsed_s"] = number(match["end"])
        values["tcp_retransmits"] = number(match["retries"])
    return values
