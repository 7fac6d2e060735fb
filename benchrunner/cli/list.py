"""``benchrunner list KIND``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from benchrunner.cli.options import catalog_option, json_option, verb

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ("workloads", "engines", "tools", "hosts", "metrics", "sweeps")


@verb("benchrunner list workloads", "benchrunner list metrics --json", name="list")
@click.argument("kind", type=click.Choice(KINDS), default="workloads")
@catalog_option
@json_option
def command(kind: str, catalog: Path | None, *, as_json: bool) -> None:
    """List what can be named on the command line, and the file it comes from."""
    from benchrunner.catalog import Catalog

    files = Catalog(catalog)
    rows = {
        name: (_title(files, kind, name), str(files.where(kind, name)))
        for name in files.names(kind)
    }
    if as_json:
        click.echo(json.dumps({n: {"title": t, "file": f} for n, (t, f) in rows.items()}, indent=2))
        return
    width = max((len(name) for name in rows), default=0)
    for name, (title, path) in rows.items():
        click.echo(f"{name:<{width}}  {title}" + (f"  ({path})" if kind != "metrics" else ""))


def _title(files: object, kind: str, name: str) -> str:
    from benchrunner.catalog import Catalog

    assert isinstance(files, Catalog)  # noqa: S101
    readers = {
        "workloads": lambda: files.workload(name).title,
        "engines": lambda: files.engine(name).title,
        "tools": lambda: files.tool(name).title,
        "hosts": lambda: files.host(name).address or "this machine",
        "metrics": lambda: f"{files.metric(name).title} [{files.metric(name).unit}]",
        "sweeps": lambda: ", ".join(files.sweep(name).workloads),
    }
    return readers[kind]()
