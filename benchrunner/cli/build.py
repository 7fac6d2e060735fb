"""``benchrunner build ENGINE``."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

from benchrunner.cli import completing
from benchrunner.cli.options import (
    cache_option,
    catalog_option,
    comma_list,
    default_cache,
    json_option,
    quiet_option,
    verb,
)
from benchrunner.errors import EXIT_TRIAL_FAILED

if TYPE_CHECKING:
    from pathlib import Path

    from benchrunner.definitions import Engine
    from benchrunner.events import Observer
    from benchrunner.model import Artifact, SourceRef
    from benchrunner.session import Session


@verb(
    "benchrunner build rocksdb --versions 6.11.4,7.2.2",
    "benchrunner build rocksdb --versions 7.0..7.4 --source crate --jobs 4",
    "benchrunner build rocksdb --versions ./my-rocksdb --json",
    "benchrunner build leveldb --versions 1.20,1.22,1.23 --driver",
    name="build",
)
@click.argument("engine", shell_complete=completing.engines)
@click.option(
    "--versions", required=True, metavar="LIST",
    help="Versions, ranges, branches, commits, trees: 6.11.4,7.0..7.2,main,./rocksdb.",
)  # fmt: skip
@click.option("--source", metavar="LIST", help="Kinds of source to use, in order: crate,git.")
@click.option(
    "--driver", is_flag=True,
    help="Compile kvbench against it as well, as sweeps of several engines do.",
)  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), help="Compilers at once.  [default: processors]")
@cache_option
@catalog_option
@json_option
@quiet_option
def command(
    engine: str,
    cache: Path | None,
    catalog: Path | None,
    *,
    as_json: bool,
    quiet: bool,
    **chosen: Any,
) -> None:
    """Build versions of ENGINE into the cache; what is there already is not built again.

    Exits 1 when a build failed; the others are built all the same.
    """
    from benchrunner.cli.progress import observer
    from benchrunner.selection import resolve
    from benchrunner.session import Session, Settings

    session = Session(Settings("", cache or default_cache(), catalog, chosen["jobs"]))
    definition = session.catalog.engine(engine)
    words, kinds = comma_list(chosen["versions"]), comma_list(chosen["source"])
    refs, skipped = resolve(session, definition, words, kinds)
    with observer(quiet=quiet or as_json, as_json=False) as watch:
        driver = definition.build.driver if chosen["driver"] else ""
        artifacts = [_build(session, definition, ref, watch, driver) for ref in refs]
    if as_json:
        click.echo(json.dumps([_as_data(artifact) for artifact in artifacts], indent=2))
    else:
        for artifact in artifacts:
            _print(artifact, quiet=quiet)
        for what, why in skipped:
            click.echo(f"left out: {what}: {why}", err=True)
    if any(artifact.state != "built" for artifact in artifacts):
        raise click.exceptions.Exit(EXIT_TRIAL_FAILED)


def _build(
    session: Session, engine: Engine, ref: SourceRef, watch: Observer, driver: str
) -> Artifact:
    """One build with its progress; the cache answers at once where it can."""
    from benchrunner.build import Workshop, build
    from benchrunner.events import Event

    name = f"{engine.title} {ref.version}"

    def progress(done: int, total: int | None) -> None:
        watch(Event("build-progress", "", {"version": name, "done": done, "total": total}))

    def note(text: str) -> None:
        watch(Event("note", text))

    jobs = session.settings.jobs or os.cpu_count() or 1
    watch(Event("build", f"{name} from {ref.kind} {ref.ref}", {"ref": ref.ref}))
    workshop = Workshop(session.settings.cache, jobs, progress, note, driver=driver)
    artifact = build(engine, ref, workshop)
    data = {"version": ref.version, "state": artifact.state, "artifact": artifact.id}
    watch(Event("build-end", f"{name}: {artifact.state}", data))
    return artifact


def _as_data(artifact: Artifact) -> dict[str, Any]:
    return {
        "engine": artifact.engine, "version": artifact.version, "source": artifact.source,
        "ref": artifact.ref, "state": artifact.state, "artifact": artifact.id,
        "commit": artifact.commit, "directory": artifact.directory,
        "binaries": dict(artifact.binaries), "sha256": dict(artifact.sha256),
        "compiler": artifact.compiler, "features": sorted(artifact.features),
        "seconds": artifact.seconds, "log": artifact.log, "reason": artifact.reason,
    }  # fmt: skip


def _print(artifact: Artifact, *, quiet: bool) -> None:
    """What was built, on standard output; what was not, with the end of its log, on the other."""
    title = f"{artifact.engine} {artifact.version} ({artifact.source} {artifact.ref})"
    if artifact.state != "built":
        click.echo(f"{title}: {artifact.state}: {artifact.reason}", err=True)
        if artifact.log:
            click.echo(f"  log       {artifact.log}", err=True)
        return
    if quiet:
        return
    seconds = "unknown" if artifact.seconds is None else f"{artifact.seconds:.1f} s when built"
    rows = [("artifact", artifact.id)]
    for name, path in artifact.binaries.items():
        rows += [("path", path), ("sha-256", artifact.sha256[name])]
    rows += [
        ("compiler", artifact.compiler or "unknown"),
        ("features", ", ".join(sorted(artifact.features)) or "none"),
        ("time", seconds),
    ]
    click.echo(title)
    for label, value in rows:
        click.echo(f"  {label:<9} {value}")
