"""``benchrunner hosts check NAME``."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from benchrunner.cli.hosts_options import host_argument, session_for
from benchrunner.cli.options import cache_option, catalog_option, data_option, json_option, verb
from benchrunner.errors import EXIT_CONFIGURATION

if TYPE_CHECKING:
    from pathlib import Path

    from benchrunner.definitions import Host
    from benchrunner.inventory.checking import Examined
    from benchrunner.probes.check import Check
    from benchrunner.session import Session


@verb("benchrunner hosts check nvme1", "benchrunner hosts check nvme1 --noise", name="check")
@host_argument
@click.option("--noise", is_flag=True, help="Measure how well numbers repeat there (A/A score).")
@click.option(
    "--rounds",
    type=click.IntRange(3, 1000),
    default=20,
    show_default=True,
    help="With --noise: pairs of equal runs; 20 take half a minute.",
)
@data_option
@cache_option
@catalog_option
@json_option
def check_command(
    name: str, data: str, cache: Path | None, catalog: Path | None, *, noise: bool, rounds: int,
    as_json: bool,
) -> None:  # fmt: skip
    """Walk through all that NAME needs, and print for each gap the command that mends it.

    Reach, host key, login, folders, space, compiler, libraries, tools, clock, devices, settings.
    Without --noise nothing is changed on the host. Exits 2 when something is missing that every
    sweep needs. With --noise nobody else may use the host; the score is kept in the store of --data
    if there is one, and `benchrunner hosts show` prints it again.
    """
    from benchrunner.inventory.checking import examine

    with session_for(data, catalog, cache) as session:
        host = session.catalog.host(name)
        found = examine(session, host)
        if not as_json:
            _print(found)
        score = None
        if noise and found.is_usable:
            score = _score(session, host, rounds)
        if as_json:
            document = {"host": name, "checks": _as_data(found), "aa_score": score}
            click.echo(json.dumps(document, indent=2))
        elif score is not None:
            print_score(score)
        elif noise:
            click.echo("\nthe A/A score was not measured: mend what is MISSING first")
    if not found.is_usable:
        raise click.exceptions.Exit(EXIT_CONFIGURATION)


def _state(check: Check) -> str:
    if check.ok is None:
        return "unknown"
    return "ok" if check.ok else "MISSING" if check.required else "gap"


def _as_data(found: Examined) -> list[dict[str, object]]:
    made: list[dict[str, object]] = [
        {
            "name": check.name, "state": _state(check).lower(), "required": check.required,
            "evidence": check.evidence, "purpose": check.purpose, "remedy": check.remedy_command,
        }
        for check in found.checks
    ]  # fmt: skip
    for name in found.not_checked:
        made.append({"name": name, "state": "not checked"})
    return made


def _print(found: Examined) -> None:
    width = max(len(name) for name in (*(c.name for c in found.checks), *found.not_checked[:-1]))
    for check in found.checks:
        click.echo(f"{_state(check):<7}  {check.name:<{width}}  {check.evidence}")
        if check.ok is False and check.remedy_command:
            click.echo(f"{'':<{width + 9}}  mend: {check.remedy_command}")
    for name in found.not_checked:
        click.echo(f"-        {name:<{width}}  not checked")
    if found.mending:
        click.echo(f"\nall packages that are missing, at once:\n  {found.mending}")


def _score(session: Session, host: Host, rounds: int) -> dict[str, Any]:
    from benchrunner.inventory.repeating import measure

    shown = sys.stderr.isatty()

    def note(text: str) -> None:
        if shown:
            click.echo(f"\rA/A score: {text} ", nl=False, err=True)

    try:
        return measure(session, host, note, rounds)
    finally:
        if shown:
            click.echo(err=True)


def print_score(score: dict[str, Any]) -> None:
    """Prints an A/A score: what it means, and each kind of work."""
    click.echo(f"\n{score['sentence']}\n")
    click.echo("work     spread   A/B    95 % interval   repeats within  runs a side")
    for kind, one in score["kinds"].items():
        interval = f"{one['low']:.3f} - {one['high']:.3f}"
        click.echo(
            f"{kind:<7} {one['spread_pct']:>5.1f} %  {one['ratio']:.3f}  {interval:<14}  "
            f"{one['within_pct']:>12.1f} %  {one['samples'] // 2:>11}"
        )
    if not score["kept"]:
        click.echo("\nnot kept: there is no store yet at --data")
