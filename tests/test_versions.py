"""Versions: their order, and what a selection takes from what the sources have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrunner.errors import ConfigurationError, NothingSelectedError
from benchrunner.model import SourceKind, SourceRef
from benchrunner.versions import Version, looks_like_commit, parse_selection, select

NUMBERS = st.lists(st.integers(0, 99), min_size=1, max_size=4).map(tuple)


def ref(version: str, kind: SourceKind = "crate", name: str = "") -> SourceRef:
    return SourceRef("rocksdb", version, kind, name or f"crate@{version}")


SYSTEM = ref("7.8.3", "system", "/usr/bin/db_bench")
RELEASES = ("6.10.2", "6.10.4", "6.11.4", "6.11.6", "6.28.2", "7.2.1", "7.2.2", "8.1.1", "8.10.0")
AVAILABLE = [*(ref(version) for version in RELEASES), SYSTEM]


def chosen(text: str, available: list[SourceRef] | None = None, **found: SourceRef) -> list[str]:
    words = parse_selection(text.split(","))
    refs, _ = select("rocksdb", words, available or AVAILABLE, found)
    return [ref.version for ref in refs]


# ---------------------------------------------------------------- one version


@given(NUMBERS)
def test_a_version_reads_back_as_it_is_written(numbers: tuple[int, ...]) -> None:
    version = Version(numbers)
    assert Version.parse(str(version)) == version
    assert Version.parse(f"v{version}") == version


@given(NUMBERS, NUMBERS, NUMBERS)
def test_the_order_is_total(a: tuple[int, ...], b: tuple[int, ...], c: tuple[int, ...]) -> None:
    x, y, z = sorted([Version(a), Version(b), Version(c)])
    assert x <= y <= z
    assert x <= z
    assert (Version(a) < Version(b)) + (Version(a) == Version(b)) + (Version(a) > Version(b)) == 1


@pytest.mark.parametrize(
    "text", ["main", "system", "66559b4087a", "/src/rocksdb", "", "7.", "7.2-rc1", "x@7.2.2"]
)
def test_what_is_no_number_is_no_version(text: str) -> None:
    assert Version.parse(text) is None


def test_the_mark_of_a_local_tree_says_nothing_of_its_age() -> None:
    assert Version.parse("7.2.2+0a1b2c3") == Version((7, 2, 2))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("66559b4", True), ("a" * 40, True), ("66559b", False), ("a" * 41, False), ("main", False)],
)
def test_what_may_be_a_commit(text: str, expected: bool) -> None:
    assert looks_like_commit(text) is expected


# ---------------------------------------------------------------- what a selection takes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("6.10..7.2", ["6.10.4", "6.11.6", "6.28.2", "7.2.2"]),
        ("6.10..7.2.1", ["6.10.4", "6.11.6", "6.28.2", "7.2.1"]),
        ("6.10.3..6.11", ["6.10.4", "6.11.6"]),
        ("6.11..6.11", ["6.11.6"]),
        ("7..8", ["7.2.2", "8.1.1", "8.10.0"]),
        ("8.1", ["8.1.1"]),
        ("7.2", ["7.2.2"]),
        ("8", ["8.10.0"]),
        ("7.2.1", ["7.2.1"]),
        ("v7.2.1", ["7.2.1"]),
        ("7.8.3", ["7.8.3"]),
        ("7.2,7.2.2,7.0..7.2", ["7.2.2"]),
        ("8.1.1, ,7.2.2", ["8.1.1", "7.2.2"]),
        ("crate@6.28.2", ["6.28.2"]),
    ],
)
def test_a_selection_takes(text: str, expected: list[str]) -> None:
    assert chosen(text) == expected


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 3)), min_size=1))
def test_a_range_takes_the_newest_patch_of_every_minor_once(
    releases: list[tuple[int, int, int]],
) -> None:
    available = [ref(".".join(map(str, numbers))) for numbers in releases]
    versions = [Version.parse(text) for text in chosen("0..3", available)]
    newest = {numbers[:2]: max(n for n in releases if n[:2] == numbers[:2]) for numbers in releases}
    assert [v.numbers for v in versions if v] == [newest[minor] for minor in sorted(newest)]


def test_the_first_source_of_a_version_is_taken() -> None:
    twice = [ref("7.2.2", "git", "v7.2.2@66559b408712"), ref("7.2.2")]
    assert select("rocksdb", parse_selection(["7.2"]), twice)[0] == [twice[0]]


def test_what_is_installed_never_stands_for_a_release() -> None:
    assert chosen("7.2..8.1") == ["7.2.2", "8.1.1"]


def test_what_was_found_by_name_is_taken_for_that_name_only() -> None:
    main = ref("main", "git", "66559b4087")
    assert chosen("main,7.2.2,system", main=main, system=SYSTEM) == ["main", "7.2.2", "7.8.3"]
    tree = ref("7.2.2", "path", "/src/rocksdb")
    words = parse_selection(["7.2.2", "./rocksdb"])
    refs, _ = select("rocksdb", words, AVAILABLE, {"./rocksdb": tree})
    assert [ref.kind for ref in refs] == ["crate", "path"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("6.10..6.13", "6.12 to 6.13"),
        ("6.27..7.3", "6.27, 7.0 to 7.1, 7.3"),
        ("8.1..8", "8.2 to 8.9"),
        ("7..8.1", "7.0 to 7.1, 8.0"),
    ],
)
def test_the_gaps_of_a_range_are_named(text: str, expected: str) -> None:
    _, skipped = select("rocksdb", parse_selection([text]), AVAILABLE)
    assert skipped == [(f"rocksdb {text}", f"no source has {expected}")]


def test_a_range_without_gaps_skips_nothing() -> None:
    assert select("rocksdb", parse_selection(["6.10..6.11"]), AVAILABLE)[1] == []


# ---------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("6.10..", "version range '6.10..' needs a version on each side", "6.10..7.2"),
        ("main..7.2", "version range 'main..7.2' needs a version on each side", "6.10..7.2"),
        ("7.2..6.10", "version range '7.2..6.10' runs backwards", "6.10..7.2"),
    ],
)
def test_a_range_that_is_none(text: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_selection([text])
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_an_unknown_version_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError) as caught:
        chosen("7.2.3")
    assert caught.value.message.startswith("no source has rocksdb '7.2.3'; did you mean '7.2.")
    assert caught.value.hint == "benchrunner versions rocksdb"
    with pytest.raises(ConfigurationError, match="no source has rocksdb 'mian'"):
        chosen("mian")
    with pytest.raises(ConfigurationError, match=r"no source has rocksdb '9\.1'"):
        chosen("9.1")


def test_a_range_that_selects_nothing_has_its_own_exit_code() -> None:
    with pytest.raises(NothingSelectedError) as caught:
        chosen("6.12..6.27")
    assert caught.value.exit_code == 3
    assert caught.value.message == "rocksdb 6.12..6.27: no source has a version in this range"
    assert caught.value.hint == "benchrunner versions rocksdb"
