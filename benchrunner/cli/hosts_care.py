"""``benchrunner hosts restore NAME`` and ``benchrunner hosts clean NAME``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from benchrunner.cli.hosts_options import host_argument, session_for
from benchrunner.cli.options import cache_option, catalog_option, data_option, verb
from benchrunner.errors import EXIT_TRIAL_FAILED

if TYPE_CHECKING:
    from pathlib import Path

    from benchrunner.inventory.cleaning import Outcome


@verb(
    "benchrunner hosts restore nvme1", "benchrunner hosts restore local --data ./results",
    name="restore",
)  # fmt: skip
@host_argument
@data_option
@cache_option
@catalog_option
def restore_command(name: str, data: str, cache: Path | None, catalog: Path | None) -> None:
    """Put back settings of NAME that a crashed controller has left, and give back its memory.

    Refused while another controller uses the host. Exits 1 when a setting could not be put back.
    Databases in memory are lost: benchrunner resume starts their trials again.
    """
    from benchrunner.inventory.restoring import give_memory_back, put_back
    from benchrunner.probes import tuning

    with session_for(data, catalog, cache) as session:
        done = put_back(session, session.catalog.host(name))
        point = give_memory_back(session, session.catalog.host(name))
    if point:
        click.echo(f"unmounted   {point}, the memory disk of databases")
    for line in tuning.put_back(done.restored):
        click.echo(f"put back    {line}")
    for word, entries in (("left alone", done.forgotten), ("FAILED", done.failed)):
        for entry, why in entries:
            click.echo(f"{word:<10}  {tuning.changed([entry])[0]}: {why}")
    if done.failed:
        click.echo("do that as root there, or allow `tee PATH` in sudoers, and run this again")
        raise click.exceptions.Exit(EXIT_TRIAL_FAILED)
    if not done.restored:
        click.echo(f"no setting of {name} is left changed")


@verb(
    "benchrunner hosts clean nvme1 --dry-run", "benchrunner hosts clean nvme1 --data ./results",
    name="clean",
)  # fmt: skip
@host_argument
@click.option("--dry-run", "dry", is_flag=True, help="Only tell what would go.")
@click.option("--all", "everything", is_flag=True, help="Also builds, sources and supervisors.")
@data_option
@cache_option
@catalog_option
def clean_command(
    name: str, data: str, cache: Path | None, catalog: Path | None, *, dry: bool, everything: bool
) -> None:
    """Delete trial folders that a dead controller, or --keep-db, has left on NAME.

    Kept are trials of which a step still runs, and those that an unfinished sweep of --data goes on
    with. Trials of other stores are not known here: look with --dry-run first. Only folders with
    benchrunner's marker go. Refused while another controller uses the host.
    """
    from benchrunner.inventory.cleaning import clean, has_store

    freed, outcomes = 0, 0
    with session_for(data, catalog, cache) as session:
        if not has_store(session):
            text = f"note: --data {data} has no store, so no unfinished sweep is known"
            click.echo(text, err=True)
        host = session.catalog.host(name)
        for outcome in clean(session, host, everything=everything, dry=dry):
            outcomes += 1
            freed += 0 if outcome.word == "kept" else outcome.size_bytes
            _print(outcome)
    if not outcomes:
        click.echo(f"nothing of benchrunner's is left on {name}")
        return
    from benchrunner.units import about_size

    click.echo(f"{'would free' if dry else 'freed'} {about_size(freed)}")


def _print(outcome: Outcome) -> None:
    from benchrunner.units import about_size

    size = about_size(outcome.size_bytes)
    why = f"  ({outcome.why})" if outcome.why else ""
    click.echo(f"{outcome.word:<9}  {size:>9}  {outcome.name}{why}")
