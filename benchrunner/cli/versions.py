"""``benchrunner versions ENGINE``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from benchrunner.cli import completing
from benchrunner.cli.options import (
    cache_option,
    catalog_option,
    comma_list,
    default_cache,
    json_option,
    verb,
)

if TYPE_CHECKING:
    from pathlib import Path

    from benchrunner.definitions import Engine
    from benchrunner.model import SourceRef

HEADINGS = ("version", "source", "ref", "note")


@verb(
    "benchrunner versions rocksdb",
    "benchrunner versions rocksdb --source crate --json",
    name="versions",
)
@click.argument("engine", shell_complete=completing.engines)
@click.option("--source", metavar="LIST", help="Kinds of source to ask: crate,git,system.")
@cache_option
@catalog_option
@json_option
def command(
    engine: str, source: str | None, cache: Path | None, catalog: Path | None, *, as_json: bool
) -> None:
    """List the versions of ENGINE that can be had, newest first, and from where.

    A source that cannot be asked, because it is offline or not installed, is a note, not an error.
    """
    from benchrunner.catalog import Catalog
    from benchrunner.selection import newest_first
    from benchrunner.sources import list_versions

    definition = Catalog(catalog).engine(engine)
    listing = list_versions(definition, comma_list(source))
    built = _built(definition, listing.refs, cache or default_cache())
    rows = [
        {
            "version": ref.version, "source": ref.kind, "ref": ref.ref, "note": ref.note,
            "built": ref in built,
        }
        for ref in newest_first(list(listing.refs))
    ]  # fmt: skip
    if as_json:
        document = {"engine": engine, "versions": rows, "notes": list(listing.notes)}
        click.echo(json.dumps(document, indent=2))
        return
    _print(rows)
    for note in listing.notes:
        click.echo(f"note: {note}", err=True)


def _built(engine: Engine, refs: tuple[SourceRef, ...], cache: Path) -> set[SourceRef]:
    """The versions that the cache has for this machine's compiler; none where there is none."""
    from benchrunner.build import RECORD, cache_key, chosen
    from benchrunner.errors import BuildError
    from benchrunner.toolchain import find_toolchain

    sources = [ref for ref in refs if ref.kind != "system"]
    if not sources:
        return set()
    try:
        toolchain = find_toolchain()
    except BuildError:
        return set()
    folder = cache / "artifacts"

    def is_built(ref: SourceRef) -> bool:
        recipes = (chosen(engine, ref), chosen(engine, ref, engine.build.driver))
        keys = {cache_key(recipe, ref, toolchain) for recipe in recipes}
        return any((folder / key / RECORD).is_file() for key in keys)

    return {ref for ref in sources if is_built(ref)}


def _print(rows: list[dict[str, Any]]) -> None:
    cells = [
        (row["version"], row["source"], row["ref"], _note(row["note"], built=row["built"]))
        for row in rows
    ]
    table = [HEADINGS, *cells]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEADINGS))]
    for row in table:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())


def _note(note: str, *, built: bool) -> str:
    return ", ".join(text for text in ("built" if built else "", note) if text)
