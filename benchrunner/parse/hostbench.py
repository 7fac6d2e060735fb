"""hostbench's JSON document (native/hostbench). Pure: a phase is a benchmark, by its full name.

Its keys are metric ids. Each value is the median of the benchmark's repetitions; they themselves
stay in the raw output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchrunner.errors import OutputNotRecognisedError
from benchrunner.model import Measurement, Parsed
from benchrunner.parse.json_text import find_document, read_whole, records_at, value_at

if TYPE_CHECKING:
    from benchrunner.parse.text import Text

PARSER_VERSION = 1
METRICS = (
    "latency_ns",
    "latency_cycles",
    "bandwidth_mb_per_sec",
    "ns_per_op",
    "hash_mb_per_sec",
    "spread_pct",
    "block_bytes",
    "clock_ghz",
    "huge_page_pct",
)


def parse_hostbench(stdout: Text, stderr: Text = ()) -> Parsed:
    """What hostbench measured. A benchmark that it skipped is a fact with its reason.

    Raises:
        OutputNotRecognisedError: there is no complete document.
    """
    lines, rest = read_whole(stdout)
    document = find_document("\n".join([*lines, rest]), "hostbench", str)
    if document is None:
        complaint = next((line for line in read_whole(stderr)[0] if line.startswith("host")), "")
        raise OutputNotRecognisedError(
            complaint or "the text has no complete JSON document of hostbench",
            "run hostbench with --json and let it end",
        )
    measurements: list[Measurement] = []
    facts = {"version": str(document["hostbench"])}
    for one in records_at(document, "benchmarks"):
        name = str(one.get("name"))
        if isinstance(one.get("skipped"), str):
            facts[f"skipped {name}"] = one["skipped"]
        measurements += [
            Measurement(name, 1, None, metric, value)
            for metric in METRICS
            if (value := value_at(one, metric)) is not None
        ]
    settings = document.get("settings")
    compiler = settings.get("compiler") if isinstance(settings, dict) else None
    if isinstance(compiler, str):
        facts["compiler"] = compiler
    return Parsed(tuple(measurements), facts=facts)
