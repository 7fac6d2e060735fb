"""``benchrunner sweep WORKLOAD``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from benchrunner.cli import completing
from benchrunner.cli.choosing import choosing, make_sweep, places
from benchrunner.cli.options import (
    cache_option,
    catalog_option,
    data_option,
    default_cache,
    format_option,
    json_option,
    page_formats,
    quiet_option,
    verb,
    wait_option,
)

if TYPE_CHECKING:
    from pathlib import Path


@verb(
    "benchrunner sweep rocksdb-flash --versions 6.11.4,7.2.2 --variants None,DIO --scale smoke",
    "benchrunner sweep rocksdb-flash --versions 6.10..7.2",
    "benchrunner sweep rocksdb-flash --versions system --scale smoke --set DURATION=10 --repeat 3",
    name="sweep",
)
@click.argument("workload", shell_complete=completing.workloads)
@choosing
@data_option
@cache_option
@catalog_option
@click.option("--jobs", type=click.IntRange(1), help="Compilers at once.  [default: processors]")
@click.option("--keep-db", is_flag=True, help="Leave databases after their trial.")
@wait_option
@format_option
@quiet_option
@json_option
def command(
    workload: str, data: str, cache: Path | None, catalog: Path | None, **chosen: Any
) -> None:
    """Build, run, parse and report versions x variants of WORKLOAD (or of a sweep file).

    Everything is stored as it happens: after a crash or Ctrl-C, `benchrunner resume` goes on.
    """
    from benchrunner.cli import finishing
    from benchrunner.cli.progress import asking, observer
    from benchrunner.pipeline import begin, prepare
    from benchrunner.session import Session, Settings

    formats = page_formats(chosen["formats"])
    with observer(quiet=chosen["quiet"], as_json=chosen["as_json"]) as watch:
        settings = Settings(
            data=data,
            cache=cache or default_cache(),
            catalog=catalog,
            jobs=chosen["jobs"],
            choices=places(cache, catalog, chosen),
            wait_for_host=chosen["wait"],
            ask=asking(watch),
            observer=watch,
        )
        session = Session(settings)
        prepared = prepare(session, make_sweep(session.catalog, workload, chosen))
        sweep_id = begin(session, prepared, ["benchrunner", *sys.argv[1:]])
        finishing.finish(session, [sweep_id], formats)
