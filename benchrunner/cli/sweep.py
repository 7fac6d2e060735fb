"""``benchrunner sweep WORKLOAD``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from benchrunner.cli.choosing import choosing, make_sweep
from benchrunner.cli.options import (
    cache_option,
    catalog_option,
    comma_list,
    data_option,
    default_cache,
    json_option,
    quiet_option,
    verb,
)


@verb(
    "benchrunner sweep rocksdb-flash --versions 6.11.4,7.2.2 --variants None,DIO --scale smoke",
    "benchrunner sweep rocksdb-flash --versions 6.10..7.2",
    "benchrunner sweep rocksdb-flash --versions system --scale smoke --set DURATION=10 --repeat 3",
    name="sweep",
)
@click.argument("workload")
@choosing
@data_option
@cache_option
@catalog_option
@click.option("--jobs", type=click.IntRange(1), help="Compilers at once.  [default: processors]")
@click.option("--keep-db", is_flag=True, help="Leave databases after their trial.")
@click.option(
    "--format", "formats", default="wiki,markdown,html,csv", show_default=True, metavar="LIST",
    help="Forms of the page; 'none' writes no page.",
)  # fmt: skip
@quiet_option
@json_option
def command(workload: str, data: str, cache: Path | None, catalog: Path | None, **chosen: Any) -> None:
    """Build, run, parse and report versions x variants of WORKLOAD (or of a sweep file).

    Everything is stored as it happens: after a crash or Ctrl-C, `benchrunner resume` goes on.
    """
    from benchrunner.cli import finishing
    from benchrunner.cli.progress import observer
    from benchrunner.pipeline import begin, prepare
    from benchrunner.session import Session, Settings

    with observer(quiet=chosen["quiet"], as_json=chosen["as_json"]) as watch:
        session = Session(
            Settings(
                data=data, cache=cache or default_cache(), catalog=catalog, jobs=chosen["jobs"],
                database_dir=chosen["db_dir"], wal_dir=chosen["wal_dir"],
                keep_databases=chosen["keep_db"], observer=watch,
            )
        )  # fmt: skip
        prepared = prepare(session, make_sweep(session.catalog, workload, chosen))
        sweep_id = begin(session, prepared, ["benchrunner", *sys.argv[1:]])
        finishing.finish(session, [sweep_id], comma_list(chosen["formats"]))
