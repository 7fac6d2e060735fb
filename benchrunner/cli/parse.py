"""``benchrunner parse --all``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from benchrunner.cli.options import catalog_option, data_option, default_cache, verb
from benchrunner.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path


@verb("benchrunner parse --all", "benchrunner parse --sweep 3", name="parse")
@click.option("--all", "everything", is_flag=True, help="Read all stored raw output again.")
@click.option("--sweep", type=int, help="Read this sweep's raw output again.")
@data_option
@catalog_option
def command(sweep: int | None, data: str, catalog: Path | None, *, everything: bool) -> None:
    """Read stored raw output again, after a parser improved. Raw output is never changed."""
    from benchrunner.pipeline import parse_again
    from benchrunner.session import Session, Settings

    if everything == (sweep is not None):
        raise ConfigurationError("parse wants either --all or --sweep NUMBER", "--all")
    session = Session(Settings(data=data, cache=default_cache(), catalog=catalog))
    session.open_existing()
    click.echo(f"read {parse_again(session, sweep)} step runs again")
