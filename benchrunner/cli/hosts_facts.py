"""``benchrunner hosts facts NAME``."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from benchrunner.cli.hosts_options import host_argument, session_for
from benchrunner.cli.options import catalog_option, data_option, json_option, verb

if TYPE_CHECKING:
    from pathlib import Path

    from benchrunner.inventory.observing import Observed

_WIDTH = 100


@verb("benchrunner hosts facts nvme1", "benchrunner hosts facts local --json", name="facts")
@host_argument
@data_option
@catalog_option
@json_option
def facts_command(name: str, data: str, catalog: Path | None, *, as_json: bool) -> None:
    """Take the facts of NAME, and tell what has changed since the last visit.

    They are stored if --data has a store. What is not known is left out.
    """
    from benchrunner.inventory.observing import observe

    with session_for(data, catalog) as session:
        seen = observe(session, session.catalog.host(name))
    if as_json:
        click.echo(json.dumps(_document(seen), indent=2))
    else:
        _print(seen)


def _document(seen: Observed) -> dict[str, object]:
    changes = {since.when: [asdict(change) for change in since.changes] for since in seen.since}
    return {**asdict(seen.facts), "stored": seen.is_stored, "changes": changes}


def _print(seen: Observed) -> None:
    from benchrunner.inventory.observing import sections

    for heading, rows in sections(seen.facts.facts):
        click.echo(heading)
        width = min(40, max(len(name) for name, _ in rows))
        for name, text in rows:
            first, *rest = textwrap.wrap(text, _WIDTH - width - 4) or [""]
            click.echo(f"  {name:<{width}}  {first}")
            for line in rest:
                click.echo(f"{'':<{width + 4}}{line}")
    click.echo(f"\nfacts id {seen.facts.id}" + ("" if seen.is_stored else ", not stored"))
    if not seen.is_stored:
        click.echo("changes cannot be told: there is no store yet at --data")
    elif not seen.since:
        click.echo("nobody has been there before")
    for since in seen.since:
        if not since.changes:
            click.echo(f"nothing has changed {since.when}")
            continue
        click.echo(f"changed {since.when}:")
        for change in since.changes:
            click.echo(f"  {change}")
