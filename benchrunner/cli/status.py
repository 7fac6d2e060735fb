"""``benchrunner status [SWEEP]``."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import click

from benchrunner.cli.options import data_option, json_option, verb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchrunner.store.glance import SweepGlance
    from benchrunner.store.rows import SweepRow
    from benchrunner.store.whole import Store

SHOWN = 20
"""Sweeps listed when none is named."""


@verb("benchrunner status", "benchrunner status 12 --json", name="status")
@click.argument("sweep", type=int, required=False)
@data_option
@json_option
def command(sweep: int | None, data: str, *, as_json: bool) -> None:
    """Show the newest sweeps, or every trial of SWEEP with its state and reason."""
    from benchrunner.store import open_store
    from benchrunner.store.glance import newest_sweeps

    if sweep is None:
        _sweeps(newest_sweeps(data, SHOWN), as_json=as_json)
        return
    with open_store(data, create=False) as store:
        _trials(store, store.sweep(sweep), as_json=as_json)


def _sweeps(rows: Sequence[SweepGlance], *, as_json: bool) -> None:
    if as_json:
        data = [
            {"sweep": r.id, "name": r.name, "created_at": r.created_at, "unfinished": r.unfinished,
             **{state.value: n for state, n in r.counts.items()}}
            for r in rows
        ]  # fmt: skip
        click.echo(json.dumps(data, indent=2))
        return
    if not rows:
        click.echo("no sweeps yet; start one with: benchrunner sweep rocksdb-flash --scale smoke")
    for row in rows:
        states = ", ".join(f"{n} {state.value}" for state, n in sorted(row.counts.items()) if n)
        click.echo(f"{row.id:>5}  {_when(row.created_at)}  {row.name:<24} {states}")
    if any(row.unfinished for row in rows):
        click.echo("go on with unfinished sweeps: benchrunner resume")


def _trials(store: Store, row: SweepRow, *, as_json: bool) -> None:
    trials = store.trials(row.id)
    if as_json:
        data = [
            {"trial": t.id, "position": t.position, "workload": t.job.workload,
             "version": t.job.version, "variant": t.job.variant, "host": t.job.host,
             "server": t.job.server or None, "repetition": t.repetition,
             "state": t.state.value, "reason": t.reason,
             "started_at": t.started_at, "ended_at": t.ended_at}
            for t in trials
        ]  # fmt: skip
        click.echo(json.dumps(data, indent=2))
        return
    click.echo(f"sweep {row.id}: {row.name}, {_when(row.created_at)}")
    click.echo(f"  {' '.join(row.command_line)}")
    for t in trials:
        job = t.job
        place = f"{job.host} (servers on {job.server})" if job.server else job.host
        what = f"{job.workload} {job.version} {job.variant} {place} #{t.repetition}"
        line = f"{t.position:>4}  {what}"
        click.echo(f"{line:<60} {t.state.value}" + (f": {t.reason}" if t.reason else ""))
        if t.state.value == "running":
            for step in store.step_runs(t.id):
                click.echo(f"        {step.step}: {step.state.value}")
    for what, why in row.skipped:
        click.echo(f"left out: {what}: {why}")


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
