"""``benchrunner report --page WORKLOAD``."""

from __future__ import annotations

from pathlib import Path

import click

from benchrunner.cli import completing
from benchrunner.cli.options import (
    catalog_option,
    data_option,
    default_cache,
    format_option,
    page_formats,
    verb,
)


@verb(
    "benchrunner report --page rocksdb-flash --format wiki",
    "benchrunner report --page rocksdb-flash --sweep 3 --sweep 4 --output /tmp/page",
    name="report",
)
@click.option(
    "--page",
    "workload",
    required=True,
    metavar="WORKLOAD",
    help="Whose page to write.",
    shell_complete=completing.pages,
)
@format_option
@click.option("--sweep", "sweeps", type=int, multiple=True, help="Only these sweeps; repeatable.")
@click.option("--scale", help="Only trials of this scale.  [default: of the newest trial]")
@click.option(
    "--output", type=click.Path(path_type=Path), help="Folder.  [default: DATA/pages/WORKLOAD]"
)
@data_option
@catalog_option
def command(
    workload: str, formats: str, sweeps: tuple[int, ...], scale: str | None, output: Path | None,
    data: str, catalog: Path | None,
) -> None:  # fmt: skip
    """Write the page of a workload from stored results; prints the path of each form."""
    from benchrunner.pipeline import write_report
    from benchrunner.session import Session, Settings

    wanted = page_formats(formats)
    session = Session(Settings(data=data, cache=default_cache(), catalog=catalog))
    session.open_existing()
    files = write_report(
        session, workload, wanted, output, sweep_ids=list(sweeps) or None, scale=scale
    )
    for path in files.pages.values():
        click.echo(path)
