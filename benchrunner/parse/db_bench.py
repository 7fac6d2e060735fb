"""RocksDB's db_bench, every version from 6.10 to 11.8: its output in, what it measured out.

Pure and streaming. Lines are recognised by what they say, never by where they stand, so the two
streams may come apart or as one log. The only error it raises is OutputNotRecognisedError.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchrunner.errors import OutputNotRecognisedError
from benchrunner.model import Measurement, Parsed, Taint
from benchrunner.parse.compaction import StatsDump
from benchrunner.parse.histogram import HistogramReader, by_role, principal_operation
from benchrunner.parse.interval import ThroughputSeries
from benchrunner.parse.result_line import Result, Summary, parse_result, parse_summary
from benchrunner.parse.text import Lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchrunner.parse.text import Text

PARSER_VERSION = 4
WARM_UP = "warm-up"
INTERVAL = "interval"
"""Role of database figures from a dump printed while a phase was still running.

It lacks up to one interval of the run, so it never stands for the ``stats`` at the end. ``run`` is
the number of the phase among those that printed interval lines.
"""
MAX_ERRORS_KEPT = 3

_FACT = re.compile(
    r"(?P<name>RocksDB|Engine|Driver|Date|CPU|CPUCache|Keys|Values|Entries|Prefix|Compression|Memtablerep"
    r"|Compression manager|entries_per_batch|Write rate):?(?: =)? +(?P<text>\S.*)"
)
_SEED = re.compile(r"Set seed to (?P<seed>\d+) because")
_PAGES = re.compile(r"sqlite: pages (?P<pages>\d{1,15}), page size (?P<bytes>\d{1,9})$")
_WARM_UP = re.compile(r"Warming up benchmark by running (?P<times>\d{1,9}) times")
_SKIPPED = re.compile(r"(?P<phase>\S+)\s*: skipped \((?P<reason>.*)\)")
_ERROR = re.compile(
    r"(?:[a-z]+(?: or [a-z]+)?|Iterator|Put|Commit) error: |(?:Multi)?Get returned an error: "
    r"|Unexpected error: |Operation failed: |Flush failed: |unknown benchmark '"
    r"|ERROR: (?:unknown command line flag|something wrong with flag|illegal value)"
)
_COMPRESSION = re.compile(r"compression (?:is not (?:enabled|available|effective)|test run fail)")
_REPLACED = re.compile(r"using \S+ compression in place of ")


def parse_db_bench(stdout: Text, stderr: Text = ()) -> Parsed:
    """Everything db_bench says in its two streams; one log with both in it goes into ``stdout``.

    Measurements of a phase carry its name; those of the database (from ``stats``) have phase
    ``None`` and the number of the dump as ``run``.

    Raises:
        OutputNotRecognisedError: nothing in the text is db_bench's.
    """
    log = _Log()
    _Stream(log).read(stdout)
    # Dumps on a stderr of its own are interval dumps; nothing there says when a phase ends.
    _Stream(log).read(stderr, keep_last_interval=True)
    return log.parsed()


_TWO_PARTS = "readwhilewriting"
_WITHOUT_OPERATIONS = frozenset({"compact", "compact0", "compact1", "flush", "waitforcompaction"})
"""Benchmarks that have a result line and never print interval lines."""


@dataclass(slots=True)
class _Phase:
    result: Result
    run: int
    warm_up: bool
    histograms: HistogramReader = field(default_factory=HistogramReader)

    def measurements(self) -> list[Measurement]:
        role = WARM_UP if self.warm_up else None
        found = self._under(role, self.result.values)
        histograms = self.histograms.histograms
        if self.warm_up:
            principal = principal_operation(self.result.phase)
            wanted = [(role, each) for each in histograms if each.operation == principal]
        else:
            wanted = [*by_role(self.result.phase, histograms)]
        for histogram_role, histogram in wanted:
            found += self._under(histogram_role, histogram.values)
        return found

    def _under(self, role: str | None, values: dict[str, float]) -> list[Measurement]:
        phase = self.result.phase
        return [Measurement(phase, self.run, role, metric, v) for metric, v in values.items()]


@dataclass(slots=True)
class _Log:
    """What was understood so far, from both streams."""

    phases: list[_Phase] = field(default_factory=list)
    runs: Counter[tuple[str, bool]] = field(default_factory=Counter)
    summaries: list[tuple[Summary, int]] = field(default_factory=list)
    dumps: list[StatsDump] = field(default_factory=list)
    intervals: dict[int, StatsDump] = field(default_factory=dict)
    throughput: ThroughputSeries = field(default_factory=ThroughputSeries)
    facts: dict[str, str] = field(default_factory=dict)
    taints: dict[str, Taint] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    error_count: int = 0
    databases: int = 0
    file_size_bytes: float | None = None
    """Of SQLite's file, as our own driver's ``stats`` states it."""

    def parsed(self) -> Parsed:
        names = [p.result.phase for p in self.phases if p.result.phase not in _WITHOUT_OPERATIONS]
        series = self.throughput.series(names)
        known_header = {"version", "engine"} & self.facts.keys() or {
            "keys",
            "entries",
        } <= self.facts.keys()
        if not (self.phases or self.dumps or self.intervals or known_header or self.errors):
            raise OutputNotRecognisedError(
                "the text is not db_bench's output: it has no result line (name : N micros/op), "
                "no RocksDB header and no statistics",
                "check that the file is complete and that the tool's name is right",
            )
        unique = {found[:4]: found for found in map(self._by_part, self._measurements())}
        return Parsed(
            measurements=tuple(unique.values()),
            taints=tuple(self.taints.values()),
            problems=tuple(self._problems()),
            series=series,
            facts=self.facts,
        )

    def _by_part(self, found: Measurement) -> Measurement:
        """Our own driver names the two parts of readwhilewriting; they become roles of it."""
        if "engine" not in self.facts or not (found.phase or "").startswith(_TWO_PARTS):
            return found
        if found.phase == _TWO_PARTS:
            return found._replace(role=found.role or "reader")
        return found._replace(phase=_TWO_PARTS, role="writer")

    def _measurements(self) -> list[Measurement]:
        found: list[Measurement] = []
        for phase in self.phases:
            found += phase.measurements()
        for summary, run in self.summaries:
            found += [
                Measurement(summary.phase, run, summary.role, metric, value)
                for metric, value in summary.values.items()
            ]
        if self.file_size_bytes is not None:
            found.append(Measurement(None, 1, None, "file_size_bytes", self.file_size_bytes))
        # With several databases every figure is of one of them, and the output does not sum them.
        if self.databases <= 1:
            for run, dump in enumerate(self.dumps, start=1):
                found += _database(run, None, dump)
            for run, dump in self.intervals.items():
                found += _database(run, INTERVAL, dump)
        return found

    def _problems(self) -> list[str]:
        problems = [
            f"{phase} was skipped by db_bench: {reason}" for phase, reason in self.skipped.items()
        ]
        if self.errors:
            problems.append(f"db_bench reports {self.error_count} error(s): {self.errors[0]}")
        elif not self.phases and not self.dumps:
            problems.append("no benchmark finished: there is no result line (... micros/op ...)")
        return problems


def _database(run: int, role: str | None, dump: StatsDump) -> list[Measurement]:
    return [Measurement(None, run, role, metric, value) for metric, value in dump.values().items()]


class _Stream:
    """One pass over one stream: the lines' dispatcher and the state that belongs to their order."""

    def __init__(self, log: _Log) -> None:
        self._log = log
        self._phase: _Phase | None = None
        self._dump: StatsDump | None = None
        self._pending: StatsDump | None = None
        self._running = False
        self._warm_ups = 0
        self._handlers = self._table()

    def read(self, text: Text, *, keep_last_interval: bool = False) -> None:
        """All lines; of an unterminated last line only values that stand before their unit."""
        lines = Lines(text)
        handlers = self._handlers
        other = self._other
        for batch in lines.batches():
            for line in batch:
                handler = handlers.get(line[:5])
                if handler is not None:
                    handler(line)
                elif line and line[0] not in "([-. ":
                    other(line)
        if result := parse_result(lines.rest):
            self._result(result)
        if keep_last_interval:
            self._commit_interval()

    def _table(self) -> dict[str, Callable[[str], None]]:
        """First five characters -> what to do with the line. All other lines are ``_other``."""
        facts = ("Rocks", "Date:", "CPU: ", "CPUCa", "Keys:", "Value", "Entri", "Prefi", "entri")
        dump = ("Uptim", "Flush", "AddFi", "Cumul", "Stall", "Write", "Level", "Prior")
        return {
            **dict.fromkeys((*facts, "Compr", "Memta", "Engin", "Drive"), self._fact),
            **dict.fromkeys((*dump, "  L0 ", " Sum "), self._dump_line),
            "Set s": self._seed,
            "sqlit": self._pages,
            "WARNI": self._warning,
            "Warmi": self._warm_up,
            "==== ": self._database,
            "Micro": self._title,
            "Count": self._count,
            "Min: ": self._range,
            "Perce": self._percentiles,
            "** Co": self._family,
        }

    # ------------------------------------------------------------ phases

    def _other(self, line: str) -> None:
        if " micros/op" in line:
            if result := parse_result(line):
                self._result(result)
        elif "... thread " in line:
            if self._log.throughput.add(line):
                self._running = True
        elif " runs] : " in line:
            self._summary(line)
        elif ": skipped (" in line and (match := _SKIPPED.match(line)):
            self._log.skipped[match["phase"]] = match["reason"]
        elif _ERROR.match(line):
            self._error(line)

    def _result(self, result: Result) -> None:
        log = self._log
        warm_up = self._warm_ups > 0
        self._warm_ups -= warm_up
        log.runs[result.phase, warm_up] += 1
        self._phase = _Phase(result, log.runs[result.phase, warm_up], warm_up)
        log.phases.append(self._phase)
        self._commit_interval()
        self._dump = None
        self._running = False

    def _summary(self, line: str) -> None:
        if summary := parse_summary(line):
            self._log.summaries.append((summary, self._log.runs[summary.phase, False]))

    def _warm_up(self, line: str) -> None:
        if match := _WARM_UP.match(line):
            self._warm_ups = int(match["times"])

    def _error(self, line: str) -> None:
        self._log.error_count += 1
        if len(self._log.errors) < MAX_ERRORS_KEPT:
            self._log.errors.append(line.strip())

    def _title(self, line: str) -> None:
        if self._phase is not None:
            self._phase.histograms.title(line)

    def _count(self, line: str) -> None:
        if self._phase is not None:
            self._phase.histograms.count(line)

    def _range(self, line: str) -> None:
        if self._phase is not None:
            self._phase.histograms.range(line)

    def _percentiles(self, line: str) -> None:
        if self._phase is not None:
            self._phase.histograms.percentiles(line)

    # ------------------------------------------------------------ statistics

    def _family(self, line: str) -> None:
        """A table begins: of the open dump, or of a new one."""
        if self._phase is not None:
            self._phase.histograms.close()
        if self._dump is None or self._dump.ended:
            self._dump = StatsDump()
            if self._running:
                self._pending = self._dump
            else:
                self._log.dumps.append(self._dump)
        self._dump.family(line)

    def _dump_line(self, line: str) -> None:
        if self._dump is not None:
            self._dump.add(line)
        elif line.startswith("Write rate"):
            self._fact(line)
        elif _ERROR.match(line):
            self._error(line)

    def _commit_interval(self) -> None:
        """The running phase has ended: its last interval dump is what it will be."""
        if self._pending is not None:
            self._log.intervals[self._log.throughput.phase_count] = self._pending
            self._pending = None

    def _database(self, line: str) -> None:
        self._log.databases += line.startswith("==== DB: ")

    # ------------------------------------------------------------ header

    def _fact(self, line: str) -> None:
        if match := _FACT.match(line):
            name = match["name"].lower().replace(" ", "_")
            text = match["text"].strip()
            if name == "rocksdb":
                name, text = "version", text.removeprefix("version ")
            self._log.facts.setdefault(name, text)

    def _seed(self, line: str) -> None:
        if match := _SEED.match(line):
            self._log.facts["seed"] = match["seed"]

    def _pages(self, line: str) -> None:
        if match := _PAGES.match(line):
            self._log.file_size_bytes = float(int(match["pages"]) * int(match["bytes"]))

    def _warning(self, line: str) -> None:
        taint = _taint(line.strip())
        if taint is not None:
            self._log.taints.setdefault(taint.name, taint)


def _taint(line: str) -> Taint | None:
    if "Assertions are enabled" in line:
        return Taint(
            "assertions-enabled", line, "build with DEBUG_LEVEL=0 (-DNDEBUG) and run again"
        )
    if "Optimization is disabled" in line:
        return Taint("optimization-disabled", line, "build with DEBUG_LEVEL=0 (-O2) and run again")
    if _COMPRESSION.search(line) or _REPLACED.search(line):
        remedy = "install the compression library's development package, rebuild and run again"
        return Taint("compression-missing", line, remedy)
    return None
