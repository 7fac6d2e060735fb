"""``benchrunner plan WORKLOAD``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from benchrunner.cli import completing
from benchrunner.cli.choosing import choosing, make_sweep, places
from benchrunner.cli.options import (
    asker,
    cache_option,
    catalog_option,
    data_option,
    default_cache,
    json_option,
    verb,
)
from benchrunner.errors import EXIT_CONFIGURATION

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchrunner.catalog import Catalog
    from benchrunner.pipeline import Prepared


@verb(
    "benchrunner plan rocksdb-flash --versions 6.11.4,7.2.2 --variants None,DIO --scale smoke",
    "benchrunner plan rocksdb-flash --versions 6.10..7.2 --json",
    name="plan",
)
@click.argument("workload", shell_complete=completing.workloads)
@choosing
@data_option
@cache_option
@catalog_option
@click.option("--commands", is_flag=True, help="Print every command line, with dropped flags.")
@json_option
def command(
    workload: str, data: str, cache: Path | None, catalog: Path | None, **chosen: Any
) -> None:
    """Show what a sweep of WORKLOAD would do; build, start and store nothing.

    Exits 2 when something stands in the way: too little disk, a directory that is not ours.
    """
    from benchrunner.pipeline import prepare
    from benchrunner.session import Session, Settings

    session = Session(
        Settings(
            data=data, cache=cache or default_cache(), catalog=catalog,
            choices=places(cache, catalog, chosen), ask=asker(),
        )
    )  # fmt: skip
    prepared = prepare(session, make_sweep(session.catalog, workload, chosen))
    if chosen["as_json"]:
        click.echo(json.dumps(_as_data(prepared), indent=2, default=str))
    else:
        _print(prepared, session.catalog)
        if chosen["commands"]:
            _print_commands(session.catalog, prepared)
    if prepared.obstacles:
        raise click.exceptions.Exit(EXIT_CONFIGURATION)


def _as_data(prepared: Prepared) -> dict[str, Any]:
    plan = prepared.plan
    return {
        "sweep": plan.sweep,
        "loads": plan.loads,
        "disk_bytes": plan.disk_bytes,
        "memory_bytes": plan.memory_bytes,
        "seconds": plan.seconds,
        "skipped": [{"what": what, "why": why} for what, why in plan.skipped],
        "obstacles": [
            {"what": error.message, "try": error.hint} for error in prepared.obstacles
        ],
        "trials": [
            {
                "id": trial.id, "position": trial.position, "repetition": trial.repetition,
                "workload": trial.job.workload, "engine": trial.job.engine,
                "version": trial.job.version, "source": trial.job.source.ref,
                "variant": trial.job.variant, "host": trial.job.host,
                "server": trial.job.server or None, "axes": dict(trial.job.axes),
                "steps": list(trial.job.steps),
            }
            for trial in plan.trials
        ],
    }  # fmt: skip


def _print(prepared: Prepared, catalog: Catalog) -> None:
    from benchrunner.cli.progress import duration
    from benchrunner.units import about_size

    plan = prepared.plan
    rows = [("#", "workload", "engine", "version", "from", "variant", "host", "rep", "steps")]
    rows += [
        (
            str(t.position), t.job.workload, t.job.engine, t.job.version,
            f"{t.job.source.kind} {t.job.source.ref}".rstrip(),
            " ".join([t.job.variant, *(f"{k}={v}" for k, v in t.job.axes.items())]), t.job.host,
            str(t.repetition), str(len(t.job.steps)),
        )
        for t in plan.trials
    ]  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
    disk = _about(plan.disk_bytes, about_size)
    memory = _about(plan.memory_bytes, about_size)
    time = _about(plan.seconds, duration)
    click.echo(f"\n{len(plan.trials)} trials, {plan.loads} database loads")
    if any(catalog.workload(t.job.workload).data_on == "memory" for t in plan.trials):
        where = "on a tmpfs that is mounted for the sweep, or in --db-dir"
        click.echo(f"databases in memory: {disk} at once, {where}; processes beside them: {memory}")
        click.echo(f"time: {time}, builds not counted")
    else:
        click.echo(f"disk: {disk} at once; memory: {memory}; time: {time}, builds not counted")
    for server in dict.fromkeys(t.job.server for t in plan.trials if t.job.server):
        click.echo(f"servers run on {server}, their clients on {plan.trials[0].job.host}")
    for what, why in plan.skipped:
        click.echo(f"left out: {what}: {why}")
    for obstacle in prepared.obstacles:
        click.echo(f"obstacle: {obstacle}", err=True)  # its hint on a line of its own


def _about(value: float | None, words: Callable[[Any], str]) -> str:
    """``about 2.5 GiB``, or that nobody knows."""
    return "unknown" if value is None else f"about {words(value)}"


def _print_commands(catalog: Catalog, prepared: Prepared) -> None:
    import shlex

    from benchrunner.pipeline import dry_commands
    from benchrunner.unfolding import used_services

    for job, command_of in dry_commands(catalog, prepared.plan):
        click.echo(f"\n# {job.workload} {job.engine} {job.version} {job.variant}")
        services = used_services(catalog.workload(job.workload), job.steps)
        for name in (*services, *job.steps):
            built = command_of(name)
            click.echo(f"# {name}\n{shlex.join(built.argv)}")
            for note in built.flags:
                if note.action != "given":
                    click.echo(f"#   {note.flag}={note.asked}: {note.action}: {note.reason}")
