from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from benchrunner.effective import compare_options, parse_options, same
from benchrunner.errors import OutputNotRecognisedError
from benchrunner.model import FlagNote

CASES = Path(__file__).parent / "cases" / "options"
DIRECT = (CASES / "db_bench-7.8.3-direct.ini").read_text()


def notes(**flags: str) -> list[FlagNote]:
    return [FlagNote(flag, value, f"--{flag}={value}", "given") for flag, value in flags.items()]


def test_what_rocksdb_corrected_is_found() -> None:
    found = compare_options(
        notes(
            compression_type="zstd",
            compaction_readahead_size="0",
            level0_stop_writes_trigger="10",
            level0_slowdown_writes_trigger="20",
            max_bytes_for_level_multiplier="8",
            bloom_bits="10",
            open_files="-1",
            subcompactions="4",
            checksum_type="1",
            compaction_style="0",
            prepopulate_block_cache="0",
            compression_max_dict_bytes="0",
            merge_operator="put",
            memtablerep="skip_list",
            use_direct_reads="true",
            cache_size="16777216",
            num="2000",
        ),
        DIRECT,
    )

    assert found["differs"] == [
        {"flag": "compaction_readahead_size", "asked": "0", "effective": "2097152"},
        {"flag": "level0_stop_writes_trigger", "asked": "10", "effective": "20"},
    ]
    assert found["not_compared"] == ["cache_size", "num"]
    assert len(found["matched"]) == 13


def test_what_was_dropped_or_translated_is_compared_as_given() -> None:
    found = compare_options(
        [
            FlagNote("gone", "1", None, "dropped", "7.0 does not know it"),
            FlagNote("old", "1", "--num_levels=6", "translated", "renamed"),
        ],
        DIRECT,
    )

    assert found == {"matched": ["num_levels"], "differs": [], "not_compared": []}


def test_a_zero_that_leaves_the_choice_to_rocksdb_is_not_compared() -> None:
    assert compare_options(notes(arena_block_size="0"), DIRECT)["not_compared"] == [
        "arena_block_size"
    ]


@pytest.mark.parametrize(
    ("flag", "asked", "effective", "equal"),
    [
        ("bloom_bits", "10", "bloomfilter:10:false", True),
        ("bloom_bits", "12", "bloomfilter:10:false", False),
        ("bloom_bits", "0", "nullptr", True),
        ("bloom_bits", "10", "nullptr", False),
        ("bloom_bits", "10", "rocksdb.BuiltinBloomFilter", True),
        ("memtablerep", "vector", "{id=VectorRepFactory;count=0;}", True),
        ("memtablerep", "skip_list", "SkipListFactory", True),
        ("memtablerep", "skip_list", "VectorRepFactory", False),
        ("memtablerep", "hash_linkedlist", "HashLinkListRepFactory", True),
        ("compression_type", "none", "kNoCompression", True),
        ("compression_type", "lz4", "kZSTD", False),
        ("use_direct_reads", "1", "true", True),
        ("wal_dir", "/a", "/a", True),
    ],
)
def test_values_are_the_same_however_they_are_spelled(
    flag: str, asked: str, effective: str, equal: bool
) -> None:
    assert same(flag, asked, effective) is equal


def test_only_the_default_column_family_counts() -> None:
    text = (
        '[DBOptions]\n  a=1\n# a=3\n[CFOptions "other"]\n  a=2\n[CFOptions "default"]\n  b={c=4;}\n'
    )

    assert parse_options(text) == {"a": "1", "b": "{c=4;}", "b.c": "4"}


def test_another_text_is_not_an_options_file() -> None:
    with pytest.raises(OutputNotRecognisedError, match=r"it has no \[DBOptions\]"):
        parse_options("a = 1")


@pytest.mark.native
@pytest.mark.skipif(shutil.which("db_bench") is None, reason="needs db_bench (rocksdb-tools)")
def test_a_file_just_written_is_understood(tmp_path: Path) -> None:
    asked = notes(
        num="1000",
        seed="1",
        compression_type="none",
        write_buffer_size="1048576",
        block_size="4096",
        num_levels="5",
        cache_index_and_filter_blocks="true",
        level0_stop_writes_trigger="10",
    )
    command = [
        "db_bench",
        "--benchmarks=fillseq",
        f"--db={tmp_path}",
        *(n.given or "" for n in asked),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    written = max(tmp_path.glob("OPTIONS-*"), key=lambda path: path.name)

    found = compare_options(asked, written.read_text())

    assert found["matched"] == [
        "compression_type",
        "write_buffer_size",
        "block_size",
        "num_levels",
        "cache_index_and_filter_blocks",
    ]
    assert [one["flag"] for one in found["differs"]] == ["level0_stop_writes_trigger"]
    assert found["not_compared"] == ["num", "seed"]
