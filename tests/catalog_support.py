"""A catalog folder made by a test, and a workload to put there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchrunner.catalog import Catalog
from benchrunner.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

WORKLOAD = """
name = "mine"
title = "Mine"
engine = "fio"
default_scale = "smoke"
[params]
NUM = 1000
SIZE = "6GiB"
RATIO = 0.5
[scale.smoke]
NUM = 10
[args.common]
size = "{SIZE}"
[[steps]]
name = "load"
tool = "fio"
use = ["common"]
args = { num = "{NUM}", many = ["a", "{NUM}"] }
[[steps]]
name = "read"
tool = "fio"
"""


class Folder:
    """A catalog folder made by a test."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def catalog(self) -> Catalog:
        return Catalog(self.root, working_directory=self.root / "elsewhere", search_path=())

    def workload_error(self, text: str) -> ConfigurationError:
        self.write("workloads/mine.toml", text)
        with pytest.raises(ConfigurationError) as error:
            self.catalog().workload("mine")
        assert "\n" not in error.value.message
        assert error.value.hint
        return error.value
