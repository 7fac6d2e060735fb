"""``benchrunner resume [SWEEP]``."""

from __future__ import annotations

from pathlib import Path

import click

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
from benchrunner.errors import NothingSelectedError


@verb("benchrunner resume", "benchrunner resume 12 --data ./results", name="resume")
@click.argument("sweep", type=int, required=False)
@data_option
@cache_option
@catalog_option
@click.option(
    "--format", "formats", default="wiki,markdown,html,csv", show_default=True, metavar="LIST",
    help="Forms of the page; 'none' writes no page.",
)  # fmt: skip
@quiet_option
@json_option
def command(
    sweep: int | None, data: str, cache: Path | None, catalog: Path | None, formats: str,
    *, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Go on with interrupted sweeps, or with SWEEP only.

    A step that still runs is adopted, one that finished meanwhile is collected, and nothing that is
    stored runs again.
    """
    from benchrunner.cli import finishing
    from benchrunner.cli.progress import observer
    from benchrunner.session import Session

    with observer(quiet=quiet, as_json=as_json) as watch:
        session = Session(_settings(data, cache, catalog, watch))
        unfinished = [row.id for row in session.store.unfinished_sweeps()]
        wanted = [session.store.sweep(sweep).id] if sweep is not None else sorted(unfinished)
        if not wanted:
            raise NothingSelectedError(
                "every stored sweep has ended", "benchrunner sweep starts a new one"
            )
        finishing.finish(session, wanted, comma_list(formats))
