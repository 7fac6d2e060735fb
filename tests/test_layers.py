"""Imports run one way: a module may use what stands below it, and stages do not know each other."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "benchrunner"

LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"errors", "faults", "suggest", "binaries"}),
    frozenset({"model", "events", "units", "processes", "controller"}),
    frozenset({"definitions", "versions", "compatibility", "expressions"}),
    frozenset(
        {"outcomes", "workdir", "params", "arguments", "flags", "identity", "effective", "ceiling",
         "derive", "in_memory", "steadiness"}
    ),
    frozenset({"unfolding"}),
    frozenset({"plan_cost"}),
    frozenset({"plan_cells"}),
    frozenset({"plan_checks"}),
    frozenset(
        {"command", "plan", "catalog", "catalog_checks", "catalog_errors", "catalog_sections",
         "sources", "transports", "probes", "parse", "store", "report", "toolchain"}
    ),
    frozenset({"launchers", "host_lease", "surroundings", "presence"}),
    frozenset({"building"}),
    frozenset({"build"}),
    frozenset({"run_parts"}),
    frozenset({"run_tools"}),
    frozenset({"service_host"}),
    frozenset({"services", "recovery"}),
    frozenset({"run_steps"}),
    frozenset({"run", "live", "session"}),
    frozenset({"places", "reading", "reporting", "selection", "artifacts", "host_files",
         "memory_disk"}),
    frozenset({"host_places", "host_right"}),
    frozenset({"host_session"}),
    frozenset({"inventory", "server_host"}),
    frozenset({"stored"}),
    frozenset({"sweeping", "side_by_side"}),
    frozenset({"pipeline"}),
    frozenset({"cli"}),
    frozenset({"__main__"}),
)  # fmt: skip
"""From the bottom to the top. A module imports from its own layer only within its own package."""

SAME_LAYER = {
    ("catalog", "catalog_checks"), ("catalog", "catalog_errors"),
    ("catalog_checks", "catalog_errors"), ("catalog_checks", "catalog_sections"),
    ("artifacts", "selection"), ("versions", "compatibility"),
    ("compatibility", "versions"), ("identity", "arguments"), ("toolchain", "transports"),
    ("launchers", "host_lease"),
}  # fmt: skip
"""Pairs (importer, imported) within a layer that belong together."""


def layer_of(name: str) -> int | None:
    for number, names in enumerate(LAYERS):
        if name in names:
            return number
    return None


def top_level(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    """Top-level names of our package that a module imports when it runs (types left out)."""
    tree = ast.parse(path.read_text())
    typing_only = {
        child
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for child in ast.walk(node)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module == "benchrunner":
            names = [f"benchrunner.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("benchrunner.")}
    return found


MODULES = sorted(
    path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py" or path.parent != PACKAGE
)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_what_stands_below_it(path: Path) -> None:
    importer = top_level(path)
    own = layer_of(importer)
    assert own is not None, f"{importer} stands in no layer: add it to LAYERS"
    for imported in imports_of(path) - {importer}:
        other = layer_of(imported)
        assert other is not None, f"{imported} stands in no layer: add it to LAYERS"
        allowed = other < own or (importer, imported) in SAME_LAYER
        assert allowed, f"{path.name} ({importer}) imports {imported}, which stands not below it"


def test_heavy_libraries_are_not_imported_for_help() -> None:
    import subprocess
    import sys

    code = (
        "import sys; sys.argv = ['benchrunner', '--help']\n"
        "from benchrunner.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'pydantic', 'sqlalchemy', 'pandas', 'matplotlib', 'jinja2', 'paramiko', 'rich',"
        " 'scipy', 'alembic', 'numpy'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
