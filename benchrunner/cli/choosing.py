"""The options that choose what a sweep runs, shared by ``plan`` and ``sweep``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from benchrunner.cli import completing
from benchrunner.cli.options import absolute, assignments, comma_list
from benchrunner.errors import ConfigurationError
from benchrunner.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from benchrunner.catalog import Catalog
    from benchrunner.definitions import Sweep, Workload
    from benchrunner.session import Choices

OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--engines",
        metavar="LIST",
        shell_complete=completing.rivals,
        help="Engines of a workload that compares several, each with a version or range if wanted: "
        "lmdb,leveldb@1.20,leveldb@1.23.  [default: all]",
    ),
    click.option(
        "--versions",
        metavar="LIST",
        help="Versions and ranges: 6.11.4,7.0..7.2,system.  [default: system]",
    ),
    click.option(
        "--variants",
        metavar="LIST",
        shell_complete=completing.variants,
        help="Variants of the workload: None,DIO.  [default: all]",
    ),
    click.option(
        "--scale",
        metavar="NAME",
        shell_complete=completing.scales,
        help="Scale preset: published, laptop, smoke.  [default: published]",
    ),
    click.option(
        "--only",
        metavar="LIST",
        help="Groups of the workload's steps: io,redis.  [default: all]",
    ),
    click.option(
        "--threads",
        metavar="LIST",
        help="Short for --set THREADS=LIST: 1,2,4.",
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
        "--policy",
        type=click.Choice(["carry", "pristine"]),
        default=None,
        help="Whether a step goes on with the database as the last one left it, or starts from the "
        "loaded one.  [default: the workload's]",
    ),
    click.option(
        "--source",
        metavar="LIST",
        help="Kinds of source to use, in order: crate,git,apt,npm,pypi,system,archive,path.",
    ),
    click.option(
        "--host",
        "hosts",
        multiple=True,
        metavar="NAME",
        shell_complete=completing.hosts,
        help="Host to run on; repeatable.  [default: local]",
    ),
    click.option(
        "--server",
        metavar="NAME",
        shell_complete=completing.hosts,
        help="Host that runs the servers (redis-server, iperf3, ...) of the clients on --host.  "
        "[default: the same host, over loopback]",
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
        engines = {workload.engine: [_version(catalog, workload)]} if workload.engine else {}
        base = {"name": name, "workloads": [name], "engines": engines}
    return Sweep.model_validate({**base, **_given(catalog, base, chosen)})


def _version(catalog: Catalog, workload: Workload) -> str:
    """The version that is meant where none is asked for: as installed, or our own program."""
    known = catalog.names("engines")
    kinds = catalog.engine(workload.engine).source if workload.engine in known else []
    return "own" if [source.kind for source in kinds] == ["native"] else "system"


def _given(catalog: Catalog, base: dict[str, Any], chosen: dict[str, Any]) -> dict[str, Any]:
    """Only what was given on the command line: it goes over what a sweep file says."""
    given: dict[str, Any] = {}
    first = catalog.workload(base["workloads"][0])
    if chosen["engines"] is not None:
        given["engines"] = engine_versions(first, chosen["engines"])
    if chosen["versions"]:
        engines = given.get("engines", base["engines"])
        engine = first.engine or _only_engine(first, engines)
        given["engines"] = {**engines, engine: comma_list(chosen["versions"])}
    settings = assignments(chosen["settings"], "--set")
    if chosen["threads"] is not None:
        settings = {**settings, "THREADS": _threads(first, chosen["threads"], settings)}
    for key, value in (
        ("variants", comma_list(chosen["variants"])),
        ("scale", chosen["scale"]),
        ("only", comma_list(chosen["only"])),
        ("hosts", list(chosen["hosts"])),
        ("server", chosen["server"]),
        ("repeat", chosen["repeat"]),
        ("order", chosen["order"]),
        ("policy", chosen["policy"]),
        ("sources", comma_list(chosen["source"])),
        ("set", settings),
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


def engine_versions(workload: Workload, text: str) -> dict[str, list[str]]:
    """What ``--engines`` names: engine -> versions, none where the engine's default is meant.

    Raises:
        ConfigurationError: The workload is for one engine, has none of that name, or a word is
            there twice.
    """
    if workload.engine:
        raise ConfigurationError(
            f"workload {workload.name} is for one engine, {workload.engine}; --engines is for "
            "workloads that compare several",
            "--versions chooses its versions",
        )
    found: dict[str, list[str]] = {}
    words = comma_list(text)
    if not words:
        raise ConfigurationError("--engines names no engine", _example(workload))
    for word in words:
        name, at, version = word.partition("@")
        if name not in workload.engines:
            near = did_you_mean(name, workload.engines)
            raise ConfigurationError(
                f"--engines {word}: workload {workload.name} has no engine {name!r}{near}",
                _example(workload),
            )
        if at and not version:
            raise ConfigurationError(
                f"--engines {word}: no version stands after the @", f"--engines {name}@1.23"
            )
        if words.count(word) > 1 or (name in found and not (at and found[name])):
            raise ConfigurationError(
                f"--engines {text}: {name} is there twice",
                f"several versions of it: --engines {name}@1.20,{name}@1.23",
            )
        found.setdefault(name, []).extend([version] if version else [])
    return found


def _example(workload: Workload) -> str:
    return f"--engines {','.join(workload.engines)}"


def _only_engine(workload: Workload, engines: Mapping[str, Any]) -> str:
    """The engine that ``--versions`` speaks of where a workload has several."""
    if len(engines) == 1 and not any(engines.values()):
        return next(iter(engines))
    raise ConfigurationError(
        f"--versions: workload {workload.name} has {len(workload.engines)} engines, each with "
        "versions of its own",
        f"--engines {workload.engines[0]}@VERSION,...",
    )


def _threads(workload: Workload, text: str, settings: Mapping[str, str]) -> str:
    """The value of ``--threads``.

    Raises:
        ConfigurationError: The workload has no such parameter, or ``--set`` gives it too.
    """
    if "THREADS" not in workload.params:
        near = " (it has NUM_THREADS)" if "NUM_THREADS" in workload.params else ""
        hint = "--set NUM_THREADS=4" if near else "benchrunner list workloads"
        raise ConfigurationError(
            f"--threads: workload {workload.name} has no parameter THREADS{near}", hint
        )
    if "THREADS" in settings:
        raise ConfigurationError("--threads and --set THREADS are the same", "give one of them")
    return text
