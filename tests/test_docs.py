"""Every public thing is documented: verbs, TOML keys, metrics, store columns, shipped files."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from benchrunner.catalog import Catalog
from benchrunner.cli import VERBS

ROOT = Path(__file__).parent.parent
COMMAND_LINE = (ROOT / "docs" / "command-line.md").read_text()


def command_of(verb: str) -> click.Command:
    command = importlib.import_module(f"benchrunner.cli.{verb}").command
    assert isinstance(command, click.Command)
    return command


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_help_with_an_example(verb: str) -> None:
    command = command_of(verb)
    assert command.help
    assert "Examples:" in (command.epilog or "")
    assert f"benchrunner {verb}" in (command.epilog or "")


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_and_its_options_are_in_the_manual(verb: str) -> None:
    assert f"## benchrunner {verb}\n" in COMMAND_LINE
    section = COMMAND_LINE.partition(f"## benchrunner {verb}\n")[2].partition("\n## ")[0]
    command = command_of(verb)
    context = click.Context(command)
    for parameter in command.params:
        is_option = isinstance(parameter, click.Option)
        names = parameter.opts if is_option else [parameter.make_metavar(context).strip("[]")]
        for name in names:
            assert name in section, f"{name} of {verb} is not in docs/command-line.md"


def test_the_manual_is_in_step_with_the_program() -> None:
    script = ROOT / "docs" / "make_command_line.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", ["workloads", "engines", "tools", "hosts", "sweeps"])
def test_every_shipped_definition_is_valid(kind: str) -> None:
    catalog = Catalog(working_directory=ROOT)
    readers = {
        "workloads": catalog.workload, "engines": catalog.engine, "tools": catalog.tool,
        "hosts": catalog.host, "sweeps": catalog.sweep,
    }  # fmt: skip
    for name in catalog.names(kind):
        assert getattr(readers[kind](name), "name", None) == name


def test_every_metric_has_a_definition() -> None:
    metrics = tomllib.loads((ROOT / "benchrunner" / "metrics.toml").read_text())
    for name, metric in metrics.items():
        assert metric["text"].endswith("."), name
        assert metric["unit"], name


def test_toml_blocks_in_the_documents_are_toml() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        parts = page.read_text().split("```toml\n")[1:]
        for part in parts:
            tomllib.loads(part.partition("```")[0])


def test_links_between_documents_lead_somewhere() -> None:
    import re

    for page in [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "native").rglob("*.md"),
    ]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
