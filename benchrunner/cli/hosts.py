"""``benchrunner hosts VERB``: list and show here; the other verbs are in ``hosts_*``.

Each verb's module is imported when the verb is used, as with the program's own.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import click

from benchrunner.cli.options import epilog
from benchrunner.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

VERBS: Mapping[str, tuple[str, str]] = {
    "list": ("hosts_show", "List the hosts of the inventory; connects to none."),
    "show": ("hosts_show", "Show a host's definition, defaults included, and the way to it."),
    "check": ("hosts_check", "Walk through all that a host needs; print what mends each gap."),
    "facts": ("hosts_facts", "Take a host's facts and tell what has changed since the last visit."),
    "trust": ("hosts_trust", "Show the keys on the way to a host, and add them if you agree."),
    "restore": ("hosts_care", "Put back settings that a crashed controller has left."),
    "clean": ("hosts_care", "Delete trial folders that a dead controller has left."),
}
"""Verb -> the module that has it, as NAME_command, and its line of help."""


class HostVerbs(click.Group):
    """Loads a verb's module only when the verb is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order of a session."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command, imported now."""
        if cmd_name not in VERBS:
            ctx.fail(f"There is no verb 'hosts {cmd_name}'{did_you_mean(cmd_name, VERBS)}")
        module = importlib.import_module(f"benchrunner.cli.{VERBS[cmd_name][0]}")
        found = getattr(module, f"{cmd_name}_command")
        if not isinstance(found, click.Command):
            raise TypeError(f"{cmd_name}_command of {module.__name__} is no click command")
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs and their help lines, without importing one of them."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, line) for name, (_, line) in VERBS.items()])


@click.group(
    cls=HostVerbs,
    name="hosts",
    epilog=epilog(
        "benchrunner hosts list",
        "benchrunner hosts trust nvme1",
        "benchrunner hosts check nvme1 --noise",
    ),
)
def command() -> None:
    """List, show, check, trust, restore and clean the hosts of the inventory (hosts/*.toml)."""
