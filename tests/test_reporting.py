"""What a page calls the versions that its trials ran."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from benchrunner import reporting

if TYPE_CHECKING:
    from benchrunner.store.rows import PageTrial


def trial(asked: str, kind: str, ref: str, stated: str | None, host: str = "local") -> PageTrial:
    """A trial of RocksDB; ``stated`` is what the built tree says, if it was built."""
    source = SimpleNamespace(kind=kind, ref=ref)
    job = SimpleNamespace(engine="rocksdb", version=asked, source=source, host=host)
    artifact = None if stated is None else SimpleNamespace(version=stated)
    return cast("PageTrial", SimpleNamespace(row=SimpleNamespace(job=job), artifact=artifact))


CRATE = trial("7.2.2", "crate", "ckb-librocksdb-sys@7.2.2", "7.2.2")


@pytest.mark.parametrize(
    ("trials", "names"),
    [
        ([CRATE, trial("7.2.2", "crate", "ckb-librocksdb-sys@7.2.2", None)], ["7.2.2", "7.2.2"]),
        ([trial("main", "git", "main", "11.9.0")], ["11.9.0"]),
        # A tree of somebody's own is not the release, alone or beside it.
        ([trial("7.2.2", "path", "/home/me/rocksdb", "7.2.2")], ["7.2.2 (rocksdb)"]),
        (
            [CRATE, trial("7.2.2", "path", "/home/me/rocksdb", "7.2.2")],
            ["7.2.2", "7.2.2 (rocksdb)"],
        ),
        (
            [
                trial("7.2.2", "path", "/home/me/rocksdb", "7.2.2"),
                trial("7.2.2", "path", "/home/you/rocksdb", "7.2.2"),
            ],
            ["7.2.2 (path /home/me/rocksdb)", "7.2.2 (path /home/you/rocksdb)"],
        ),
        (
            [CRATE, trial("7.2.2", "git", "v7.2.2", "7.2.2")],
            ["7.2.2 (crate ckb-librocksdb-sys@7.2.2)", "7.2.2 (git v7.2.2)"],
        ),
        # What is installed: the same name on hosts that have the same, each host's own otherwise.
        (
            [
                trial("system", "system", "db_bench", "7.8.3", "a"),
                trial("7.8.3", "system", "/usr/bin/db_bench", "7.8.3", "b"),
                trial("system", "system", "db_bench", "8.9.1", "c"),
            ],
            ["7.8.3", "7.8.3", "8.9.1"],
        ),
    ],
)
def test_two_things_never_share_a_name(trials: list[Any], names: list[str]) -> None:
    called = reporting._versions(trials)
    assert [called[reporting._origin(one)] for one in trials] == names
