"""RocksDB's ``stats`` dump: its lines in, database-level measurements out.

Columns are found by their titles, because RocksDB has inserted columns twice (6.19, 10.3). What
RocksDB prints for a quotient whose divisor is zero (6.11.4: W-Amp 34568389.0, 7.2.2: 0.0) is left
out. GB and MB are RocksDB's: 2^30 and 2^20 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping  # noqa: TC003 (module-level tables are typed so)

from benchrunner.errors import ConfigurationError
from benchrunner.parse.figure import MAX_RELATIVE_ERROR, Figure, best, number, printed, sharp
from benchrunner.units import parse_duration_s, parse_size_bytes

_MB_PER_GB = 1024.0
_UNITS: Mapping[str, float] = {"K": 1e3, "M": 1e6, "G": 1e9}
"""Of counts that RocksDB cuts: 26354 writes are ``26K``."""
_FAMILY = re.compile(r"\*\* Compaction Stats \[(?P<name>.*)\] \*\*$")
_COMPACTION = re.compile(
    r"Cumulative compaction: (?P<write_gb>\S+) GB write, (?P<write_rate>\S+) MB/s write, "
    r"(?P<read_gb>\S+) GB read, (?P<read_rate>\S+) MB/s read, (?P<seconds>\S+) seconds"
)
_WRITES = re.compile(
    r"Cumulative writes: (?P<writes>\S+) writes, (?P<keys>\S+) keys, "
    r".*ingest: (?P<gb>\S+) GB, (?P<rate>\S+) MB/s"
)
_WAL = re.compile(
    r"Cumulative WAL: \S+ writes, (?P<syncs>\S+) syncs, (?P<per_sync>\S+) writes per sync, "
    r".*written: (?P<gb>\S+) GB, "
)
_STALL = re.compile(r"Cumulative stall: (?P<clock>[\d:.]+) H:M:S, (?P<percent>\S+) percent")
_UPTIME = re.compile(r"Uptime\(secs\): (?P<total>\S+) total")
_CUMULATIVE_GB = re.compile(r"(?:Flush|AddFile)\(GB\): cumulative (?P<gb>[\d.]+),")
_STALLS_TO_8_0 = re.compile(r"(?P<count>\d+) (?P<reason>[a-z][a-z0-9_ ]*?),")
_STALLS_FROM_8_1 = re.compile(r"total-(?:delays|stops): (?P<count>\d+)")


class StatsDump:
    """One dump: ``add`` its lines, then ask for its ``values``."""

    def __init__(self) -> None:
        self.families: set[str] = set()
        self.ended = False
        """Whether its last line of interest was read: a table that follows is of another dump."""
        self._lines: list[str] = []
        self._columns: list[str] = []
        self._rows: dict[str, dict[str, str]] = {}
        self._compaction: dict[str, str] = {}
        self._writes: dict[str, str] = {}
        self._wal: dict[str, str] = {}
        self._flush_gb: str | None = None
        self._add_file_gb: str | None = None
        self._uptimes: list[str] = []
        self._values: dict[str, float] = {}
        self._stalls: float | None = None

    # ------------------------------------------------------------ lines

    def add(self, line: str) -> None:
        """Keep a line. It is read when the values are asked for: of most dumps nobody asks."""
        self._lines.append(line)
        if line.startswith("Cumulative stall: "):
            self.ended = True

    def family(self, line: str) -> None:
        """``** Compaction Stats [default] **``, once for levels and once for priorities."""
        if match := _FAMILY.match(line):
            self.families.add(match["name"])

    def _read(self) -> None:
        lines, self._lines = self._lines, []
        for line in lines:
            if line.startswith(("Level ", "Priority ")):
                # Titles of the level table; the priority table is not wanted.
                self._columns = line.split() if line.startswith("Level ") else []
            elif line.startswith(" "):
                self._row(line)
            elif take := _TAKERS.get(line.partition(":")[0]):
                take(self, line)

    def _row(self, line: str) -> None:
        """A level's row: cells by title. ``Size`` is a number and a unit."""
        cells = line.split()
        size = self._columns.index("Size") if "Size" in self._columns else -1
        if size < 0 or len(cells) != len(self._columns) + 1:
            return
        cells[size : size + 2] = [f"{cells[size]} {cells[size + 1]}"]
        self._rows[cells[0]] = dict(zip(self._columns, cells, strict=True))

    def take_uptime(self, line: str) -> None:
        """``Uptime(secs): 2.0 total, 1.0 interval``."""
        if match := _UPTIME.match(line):
            self._uptimes.append(match["total"])

    def take_flush(self, line: str) -> None:
        """``Flush(GB): cumulative 0.096, interval 0.046``."""
        if match := _CUMULATIVE_GB.match(line):
            self._flush_gb = match["gb"]

    def take_add_file(self, line: str) -> None:
        """``AddFile(GB): cumulative 0.000, interval 0.000``."""
        if match := _CUMULATIVE_GB.match(line):
            self._add_file_gb = match["gb"]

    def take_compaction(self, line: str) -> None:
        """``Cumulative compaction: 0.36 GB write, 181.22 MB/s write, ...``."""
        if match := _COMPACTION.match(line):
            self._compaction = match.groupdict()

    def take_writes(self, line: str) -> None:
        """``Cumulative writes: ... ingest: 0.10 GB, 52.85 MB/s``: what the user wrote."""
        if match := _WRITES.match(line):
            self._writes = match.groupdict()

    def take_wal(self, line: str) -> None:
        """``Cumulative WAL: ... written: 0.10 GB, 52.85 MB/s``."""
        if match := _WAL.match(line):
            self._wal = match.groupdict()
            self._set("wal_gb", number(match["gb"]))

    def take_stall(self, line: str) -> None:
        """``Cumulative stall: 00:00:1.234 H:M:S, 60.8 percent``."""
        if match := _STALL.match(line):
            self._set("stall_time_s", _seconds(match["clock"]))
            self._set("stall_pct", number(match["percent"]))
            # The column family's uptime comes first, the database's right above this line.
            self._set("uptime_s", number(self._uptimes[-1]) if self._uptimes else None)

    def take_stalls(self, line: str) -> None:
        """Up to 8.0: the ``_with_compaction`` counts repeat part of the plain ones."""
        counts = [
            float(match["count"])
            for match in _STALLS_TO_8_0.finditer(line)
            if not match["reason"].endswith("_with_compaction")
        ]
        if counts:
            self._stalls = sum(counts)

    def take_write_stall(self, line: str) -> None:
        """From 8.1: totals are printed. The database's own line, without totals, is not these."""
        counts = [float(match["count"]) for match in _STALLS_FROM_8_1.finditer(line)]
        if counts:
            self._stalls = sum(counts)

    # ------------------------------------------------------------ values

    def values(self) -> dict[str, float]:
        """Metric id -> value. Nothing of a quotient unless every part of it was printed."""
        self._read()
        if len(self.families) > 1:
            # Each family has its own table; no sum over them is printed, so none is made up.
            return dict(self._values)
        self._size()
        self._set("write_count", _write_count(self._writes, self._wal))
        self._set("stall_count", self._stalls)
        self._set("flush_gb", number(self._flush_gb))
        self._set("addfile_gb", number(self._add_file_gb))
        self._set("ingest_gb", number(self._writes.get("gb")))
        if self._compaction:
            written = self._written_gb()
            self._amounts(written)
            self._amplification(written)
        return dict(self._values)

    def _size(self) -> None:
        size = self._rows.get("Sum", {}).get("Size")
        if size is not None:
            self._set("lsm_size_bytes", _bytes(size))

    def _amounts(self, written: Figure | None) -> None:
        self._set("compaction_write_mb_per_sec", number(self._compaction["write_rate"]))
        self._set("compaction_read_mb_per_sec", number(self._compaction["read_rate"]))
        if written is not None:
            self._set("compaction_write_gb", written.value)
        self._set("compaction_read_gb", number(self._compaction["read_gb"]))

    def _amplification(self, written: Figure | None) -> None:
        """The W-Amp family. RocksDB divides by bytes flushed plus ingested as files.

        0.000 GB of both may be nothing at all, and then the printed quotient has no meaning.
        """
        flushed, added = printed(self._flush_gb), printed(self._add_file_gb)
        if flushed and added and flushed.value + added.value > 0:
            amplification = number(self._rows.get("Sum", {}).get("W-Amp"))
            self._set("w_amp_lsm", amplification or None)
            self._set("w_amp_sum_over_l0", _quotient(self._row_gb("Sum"), self._row_gb("L0")))
        # Both rates are over the same uptime, which cancels: sharper than the printed GB.
        rate, user_rate = (
            printed(self._compaction["write_rate"]),
            printed(self._writes.get("rate")),
        )
        if rate and user_rate and user_rate.value > 0 and rate.value > 0:
            self._set("w_amp_user", _quotient(rate, user_rate))
        user = self._ingest_gb()
        if written and flushed and user and written.value > 0:
            self._set("w_amp_compaction_plus_flush", _quotient(written + flushed, user))

    def _row_gb(self, name: str) -> Figure | None:
        """A row's written bytes: the Write column, or its rate times its seconds if sharper.

        The rate includes blob files, the column does not; with blobs only the column counts.
        """
        row = self._rows.get(name, {})
        column = printed(row.get("Write(GB)"))
        rate, seconds = printed(row.get("Wr(MB/s)")), printed(row.get("Comp(sec)"))
        if rate is None or seconds is None or number(row.get("Wblob(GB)", "0.0")) != 0:
            return column
        return best(column, (rate * seconds).scaled(1 / _MB_PER_GB))

    def _written_gb(self) -> Figure | None:
        """Bytes that flush and compaction wrote, from the sharpest of three prints."""
        return best(
            printed(self._compaction["write_gb"]),
            self._over_uptime(self._compaction["write_rate"]),
            self._row_gb("Sum") if "Sum" in self._rows else None,
        )

    def _ingest_gb(self) -> Figure | None:
        return best(
            printed(self._writes.get("gb")),
            self._over_uptime(self._writes.get("rate")),
        )

    def _over_uptime(self, rate_text: str | None) -> Figure | None:
        # Always the column family's, which precedes the rates: a cut log must not change a value.
        rate, uptime = printed(rate_text), printed(self._uptimes[0]) if self._uptimes else None
        return (rate * uptime).scaled(1 / _MB_PER_GB) if rate and uptime else None

    def _set(self, metric: str, value: float | None) -> None:
        if value is not None:
            self._values[metric] = value


_TAKERS: dict[str, Callable[[StatsDump, str], None]] = {
    "Uptime(secs)": StatsDump.take_uptime,
    "Flush(GB)": StatsDump.take_flush,
    "AddFile(GB)": StatsDump.take_add_file,
    "Cumulative compaction": StatsDump.take_compaction,
    "Cumulative writes": StatsDump.take_writes,
    "Cumulative WAL": StatsDump.take_wal,
    "Cumulative stall": StatsDump.take_stall,
    "Stalls(count)": StatsDump.take_stalls,
    "Write Stall (count)": StatsDump.take_write_stall,
}


def _write_count(writes: Mapping[str, str], wal: Mapping[str, str]) -> float | None:
    """Writes since the database was opened, exact where that was printed.

    The count itself is cut to thousands or millions. Without any sync the writes per sync are all
    writes that went into the log: of as many as the count says, they are the exact number. Writes
    without a log are not counted: then there are keys of no writes.
    """
    if not writes or not wal or (writes["writes"] == "0" and writes["keys"] != "0"):
        return None
    rounded = writes["writes"]
    unit = _UNITS.get(rounded[-1:], 1.0)
    least = number(rounded.rstrip("KMG"))
    if least is None:
        return None
    least *= unit
    exact = number(wal["per_sync"]) if wal["syncs"] == "0" else None
    if exact is not None and least <= exact < least + unit:
        return exact
    return least if unit == 1.0 or unit <= MAX_RELATIVE_ERROR * least else None


def _quotient(numerator: Figure | None, divisor: Figure | None) -> float | None:
    if numerator is None or divisor is None:
        return None
    return sharp(numerator.over(divisor))


def _seconds(text: str) -> float | None:
    try:
        return parse_duration_s(text)
    except ConfigurationError:
        return None


def _bytes(text: str) -> float | None:
    try:
        return float(parse_size_bytes(text))
    except ConfigurationError:
        return None
