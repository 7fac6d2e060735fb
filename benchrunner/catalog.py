"""Finds and validates what people write in TOML; the only reader of the data folders.

In: folders. Out: definitions. A name that several folders have is taken from the first of
``--catalog``, the working directory, ``$BENCHRUNNER_PATH``, what is shipped. Imports pydantic.
"""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import ValidationError

from benchrunner.catalog_checks import check
from benchrunner.catalog_errors import WrittenFloat, invalid, syntax_error
from benchrunner.definitions import Definition, Engine, Host, Metric, Sweep, Tool, Workload
from benchrunner.errors import ConfigurationError
from benchrunner.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Kind = Literal["workloads", "engines", "tools", "hosts", "sweeps", "metrics"]
AnyDefinition = TypeVar("AnyDefinition", bound=Definition)

KINDS: Mapping[str, type[Definition]] = {
    "workloads": Workload,
    "engines": Engine,
    "tools": Tool,
    "hosts": Host,
    "sweeps": Sweep,
    "metrics": Metric,
}
INHERITED = ("default", "flags", "source", "build", "data")
"""What an engine has from its base where it says nothing itself."""
LOCAL_HOST = "local"
"""The host that exists without a file: this machine."""


class Catalog:
    """Every definition that can be named, read when first asked for."""

    def __init__(
        self,
        directory: Path | None = None,
        *,
        working_directory: Path | None = None,
        search_path: Sequence[Path] | None = None,
    ) -> None:
        """Says where to look; reads nothing yet.

        Args:
            directory: ``--catalog``; searched first, and must exist.
            working_directory: default: the process's.
            search_path: default: ``$BENCHRUNNER_PATH``.
        """
        if directory is not None and not directory.is_dir():
            raise ConfigurationError(
                f"--catalog {directory} is not a folder", "name the folder that holds workloads/"
            )
        extra = _environment_path() if search_path is None else search_path
        chosen = [] if directory is None else [directory]
        shipped = [_PACKAGE, _PACKAGE.parent] if _is_checkout() else [_PACKAGE]
        self._roots = [*chosen, working_directory or Path.cwd(), *extra, *shipped]
        self._metric_roots = [*chosen, *extra, _PACKAGE]
        self._files: dict[str, dict[str, Path]] = {}
        self._read: dict[tuple[str, str], Definition] = {}
        self._metrics: dict[str, Metric] | None = None
        self._metric_files: dict[str, Path] = {}

    def names(self, kind: str) -> tuple[str, ...]:
        """Every name of a kind, sorted.

        Raises:
            ConfigurationError: There is no such kind.
        """
        if kind not in KINDS:
            raise ConfigurationError(
                f"there is no kind {kind!r}{did_you_mean(kind, KINDS)}",
                f"one of {', '.join(KINDS)}",
            )
        if kind == "metrics":
            return tuple(self.metrics())
        implied = {LOCAL_HOST} if kind == "hosts" else set()
        return tuple(sorted({*self._found(kind), *implied}))

    def where(self, kind: str, name: str) -> Path | None:
        """The file that a name comes from; ``None`` for the host ``local`` without a file.

        Raises:
            ConfigurationError: There is no such name.
        """
        if name not in self.names(kind):
            raise _unknown(kind, name, self.names(kind))
        if kind == "metrics":
            return self._metric_files[name]
        return self._found(kind).get(name)

    def workload(self, name: str) -> Workload:
        """A workload."""
        return self._get("workloads", name, Workload)

    def engine(self, name: str) -> Engine:
        """An engine, with what it has from its base."""
        engine = self._get("engines", name, Engine)
        if engine.base is None:
            return engine
        base = self._get("engines", engine.base, Engine)
        if base.base is not None:
            raise ConfigurationError(
                f"{self._found('engines')[name]}: base: {base.name} has a base itself",
                f'base = "{base.base}"',
            )
        own = engine.model_fields_set
        taken = [field for field in INHERITED if field not in own]
        return engine.model_copy(update={field: getattr(base, field) for field in taken})

    def tool(self, name: str) -> Tool:
        """A tool."""
        return self._get("tools", name, Tool)

    def host(self, name: str) -> Host:
        """A host; ``local`` needs no file."""
        if name == LOCAL_HOST and name not in self._found("hosts"):
            return Host(name=LOCAL_HOST)
        return self._get("hosts", name, Host)

    def sweep(self, name: str) -> Sweep:
        """A sweep."""
        return self._get("sweeps", name, Sweep)

    def metrics(self) -> Mapping[str, Metric]:
        """Every metric by id: ``metrics.toml`` of the package and of folders that were named."""
        if self._metrics is None:
            self._metrics = {}
            for path in (root / "metrics.toml" for root in self._metric_roots):
                for name, entry in (_toml(path) if path.is_file() else {}).items():
                    if name not in self._metrics:
                        self._metrics[name] = _validated(path, {name: entry}, Metric, name)
                        self._metric_files[name] = path
        return self._metrics

    def metric(self, metric_id: str) -> Metric:
        """One metric."""
        if metric_id not in self.metrics():
            raise _unknown("metrics", metric_id, self.metrics())
        return self.metrics()[metric_id]

    def flags(self, engine: str) -> Mapping[str, Any]:
        """The flag matrix of an engine's tool (flag -> versions and type); empty without a file."""
        definition = self.engine(engine)
        place = self._found("engines")[definition.built_as]
        if not definition.flags:
            return {}
        path = place.parent / definition.flags
        try:
            matrix = json.loads(_text(path))
        except ValueError as error:
            raise ConfigurationError(f"{path} is not JSON: {error}", f"{place}: flags") from None
        if not isinstance(matrix, dict) or not isinstance(matrix.get("flags"), dict):
            raise ConfigurationError(f"{path} has no table of flags", f"{place}: flags")
        return matrix

    def template(self, name: str) -> Path:
        """The file of a page template, ``page.wiki.j2``."""
        folders = [root / "templates" for root in self._roots]
        found = {path.name: path for root in reversed(folders) for path in root.glob("*")}
        if name not in found:
            raise _unknown("templates", name, found)
        return found[name]

    def _found(self, kind: str) -> Mapping[str, Path]:
        """Name -> file, the first folder that has a name first."""
        if kind not in self._files:
            found: dict[str, Path] = {}
            for root in self._roots:
                for path in sorted((root / kind).glob("*.toml")):
                    found.setdefault(path.stem, path)
            self._files[kind] = found
        return self._files[kind]

    def _get(self, kind: str, name: str, model: type[AnyDefinition]) -> AnyDefinition:
        if name not in self._found(kind):
            raise _unknown(kind, name, self.names(kind))
        key = (kind, name)
        if key not in self._read:
            path = self._found(kind)[name]
            data = _toml(path)
            definition = _validated(path, data, model)
            check(path, data, definition, self)
            self._read[key] = definition
        found = self._read[key]
        assert isinstance(found, model)  # noqa: S101
        return found


_PACKAGE = Path(__file__).parent


def _is_checkout() -> bool:
    """Whether the package lies in its repository; installed, its parent is not ours to read."""
    return (_PACKAGE.parent / "pyproject.toml").is_file()


def _environment_path() -> list[Path]:
    return [Path(part) for part in os.environ.get("BENCHRUNNER_PATH", "").split(os.pathsep) if part]


def _unknown(kind: str, name: str, known: Any) -> ConfigurationError:
    return ConfigurationError(
        f"there is no {kind.removesuffix('s')} {name!r}{did_you_mean(name, known)}",
        f"benchrunner list {kind}" if kind in KINDS else "",
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{path} is not UTF-8 text: byte {error.start}", f"iconv -t UTF-8 {path}"
        ) from None
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}", f"ls -l {path}"
        ) from None


def _toml(path: Path) -> dict[str, Any]:
    text = _text(path)
    try:
        return tomllib.loads(text, parse_float=WrittenFloat)
    except tomllib.TOMLDecodeError as error:
        raise syntax_error(path, text, error) from None


def _validated(
    path: Path, data: dict[str, Any], model: type[AnyDefinition], inside: str | None = None
) -> AnyDefinition:
    """The definition in a file, or in one table of it."""
    try:
        return model.model_validate(data if inside is None else data[inside])
    except ValidationError as error:
        raise invalid(path, data, model, error, inside) from None
