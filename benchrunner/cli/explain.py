"""``benchrunner explain METRIC``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from benchrunner.cli import completing
from benchrunner.cli.options import catalog_option, json_option, verb

if TYPE_CHECKING:
    from pathlib import Path


@verb("benchrunner explain w_amp_lsm", "benchrunner explain ops_per_sec --json", name="explain")
@click.argument("metric", shell_complete=completing.metrics)
@catalog_option
@json_option
def command(metric: str, catalog: Path | None, *, as_json: bool) -> None:
    """Print what METRIC means, its unit, and which way is better.

    METRIC is an id (`w_amp_lsm`) or a column title of a page (`W-Amp`).
    """
    from benchrunner.catalog import Catalog

    files = Catalog(catalog)
    wanted = {metric: files.metrics()[metric]} if metric in files.metrics() else {
        name: found for name, found in files.metrics().items()
        if found.title.casefold() == metric.casefold()
    }  # fmt: skip
    if not wanted:
        wanted = {metric: files.metric(metric)}
    if as_json:
        click.echo(
            json.dumps({name: found.model_dump() for name, found in wanted.items()}, indent=2)
        )
        return
    for name, found in wanted.items():
        click.echo(f"{name}: {found.title} [{found.unit}], {found.better} is better")
        click.echo(f"  {found.text}")
        if found.comparable:
            click.echo(f"  Not comparable: {found.comparable}")
