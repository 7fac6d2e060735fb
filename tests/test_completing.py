"""Tab on the command line, as a shell asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.shell_completion import ShellComplete

from benchrunner.cli import cli

if TYPE_CHECKING:
    from pathlib import Path


def completed(*words: str) -> list[str]:
    """What is offered for the last of the words."""
    shell = ShellComplete(cli, {}, "benchrunner", "_BENCHRUNNER_COMPLETE")
    return [item.value for item in shell.get_completions([*words[:-1]], words[-1])]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("sweep", "rocksdb-f"), ["rocksdb-flash"]),
        (("plan", "fio-"), ["fio-randread"]),
        (("sweep", "rocksdb-flash", "--variants", "D"), ["DIO"]),
        (("sweep", "rocksdb-flash", "--variants", "None,"), ["None,None", "None,DIO"]),
        (("sweep", "rocksdb-flash", "--scale", "s"), ["smoke"]),
        (("sweep", "kv-engines", "--engines", "lmdb,level"), ["lmdb,leveldb"]),
        (("sweep", "rocksdb-flash", "--host", "lo"), ["local"]),
        (("report", "--page", "rocksdb-c"), ["rocksdb-compare"]),
        (("versions", "rocksdb-p"), ["rocksdb-pfx"]),
        (("build", "fi"), ["fio"]),
        (("explain", "w_amp_d"), ["w_amp_device"]),
        (("read", "db_"), ["db_bench"]),
        (("hosts", "show", "lo"), ["local"]),
        (("sweep", "no-such-workload", "--scale", ""), []),
    ],
)
def test_names_are_completed(words: tuple[str, ...], offered: list[str]) -> None:
    assert completed(*words) == offered


def test_names_of_a_catalog_of_the_command_line_are_offered(tmp_path: Path) -> None:
    (tmp_path / "hosts").mkdir()
    (tmp_path / "hosts" / "nvme7.toml").write_text('name = "nvme7"\n')
    assert completed("hosts", "show", "--catalog", str(tmp_path), "nv") == ["nvme7"]
    assert completed("hosts", "show", "--catalog", str(tmp_path / "none"), "nv") == []
