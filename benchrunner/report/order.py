"""In which order cells and rows stand, and what tells them apart. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from benchrunner.report.format import version_key
from benchrunner.report.lookup import part_text, varying

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from benchrunner.definitions import TableDefinition, Workload
    from benchrunner.report.families import Family
    from benchrunner.report.input import Cell

_Item = TypeVar("_Item")


def ranks_of(workload: Workload) -> Mapping[str, Sequence[str]]:
    """Return the coordinates whose values have an order of their own: the workload's."""
    return {
        "variant": [variant.name for variant in workload.variants],
        "engine": list(workload.engines),
    }


def ordered(
    items: Iterable[_Item],
    keys: Sequence[str],
    text_of: Callable[[_Item, str], str],
    ranks: Mapping[str, Sequence[str]],
) -> tuple[_Item, ...]:
    """Sort by keys (``version:desc``), the last key first, as stable sorts do."""
    found = list(items)
    for key in reversed(keys):
        name, _, direction = key.partition(":")
        found.sort(
            key=lambda item, name=name: _sort_key(text_of(item, name), ranks.get(name)),  # type: ignore[misc]
            reverse=direction == "desc",
        )
    return tuple(found)


def ordered_cells(
    cells: Iterable[Cell], keys: Sequence[str], workload: Workload
) -> tuple[Cell, ...]:
    """Sort cells by keys."""
    return ordered(cells, keys, part_text, ranks_of(workload))


def _sort_key(text: str, ranked: Sequence[str] | None) -> Any:
    if ranked is not None:
        return (ranked.index(text) if text in ranked else len(ranked), version_key(text))
    return version_key(text)


def row_keys(table: TableDefinition, cells: Sequence[Cell], family: Family) -> tuple[str, ...]:
    """Return the row keys with their order; what else tells rows apart is added at the end."""
    named = {key.partition(":")[0] for key in (*table.rows, *table.split)}
    others = (*varying(cells), *(["version:desc"] if several_versions(cells) else []))
    others += ("variant",) if len({cell.variant for cell in cells}) > 1 else ()
    others += (family.parameter,) if family.parameter else ()
    return (*table.rows, *(key for key in others if key.partition(":")[0] not in named))


def several_versions(cells: Iterable[Cell]) -> bool:
    """Return whether any engine is there in more than one version."""
    versions: dict[str, set[str]] = {}
    for cell in cells:
        versions.setdefault(cell.engine, set()).add(cell.version)
    return any(len(found) > 1 for found in versions.values())
