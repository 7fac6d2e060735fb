"""The options that choose what a sweep runs, shared by ``plan`` and ``sweep``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from benchrunner.cli.options import absolute, assignments, comma_list

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from benchrunner.catalog import Catalog
    from benchrunner.definitions import Sweep
    from benchrunner.session import Choices

OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--versions",
        metavar="LIST",
        help="Versions and ranges: 6.11.4,7.0..7.2,system.  [default: system]",
    ),
    click.option(
        "--variants",
        metavar="LIST",
        help="Variants of the workload: None,DIO.  [default: all]",
    ),
    click.option(
        "--scale",
        metavar="NAME",
        help="Scale preset: published, laptop, smoke.  [default: published]",
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="NAME=VALUE",
        help="Override a parameter of the workload; repeatable.",
    ),
    click.option(
        "--axis",
        "axes",
        multiple=True,
        metavar="NAME=V1,V2",
        help="Sweep over values of a parameter; repeatable.",
    ),
    click.option(
        "--exclude",
        "excludes",
        multiple=True,
        metavar="KEY=VALUE,...",
        help="Leave out matching cells: version=6.11.4,variant=DIO; repeatable.",
    ),
    click.option(
        "--repeat",
        type=click.IntRange(1, 1000),
        default=None,
        help="Trials of each job.  [default: 1]",
    ),
    click.option(
        "--order",
        type=click.Choice(["interleaved", "grouped"]),
        default=None,
        help="Whether versions take turns.  [default: interleaved]",
    ),
    click.option(
        "--source",
        metavar="LIST",
        help="Kinds of source to use, in order: crate,git,system,archive,path.",
    ),
    click.option(
        "--host",
        "hosts",
        multiple=True,
        metavar="NAME",
        help="Host to run on; repeatable.  [default: local]",
    ),
    click.option(
        "--spread/--each",
        default=None,
        help="Divide the jobs over the hosts, or run all of them on each.  [default: each]",
    ),
    click.option(
        "--as-shipped",
        is_flag=True,
        help="Leave defaults that moved between versions free.",
    ),
    click.option(
        "--no-ceiling",
        is_flag=True,
        help="Do not measure the device's ceiling first.",
    ),
    click.option(
        "--db-dir",
        metavar="DIR",
        help="Where databases go.  [default: below --data]",
    ),
    click.option(
        "--wal-dir",
        metavar="DIR",
        help="Where write-ahead logs go.  [default: with the database]",
    ),
)


def choosing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options, in the order written."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def places(cache: Path | None, catalog: Path | None, chosen: Mapping[str, Any]) -> Choices:
    """Places that the command line names, absolute, as they are stored with a sweep."""
    from benchrunner.session import Choices

    return Choices(
        database_dir=absolute(chosen.get("db_dir")),
        wal_dir=absolute(chosen.get("wal_dir")),
        keep_databases=bool(chosen.get("keep_db")),
        cache=absolute(cache),
        catalog=absolute(catalog),
    )


def make_sweep(catalog: Catalog, name: str, chosen: dict[str, Any]) -> Sweep:
    """The sweep that the command line describes: a sweep file, or a workload and options."""
    from benchrunner.definitions import Sweep

    if name in catalog.names("sweeps") and name not in catalog.names("workloads"):
        base = catalog.sweep(name).model_dump()
    else:
        workload = catalog.workload(name)
        base = {"name": name, "workloads": [name], "engines": {workload.engine: ["system"]}}
    return Sweep.model_validate({**base, **_given(catalog, base, chosen)})


def _given(catalog: Catalog, base: dict[str, Any], chosen: dict[str, Any]) -> dict[str, Any]:
    """Only what was given on the command line: it goes over what a sweep file says."""
    given: dict[str, Any] = {}
    if chosen["versions"]:
        engine = catalog.workload(base["workloads"][0]).engine
        given["engines"] = {**base["engines"], engine: comma_list(chosen["versions"])}
    for key, value in (
        ("variants", comma_list(chosen["variants"])),
        ("scale", chosen["scale"]),
        ("hosts", list(chosen["hosts"])),
        ("repeat", chosen["repeat"]),
        ("order", chosen["order"]),
        ("sources", comma_list(chosen["source"])),
        ("set", assignments(chosen["settings"], "--set")),
        ("axes", {k: comma_list(v) for k, v in assignments(chosen["axes"], "--axis").items()}),
        ("exclude", [assignments(comma_list(e), "--exclude") for e in chosen["excludes"]]),
    ):
        if value:
            given[key] = {**base.get(key, {}), **value} if isinstance(value, dict) else value
    if chosen["spread"] is not None:
        given["spread"] = chosen["spread"]
    if chosen["as_shipped"]:
        given["as_shipped"] = True
    if chosen["no_ceiling"]:
        given["ceilings"] = False
    return given
