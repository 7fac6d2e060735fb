"""``benchrunner hosts trust NAME``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from benchrunner.cli.hosts_options import host_argument, session_for
from benchrunner.cli.options import catalog_option, is_attended, verb
from benchrunner.errors import EXIT_CONFIGURATION, ConfigurationError
from benchrunner.session import DEFAULT_DATA

if TYPE_CHECKING:
    from pathlib import Path

    from benchrunner.inventory.trusting import Doubt


@verb("benchrunner hosts trust nvme1", "benchrunner hosts trust nvme1 --yes", name="trust")
@host_argument
@click.option("--yes", is_flag=True, help="Add keys that are not known yet without asking.")
@click.option("--replace", is_flag=True, help="Replace keys that have changed without asking.")
@catalog_option
def trust_command(name: str, catalog: Path | None, *, yes: bool, replace: bool) -> None:
    """Show the keys on the way to NAME that are not known, and add them if you agree.

    Jump hosts come first. The keys go into the known_hosts file that ssh uses, too. Compare each
    fingerprint with what the host itself says, over a way that you trust. Exits 2 when a key was
    not agreed to.
    """
    from benchrunner.inventory.trusting import trust_way

    def agree(doubt: Doubt) -> bool:
        return _changed(doubt, agreed=replace) if doubt.is_change else _unknown(doubt, agreed=yes)

    with session_for(DEFAULT_DATA, catalog) as session:
        done = trust_way(session, session.catalog.host(name), agree)
    if not done.is_complete:
        click.echo(f"the key of {done.last.host} was not added")
        raise click.exceptions.Exit(EXIT_CONFIGURATION)
    if done.added:
        click.echo(f"every key on the way to {name} is known now; next: {_next(name, catalog)}")
    else:
        click.echo(f"every key on the way to {name} is known already: {done.last.fingerprint}")


def _unknown(doubt: Doubt, *, agreed: bool) -> bool:
    offered = doubt.offered
    kind = offered.key_type.removeprefix("ssh-")
    click.echo(f"the {kind} key of {offered.host} is not known yet")
    click.echo(f"  fingerprint  {offered.fingerprint}")
    click.echo(f"  compare it   {_there(kind)}")
    if not agreed:
        _must_be_attended(doubt, "--yes")
        agreed = click.confirm(f"Add it to {doubt.file}?", default=False)
    if agreed:
        click.echo(f"  adding it to {doubt.file}")
    return agreed


def _changed(doubt: Doubt, *, agreed: bool) -> bool:
    offered, before = doubt.offered, doubt.offered.before
    kind = offered.key_type.removeprefix("ssh-")
    click.echo(f"THE KEY OF {offered.host} HAS CHANGED")
    if before is not None:
        from benchrunner.transports.host_keys import fingerprint

        old = f"{before.key_type.removeprefix('ssh-')} {fingerprint(before.key)}"
        click.echo(f"  known    {old}  ({before.file}:{before.line})")
    click.echo(f"  offered  {kind} {offered.fingerprint}")
    click.echo("  it was installed anew, or somebody is in between: ask whoever runs it")
    click.echo(f"  compare  {_there(kind)}")
    if not agreed:
        _must_be_attended(doubt, "--replace")
        answer = click.prompt("Replace the known key? Type yes", default="no", show_default=False)
        agreed = answer == "yes"
    if agreed:
        click.echo(f"  replacing it in {doubt.file}")
    return agreed


def _there(kind: str) -> str:
    word = "ecdsa" if kind.startswith("ecdsa") else kind
    return f"there: ssh-keygen -lf /etc/ssh/ssh_host_{word}_key.pub"


def _must_be_attended(doubt: Doubt, option: str) -> None:
    if not is_attended():
        raise ConfigurationError(
            f"nobody is at the terminal to say whether the key of {doubt.offered.host} is right",
            f"compare the fingerprint first, then add {option}",
        )


def _next(name: str, catalog: Path | None) -> str:
    import shlex

    more = ["--catalog", str(catalog)] if catalog is not None else []
    return shlex.join(["benchrunner", "hosts", "check", name, *more])
