"""``benchrunner doctor``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchrunner.cli.options import catalog_option, data_option, json_option, verb
from benchrunner.errors import EXIT_CONFIGURATION

if TYPE_CHECKING:
    from benchrunner.probes.check import Check


@verb("benchrunner doctor", "benchrunner doctor --data /mnt/nvme/results", name="doctor")
@data_option
@catalog_option
@json_option
def command(data: str, catalog: Path | None, *, as_json: bool) -> None:
    """Check this machine and print, for each gap, the command that mends it.

    Nothing is installed or changed. Exits 2 when something is missing that every sweep needs.
    """
    from benchrunner.catalog import Catalog
    from benchrunner.probes.doctor import Needs, doctor, mending_command
    from benchrunner.transports.local import LocalTransport

    engines = [Catalog(catalog).engine(name) for name in Catalog(catalog).names("engines")]
    packages = {p: f"building {e.title}" for e in engines for p in e.build.needs.debian}
    folder = Path("results" if "://" in data else data).absolute()
    transport = LocalTransport()
    checks = doctor(transport, str(folder), Needs(packages=packages))
    if as_json:
        click.echo(json.dumps([_as_data(check) for check in checks], indent=2))
    else:
        _print(checks)
        mending = mending_command(checks)
        if mending:
            click.echo(f"\nall that is missing, at once:\n  {mending}")
    if any(check.required and check.ok is False for check in checks):
        raise click.exceptions.Exit(EXIT_CONFIGURATION)


def _as_data(check: Check) -> dict[str, object]:
    return {
        "name": check.name, "ok": check.ok, "required": check.required,
        "evidence": check.evidence, "remedy": check.remedy_command,
    }  # fmt: skip


def _print(checks: tuple[Check, ...]) -> None:
    width = max(len(check.name) for check in checks)
    for check in checks:
        click.echo(f"{_mark(check):<7}  {check.name:<{width}}  {check.evidence}")
        if check.ok is False and check.remedy_command:
            click.echo(f"{'':<{width + 9}}  mend: {check.remedy_command}")


def _mark(check: Check) -> str:
    if check.ok is None:
        return "unknown"
    return "ok" if check.ok else "MISSING" if check.required else "gap"
