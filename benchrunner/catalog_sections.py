"""Whether a workload's services, groups and lines fit the rest of it. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from benchrunner.definitions import LineColumn
from benchrunner.errors import ConfigurationError
from benchrunner.suggest import did_you_mean, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from benchrunner.definitions import LinesDefinition, Scalar, Service, Workload


def check_services(path: Path, workload: Workload, tools: Iterable[str]) -> None:
    """Each has a tool, a way to tell that it is ready, and a name that no step has."""
    names = [service.name for service in workload.services]
    taken = [step.name for step in workload.steps]
    for number, service in enumerate(workload.services):
        where = f"{path}: services.{service.name}"
        if service.name in names[:number] or service.name in taken:
            raise ConfigurationError(
                f"{where}: a step or service of this name is there already", "give it its own name"
            )
        _named(f"{where}.tool", "tool", service.tool, tools)
        if service.port is None and not service.ready:
            raise ConfigurationError(
                f"{where}: nothing tells when it is ready", 'port = 6379, or ready = "a pattern"'
            )
        _check_pattern(f"{where}.ready", service)
    for step in workload.steps:
        for name in step.services:
            _named(f"{path}: steps.{step.name}.services", "service", name, names)


def _check_pattern(where: str, service: Service) -> None:
    try:
        re.compile(service.ready)
    except re.error as error:
        raise ConfigurationError(
            f"{where}: {service.ready!r} is not a regular expression: {error}",
            "use a literal string in single quotes",
        ) from None


def check_groups(path: Path, workload: Workload) -> None:
    """A step's group and its engine are among those of the workload."""
    for step in workload.steps:
        where = f"{path}: steps.{step.name}"
        if step.group:
            _named(f"{where}.group", "group", step.group, workload.groups)
        if step.engine:
            _named(f"{where}.engine", "engine in also", step.engine, workload.also)


def check_lines(path: Path, workload: Workload, metrics: Mapping[str, object]) -> None:
    """Lines name groups, steps and metrics that there are."""
    steps = [step.name for step in workload.steps]
    for number, table in enumerate(workload.page.lines, start=1):
        where = f"{path}: page.lines[{number}]"
        _named(f"{where}.group", "group", table.group, workload.groups)
        for metric in _metrics(table):
            if metric not in metrics:
                near = did_you_mean(metric, metrics)
                raise ConfigurationError(
                    f"{where}.columns: there is no metric {metric!r}{near}",
                    "benchrunner list metrics",
                )
        for line in table.lines:
            if line.step:
                _named(f"{where}.lines.{line.title}", "step", line.step, steps)


def _metrics(table: LinesDefinition) -> Iterator[str]:
    for column in table.columns:
        yield from column.any if isinstance(column, LineColumn) else [column]


def service_templates(workload: Workload) -> Iterator[tuple[str, Scalar]]:
    """Every template of the services, with its place."""
    for service in workload.services:
        where = f"services.{service.name}"
        for flag, value in service.args.items():
            words = value if isinstance(value, list) else [value]
            yield from ((f"{where}.args.{flag}", word) for word in words)
        yield from ((f"{where}.words", word) for word in service.words)
        if service.port is not None:
            yield f"{where}.port", service.port


def _named(where: str, what: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name not in names:
        raise ConfigurationError(
            f"{where}: there is no {what} {name!r}{did_you_mean(name, names)}", listed(names)
        )
