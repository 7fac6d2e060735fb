"""``versions`` and ``build`` on a command line, with an engine that builds in a moment."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchrunner.cli import cli
from benchrunner.errors import ConfigurationError, NothingSelectedError

ENGINE = """
name  = "tiny"
title = "Tiny"

[[source]]
kind     = "archive"
[source.versions]
"1.0.0" = "{tree}/absent.tar.gz"

[[source]]
kind         = "path"
path         = "{tree}"
version_file = "version.h"

[[source]]
kind   = "system"
binary = "no-such-bench"
debian = "tiny-tools"

[build]
commands = [["make", "tiny_bench"]]
keep     = ["tiny_bench"]
"""
MAKEFILE = "tiny_bench: main.c\n\t$(CC) -o $@ $<\n"
MAIN = '#include <stdio.h>\nint main(void) { puts("tiny"); return 0; }\n'
HEADER = "#define TINY_MAJOR 1\n#define TINY_MINOR 2\n#define TINY_PATCH 3\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "upstream"
    tree.mkdir()
    (tree / "Makefile").write_text(MAKEFILE)
    (tree / "main.c").write_text(MAIN)
    (tree / "version.h").write_text(HEADER)
    engines = tmp_path / "catalog" / "engines"
    engines.mkdir(parents=True)
    (engines / "tiny.toml").write_text(ENGINE.format(tree=tree))
    return tree


def run(tmp_path: Path, verb: str, *arguments: str) -> Result:
    places = ["--cache", str(tmp_path / "cache"), "--catalog", str(tmp_path / "catalog")]
    result = CliRunner().invoke(cli, [verb, "tiny", *places, *arguments])
    if isinstance(result.exception, ConfigurationError | NothingSelectedError):
        raise result.exception
    return result


def test_versions_tells_what_can_be_had_and_what_is_built(tmp_path: Path, tree: Path) -> None:
    before = run(tmp_path, "versions")
    assert before.exit_code == 0, before.output
    lines = before.stdout.splitlines()
    assert lines[0].split() == ["version", "source", "ref", "note"]
    assert "path" in lines[1]
    assert str(tree) in lines[1]
    assert "built" not in lines[1]
    assert "note: system: no-such-bench is not installed" in before.stderr
    assert not (tmp_path / "cache").exists(), "listing writes nothing"
    assert run(tmp_path, "build", "--versions", str(tree)).exit_code == 0
    assert "built" in run(tmp_path, "versions").stdout.splitlines()[1]


def test_versions_as_json(tmp_path: Path, tree: Path) -> None:
    document = json.loads(run(tmp_path, "versions", "--source", "path", "--json").stdout)
    assert document["engine"] == "tiny"
    assert document["notes"] == []
    (row,) = document["versions"]
    assert set(row) == {"version", "source", "ref", "note", "built"}
    assert row["source"] == "path"
    assert row["ref"].startswith(str(tree))
    assert row["built"] is False


def test_a_build_tells_where_the_binary_is(tmp_path: Path, tree: Path) -> None:
    first = run(tmp_path, "build", "--versions", str(tree))
    assert first.exit_code == 0, first.output
    for label in ("artifact", "path", "sha-256", "compiler", "features", "time"):
        assert f"  {label}" in first.stdout
    (built,) = json.loads(run(tmp_path, "build", "--versions", str(tree), "--json").stdout)
    assert (built["state"], built["version"]) == ("built", "1.2.3")
    binary = Path(built["binaries"]["tiny_bench"])
    assert binary.is_relative_to(tmp_path / "cache")
    assert built["sha256"]["tiny_bench"] == hashlib.sha256(binary.read_bytes()).hexdigest()
    assert built["artifact"] in first.stdout, "the second build took what the first had made"


def test_quiet_says_nothing_when_all_is_well(tmp_path: Path, tree: Path) -> None:
    result = run(tmp_path, "build", "--versions", str(tree), "--quiet")
    assert (result.exit_code, result.output) == (0, "")


def test_a_failed_build_shows_the_end_of_its_log_and_the_others_are_built(
    tmp_path: Path, tree: Path
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "Makefile").write_text(MAKEFILE)
    (broken / "main.c").write_text("int main(void) { return nothing; }\n")
    result = run(tmp_path, "build", "--versions", f"{broken},{tree}")
    assert result.exit_code == 1
    assert "failed with status 2" in result.stderr
    assert "nothing" in result.stderr, "the compiler's own words"
    assert "tiny_bench" in result.stdout, "the other version is built"
    log = result.stderr.rpartition("  log ")[2].strip()
    assert "nothing" in Path(log).read_text()


def test_an_unknown_version_is_one_line(tmp_path: Path, tree: Path) -> None:
    assert tree.is_dir()
    with pytest.raises(ConfigurationError, match=r"no source has tiny '9\.9\.9'") as caught:
        run(tmp_path, "build", "--versions", "9.9.9")
    assert caught.value.hint == "benchrunner versions tiny"
    with pytest.raises(NothingSelectedError, match=r"tiny 7\.0\.\.7\.2: no source has a version"):
        run(tmp_path, "build", "--versions", "7.0..7.2")
