"""``benchrunner read TOOL FILE...``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchrunner.cli import completing
from benchrunner.cli.options import catalog_option, json_option, verb

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchrunner.definitions import Metric
    from benchrunner.model import Parsed


@verb(
    "benchrunner read db_bench OLD.log --json",
    "benchrunner read db_bench stdout.txt --stderr stderr.txt",
    "benchrunner read fio fio-output.txt",
    name="read",
)
@click.argument("tool", shell_complete=completing.tools)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--stderr", type=click.Path(path_type=Path), help="Standard error of a single FILE.")
@catalog_option
@json_option
def command(
    tool: str, files: tuple[Path, ...], stderr: Path | None, catalog: Path | None, *, as_json: bool
) -> None:
    """Understand output files of TOOL (db_bench, fio, ...), plain or gzip, without a store.

    Prints every measurement with its phase, run, role, metric and unit, and what is wrong with the
    output: contradictions, and reasons to distrust it.
    """
    from benchrunner.catalog import Catalog
    from benchrunner.errors import ConfigurationError
    from benchrunner.parse import parse_output
    from benchrunner.parse.validity import find_problems

    if stderr is not None and len(files) > 1:
        raise ConfigurationError("--stderr belongs to a single file", "read them one by one")
    known = Catalog(catalog)
    definition = known.tool(tool)
    results = []
    for path in files:
        parsed = parse_output(definition.parser, path, stderr, definition.output)
        problems = (*parsed.problems, *find_problems(parsed.measurements))
        results.append((path, parsed, problems))
    if as_json:
        documents = [_as_data(*result, known.metrics()) for result in results]
        click.echo(json.dumps(documents if len(documents) > 1 else documents[0], indent=2))
        return
    for path, parsed, problems in results:
        _print(path, parsed, problems, known.metrics())


def _as_data(
    path: Path, parsed: Parsed, problems: tuple[str, ...], metrics: Mapping[str, Metric]
) -> dict[str, Any]:
    return {
        "file": str(path),
        "facts": dict(parsed.facts),
        "measurements": [
            {"phase": m.phase, "run": m.run, "role": m.role, "metric": m.metric, "value": m.value,
             "unit": metrics[m.metric].unit}
            for m in parsed.measurements
        ],
        "warnings": [
            {"name": t.name, "evidence": t.evidence, "remedy": t.remedy} for t in parsed.taints
        ],
        "problems": list(problems),
    }  # fmt: skip


def _print(
    path: Path, parsed: Parsed, problems: tuple[str, ...], metrics: Mapping[str, Metric]
) -> None:
    click.echo(f"{path}")
    for m in parsed.measurements:
        what = "/".join(filter(None, (m.phase, f"run {m.run}" if m.run > 1 else None, m.role)))
        click.echo(
            f"  {what or 'process':<32} {m.metric:<32} {m.value:>16,.10g} {metrics[m.metric].unit}"
        )
    for taint in parsed.taints:
        click.echo(f"  warning: {taint.name}: {taint.evidence}; {taint.remedy}")
    for problem in problems:
        click.echo(f"  invalid: {problem}")
