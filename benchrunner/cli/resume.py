"""``benchrunner resume [SWEEP]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from benchrunner.cli.choosing import places
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
from benchrunner.errors import NothingSelectedError

if TYPE_CHECKING:
    from pathlib import Path


@verb("benchrunner resume", "benchrunner resume 12 --data ./results", name="resume")
@click.argument("sweep", type=int, required=False)
@data_option
@cache_option
@catalog_option
@click.option("--jobs", type=click.IntRange(1), help="Compilers at once.  [default: processors]")
@wait_option
@format_option
@quiet_option
@json_option
def command(
    sweep: int | None, data: str, cache: Path | None, catalog: Path | None, **chosen: Any
) -> None:
    """Go on with interrupted sweeps, or with SWEEP only.

    A step that still runs is adopted, one that finished meanwhile is collected, and nothing that is
    stored runs again.
    """
    from benchrunner.cli import finishing
    from benchrunner.cli.progress import asking, observer
    from benchrunner.session import Session, Settings

    forms = page_formats(chosen["formats"])
    with observer(quiet=chosen["quiet"], as_json=chosen["as_json"]) as watch:
        settings = Settings(
            data=data,
            cache=cache or default_cache(),
            catalog=catalog,
            jobs=chosen["jobs"],
            choices=places(cache, catalog, {}),
            wait_for_host=chosen["wait"],
            ask=asking(watch),
            observer=watch,
        )
        session = Session(settings)
        store = session.open_existing()
        wanted = [row.id for row in store.unfinished_sweeps() if sweep in (None, row.id)]
        if sweep is not None:
            store.sweep(sweep)
        if not wanted:
            which = "every stored sweep has" if sweep is None else f"sweep {sweep} has"
            raise NothingSelectedError(
                f"{which} ended: there is nothing to go on with",
                "benchrunner report --page WORKLOAD writes the page of what is stored",
            )
        finishing.finish(session, wanted, forms)
