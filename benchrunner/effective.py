"""Did the options take? RocksDB's own OPTIONS file against the flags of the command that wrote it.

Pure. RocksDB corrects options that do not fit together without a word; this finds where it did.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from benchrunner.errors import OutputNotRecognisedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from benchrunner.model import FlagNote

_SECTION = re.compile(r"\[(?P<kind>[A-Za-z/]+)(?: \"(?P<family>.*)\")?\]")
_COMPARED = ("DBOptions", "CFOptions", "TableOptions/BlockBasedTable")
_FAMILY = "default"

RENAMED: Mapping[str, str] = {
    "checksum_type": "checksum",
    "compression_type": "compression",
    "fifo_compaction_allow_compaction": "compaction_options_fifo.allow_compaction",
    "open_files": "max_open_files",
    "subcompactions": "max_subcompactions",
    "universal_max_size_amplification_percent": (
        "compaction_options_universal.max_size_amplification_percent"
    ),
    "universal_min_merge_width": "compaction_options_universal.min_merge_width",
    "universal_size_ratio": "compaction_options_universal.size_ratio",
}
"""db_bench flag -> the option it sets, where names differ. ``a.b`` is the entry b of a={...}."""

NESTED: Mapping[str, str] = {
    "compression_level": "level",
    "compression_max_dict_bytes": "max_dict_bytes",
    "compression_parallel_threads": "parallel_threads",
    "compression_zstd_max_train_bytes": "zstd_max_train_bytes",
}
"""db_bench flag -> entry of compression_opts."""

_CODECS = {
    "none": "kNoCompression",
    "snappy": "kSnappyCompression",
    "zlib": "kZlibCompression",
    "bzip2": "kBZip2Compression",
    "lz4": "kLZ4Compression",
    "lz4hc": "kLZ4HCCompression",
    "xpress": "kXpressCompression",
    "zstd": "kZSTD",
}
_MEMTABLES = {
    "skip_list": "skiplist",
    "prefix_hash": "hashskiplist",
    "hash_linkedlist": "hashlinklist",
}
VALUES: Mapping[str, Mapping[str, str]] = {
    "blob_compression_type": _CODECS,
    "checksum_type": {
        "0": "kNoChecksum",
        "1": "kCRC32c",
        "2": "kxxHash",
        "3": "kxxHash64",
        "4": "kXXH3",
    },
    "compaction_style": {
        "0": "kCompactionStyleLevel",
        "1": "kCompactionStyleUniversal",
        "2": "kCompactionStyleFIFO",
        "3": "kCompactionStyleNone",
    },
    "compression_type": _CODECS,
    "merge_operator": {
        "put": "PutOperator",
        "put_v1": "PutOperator",
        "uint64add": "UInt64AddOperator",
    },
    "prepopulate_block_cache": {"0": "kDisable", "1": "kFlushOnly"},
}
"""Values that the file spells differently: flag -> as on the command line -> as in the file."""

ZERO_MEANS_DEFAULT = frozenset({"arena_block_size", "max_compaction_bytes", "ttl_seconds"})
"""Flags whose 0 asks RocksDB to choose: whatever it chose is what was asked."""


def compare_options(asked: Iterable[FlagNote], options_text: str) -> dict[str, list[Any]]:
    """What became of the flags that set an option.

    Args:
        asked: notes of the command; only what was given is compared, not what was dropped.
        options_text: RocksDB's OPTIONS file, as written by the run.

    Returns:
        ``matched``: flags; ``differs``: ``{"flag", "asked", "effective"}``; ``not_compared``: flags
        that set no option of the file (``num``, ``cache_size``). Plain data, to be stored.

    Raises:
        OutputNotRecognisedError: The text is not an OPTIONS file.
    """
    options = parse_options(options_text)
    matched: list[str] = []
    differs: list[dict[str, str]] = []
    not_compared: list[str] = []
    for note in asked:
        if note.given is None:
            continue
        flag, _, value = note.given.removeprefix("--").partition("=")
        effective = options.get(_option(flag))
        if effective is None or (value == "0" and flag in ZERO_MEANS_DEFAULT):
            not_compared.append(flag)
        elif same(flag, value, effective):
            matched.append(flag)
        else:
            differs.append({"flag": flag, "asked": value, "effective": effective})
    return {"matched": matched, "differs": differs, "not_compared": not_compared}


def parse_options(text: str) -> dict[str, str]:
    """Options of the database, the default column family and its table, by name.

    Entries of ``compression_opts={level=1;...}`` are there as ``compression_opts.level`` too.

    Raises:
        OutputNotRecognisedError: There is no ``[DBOptions]`` section.
    """
    options: dict[str, str] = {}
    section, seen = "", set()
    for line in text.splitlines():
        stripped = line.strip()
        header = _SECTION.fullmatch(stripped)
        if header is not None:
            ours = header["family"] in (None, _FAMILY)
            section = header["kind"] if ours else ""
            seen.add(section)
        elif section in _COMPARED and "=" in stripped and not stripped.startswith("#"):
            name, _, value = stripped.partition("=")
            options |= {name: value, **_entries(name, value)}
    if "DBOptions" not in seen:
        raise OutputNotRecognisedError(
            "the text is not a RocksDB OPTIONS file: it has no [DBOptions]",
            "look at the OPTIONS-* file of the run",
        )
    return options


def same(flag: str, asked: str, effective: str) -> bool:
    """Whether an option has the value that its flag asked for, however it is spelled.

    >>> same("compression_type", "zstd", "kZSTD"), same("block_size", "8192", "4096")
    (True, False)
    """
    if flag == "bloom_bits":
        return _same_filter(asked, effective)
    if flag == "memtablerep":
        return _same_memtable(asked, effective)
    spelled = VALUES.get(flag, {}).get(asked.casefold(), asked)
    return _plain(spelled) == _plain(effective)


def _option(flag: str) -> str:
    if flag in NESTED:
        return f"compression_opts.{NESTED[flag]}"
    special = {"bloom_bits": "filter_policy", "memtablerep": "memtable_factory"}
    return RENAMED.get(flag) or special.get(flag) or flag


def _entries(name: str, value: str) -> dict[str, str]:
    if not (value.startswith("{") and value.endswith("}")):
        return {}
    pairs = (part.partition("=") for part in value[1:-1].split(";") if "=" in part)
    return {f"{name}.{key}": entry for key, _, entry in pairs}


def _plain(text: str) -> float | str:
    """A number where the text is one: ``8`` and ``8.000000``, ``true`` and ``1`` are the same."""
    truth = {"true": 1.0, "false": 0.0}.get(text)
    if truth is not None:
        return truth
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def _same_filter(asked: str, effective: str) -> bool:
    """``bloomfilter:10:false``, ``rocksdb.BuiltinBloomFilter`` (before 7), ``nullptr`` for none."""
    bits = float(asked)
    if bits <= 0:
        return effective in ("nullptr", "")
    found = re.search(r":(?P<bits>\d+(?:\.\d+)?)", effective)
    return effective.startswith("rocksdb.") or (found is not None and float(found["bits"]) == bits)


def _same_memtable(asked: str, effective: str) -> bool:
    """``SkipListFactory``, ``skip_list``, ``{id=VectorRepFactory;count=0;}``."""
    wanted = _MEMTABLES.get(asked, asked)
    return wanted in effective.casefold().replace("_", "")
