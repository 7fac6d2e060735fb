"""Writes docs/command-line.md from the program's own help; ``--check``: is it in step?"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import click

from benchrunner.cli import VERBS, cli

PAGE = Path(__file__).parent / "command-line.md"

HEAD = """# The command line

Made by `docs/make_command_line.py` from the program's own help; `benchrunner VERB --help` prints
the same.

Exit codes: 0 ok, 1 a trial failed, 2 bad configuration, 3 nothing selected, 4 a regression is
confirmed (reserved), 130 interrupted.
"""


def page() -> str:
    """The whole page."""
    os.environ["COLUMNS"] = "100"
    sections = [HEAD, _section("benchrunner", cli)]
    for verb in VERBS:
        command = importlib.import_module(f"benchrunner.cli.{verb}").command
        sections += _sections(f"benchrunner {verb}", command)
    return "\n".join(sections)


def _sections(name: str, command: click.Command) -> list[str]:
    """A verb's section, and one for each verb below it."""
    sections = [_section(name, command)]
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None:
                sections += _sections(f"{name} {below}", found)
    return sections


def _section(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name, max_content_width=100, terminal_width=100)
    lines = [line.rstrip() for line in command.get_help(context).splitlines()]
    return f"## {name}\n\n```text\n" + "\n".join(lines) + "\n```\n"


def main() -> None:
    """Writes the page, or checks it."""
    if "--check" in sys.argv:
        if not PAGE.exists() or PAGE.read_text() != page():
            sys.exit("docs/command-line.md is out of step: run python docs/make_command_line.py")
        return
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
