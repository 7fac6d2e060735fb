"""``benchrunner hosts list`` and ``benchrunner hosts show NAME``. Nothing is connected to."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from benchrunner.cli.hosts_options import host_argument, session_for
from benchrunner.cli.options import catalog_option, data_option, json_option, verb
from benchrunner.errors import EXIT_CONFIGURATION
from benchrunner.session import DEFAULT_DATA

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchrunner.definitions import Host
    from benchrunner.inventory.showing import Entry
    from benchrunner.transports.ssh_config import Hop


@verb("benchrunner hosts list", "benchrunner hosts list --catalog ./lab --json", name="list")
@catalog_option
@json_option
def list_command(catalog: Path | None, *, as_json: bool) -> None:
    """List the hosts of the inventory; connects to none.

    Exits 2 when a host's file cannot be used.
    """
    from benchrunner.inventory.showing import entries

    with session_for(DEFAULT_DATA, catalog) as session:
        found = entries(session)
    if as_json:
        click.echo(json.dumps([asdict(entry) for entry in found], indent=2))
    else:
        _table(found)
    if any(entry.problem for entry in found):
        raise click.exceptions.Exit(EXIT_CONFIGURATION)


def _table(found: Sequence[Entry]) -> None:
    head = ("name", "address", "work_dir", "tags", "roles", "file")
    rows = [head, *(_cells(entry) for entry in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head) - 1)]
    for row in rows:
        padded = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False))
        click.echo("  ".join((*padded, row[-1])).rstrip())
    for entry in found:
        if entry.problem:
            click.echo(f"error: {entry.problem}", err=True)


def _cells(entry: Entry) -> tuple[str, ...]:
    return (
        entry.name, "cannot be used" if entry.problem else entry.address or "this machine",
        entry.work_dir or "-", ",".join(entry.tags) or "-", ",".join(entry.roles) or "-",
        entry.file or "-",
    )  # fmt: skip


@verb("benchrunner hosts show nvme1", "benchrunner hosts show nvme1 --json", name="show")
@host_argument
@data_option
@catalog_option
@json_option
def show_command(name: str, data: str, catalog: Path | None, *, as_json: bool) -> None:
    """Show the definition of NAME with every default, the way to it, and its last A/A score.

    Nothing is connected to. The way is what the file and ~/.ssh/config say together. Values of the
    environment that may be secret are not shown.
    """
    from benchrunner.inventory.repeating import last_score
    from benchrunner.inventory.showing import route

    with session_for(data, catalog) as session:
        host = session.catalog.host(name)
        path = session.catalog.where("hosts", name)
        hops = route(session, host)
        score = last_score(session, name)
    if as_json:
        document = _document(host, path, hops) | {"aa_score": score}
        click.echo(json.dumps(document, indent=2))
        return
    _print(host, path, hops)
    if score is not None:
        from benchrunner.inventory.repeating import score_line

        click.echo(f"\n{score_line(score)}")


def _print(host: Host, path: Path | None, hops: Sequence[Hop]) -> None:
    from benchrunner.inventory.showing import settings

    click.echo(f"# {path or 'no file: this machine, as it is without one'}")
    shown = settings(host)
    lines = [(f"{one.key} = {_toml(one.value)}", one.is_given) for one in shown]
    width = max(len(line) for line, given in lines if not given)
    for line, given in lines:
        click.echo(line if given else f"{line:<{min(width, 40)}}  # default")
    if hops:
        click.echo("\nthe way there:")
    for number, hop in enumerate(hops, 1):
        click.echo(f"  {number}. {hop.label}" + ("" if number == len(hops) else "  (jump host)"))
        for key, value in _hop(hop).items():
            if key not in ("address", "port", "user"):
                click.echo(f"       {key}: {_plain(value)}")


def _hop(hop: Hop) -> dict[str, Any]:
    return {
        "address": hop.address, "port": hop.port, "user": hop.user,
        "key_files": [str(path) for path in hop.key_files], "agent": hop.agent,
        "known_as": hop.known_as, "known_hosts": [str(path) for path in hop.known_hosts],
    }  # fmt: skip


def _document(host: Host, path: Path | None, hops: Sequence[Hop]) -> dict[str, Any]:
    from benchrunner.inventory.showing import settings

    shown = settings(host)
    return {
        "name": host.name,
        "file": None if path is None else str(path),
        "settings": {one.key: one.value for one in shown},
        "given": [one.key for one in shown if one.is_given],
        "route": [_hop(hop) for hop in hops],
    }


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else str(value)


def _toml(value: Any) -> str:
    """A value as it would be written in the file; what is not set at all is a dash."""
    if value is None:
        return "-"
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(key)} = {_toml(one)}" for key, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    return json.dumps(value, ensure_ascii=False)
