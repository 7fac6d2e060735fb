"""Whether a definition fits the others that it names: steps, tools, metrics, parameters, versions.

Pure, but for the names that a catalog says exist. The first thing wrong is an error that names file
and key.
"""

from __future__ import annotations

import re
import string
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Protocol

from benchrunner.catalog_errors import unquoted_version
from benchrunner.catalog_sections import (
    check_groups,
    check_lines,
    check_services,
    service_templates,
)
from benchrunner.compatibility import check_requirement
from benchrunner.definitions import Definition, Engine, Metric, Sweep, Tool, Workload
from benchrunner.errors import ConfigurationError
from benchrunner.expressions import evaluate, expand
from benchrunner.params import BUILTINS, check_parameter, normalised, typed
from benchrunner.suggest import did_you_mean, listed
from benchrunner.unfolding import expanded_steps, with_value
from benchrunner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from benchrunner.definitions import Scalar, Step


class Names(Protocol):
    """What a catalog knows."""

    def names(self, kind: str) -> tuple[str, ...]:
        """Every name of a kind."""
        ...

    def metrics(self) -> Mapping[str, Metric]:
        """Every metric by id."""
        ...

    def tool(self, name: str) -> Tool:
        """A tool."""
        ...

    def engine(self, name: str) -> Engine:
        """An engine."""
        ...


def check(path: Path, data: Mapping[str, Any], definition: Definition, known: Names) -> None:
    """Makes sure that a definition read from a file fits the rest.

    Args:
        path: the file.
        data: what stands there: numbers as they were written.
        definition: the same, validated.
        known: everything else that can be named.

    Raises:
        ConfigurationError: It does not; says where and what.
    """
    name = getattr(definition, "name", path.stem)
    if name != path.stem:
        raise ConfigurationError(
            f"{path}: name is {name!r}, but the file is called {path.name}", f"call it {name}.toml"
        )
    match definition:
        case Workload():
            _check_workload(path, definition, known)
        case Sweep():
            _check_sweep(path, data, definition, known)
        case Engine():
            patterns = {**definition.build.features, **definition.build.forbid}
            _check_patterns(path, "build", [*patterns.values(), definition.build.count])
            _check_base(path, definition, known)
        case Tool():
            _check_owner(path, definition)
            rules = [p for o in definition.output for p in (o.split, o.pattern, o.problem)]
            _check_patterns(path, "output", rules)
        case _:
            pass


def _check_base(path: Path, engine: Engine, known: Names) -> None:
    """An engine has sources, its own or those of an engine that has its own."""
    if engine.base is None:
        if "source" not in engine.model_fields_set:
            raise ConfigurationError(
                f"{path}: source is missing", "a [[source]], or base = the engine that has it"
            )
        return
    if engine.base not in known.names("engines"):
        raise _missing(f"{path}: base", "engine", engine.base, known.names("engines"))
    if engine.base == engine.name:
        raise ConfigurationError(f"{path}: base: an engine is not its own base", "leave it out")


def _check_owner(path: Path, tool: Tool) -> None:
    """A tool is one engine's, of several engines, the generic driver, or none's."""
    said = {"engine": tool.engine, "engines": tool.engines, "of_job": tool.of_job}
    names = [name for name, value in said.items() if value]
    if len(names) > 1:
        raise ConfigurationError(f"{path}: {' and '.join(names)} are there", "keep one of them")


def _check_workload(path: Path, workload: Workload, known: Names) -> None:
    _check_unique(f"{path}: steps", [step.name for step in workload.steps])
    _check_unique(f"{path}: variants", [variant.name for variant in workload.variants])
    _check_engines(path, workload, known)
    _check_parameters(path, workload)
    _check_steps(path, workload, known)
    check_services(path, workload, known.names("tools"))
    check_groups(path, workload)
    _check_rules(path, workload)
    _check_page(path, workload, known)
    _check_templates(path, workload, known)
    _check_texts(path, workload, known)


def _check_engines(path: Path, workload: Workload, known: Names) -> None:
    """An engine is a file of ours, or a tool that belongs to none and is its own (fio)."""
    engine = workload.engine
    if bool(engine) == bool(workload.engines):
        what = "both engine and engines are there" if engine else "engine is missing"
        raise ConfigurationError(
            f"{path}: {what}", 'engine = "rocksdb", or engines = ["lmdb", "leveldb"]'
        )
    _check_unique(f"{path}: engines", workload.engines)
    for name in (*workload.engines, *workload.also):
        if name not in known.names("engines"):
            raise _missing(f"{path}: engines", "engine", name, known.names("engines"))
    if workload.engines or engine in known.names("engines"):
        return
    if engine in known.names("tools") and known.tool(engine).is_free:
        return
    raise _missing(f"{path}: engine", "engine", engine, known.names("engines"))


def _check_parameters(path: Path, workload: Workload) -> None:
    for name in workload.params:
        if not name.isidentifier() or name in BUILTINS:
            raise ConfigurationError(
                f"{path}: params.{name} cannot be used as a name in templates",
                f"letters, digits and underscores, and none of {', '.join(BUILTINS)}",
            )
    for scale, values in workload.scale.items():
        for name, value in values.items():
            where = f"{path}: scale.{scale}.{name}"
            check_parameter(name, workload.params, where=where)
            typed(value, workload.params[name], where=where)
    if workload.scale and workload.default_scale not in workload.scale:
        raise _missing(f"{path}: default_scale", "scale", workload.default_scale, workload.scale)


def _check_steps(path: Path, workload: Workload, known: Names) -> None:
    earlier: list[str] = []
    for step in workload.steps:
        where = f"{path}: steps.{step.name}"
        if step.tool not in known.names("tools"):
            raise _missing(f"{where}.tool", "tool", step.tool, known.names("tools"))
        for used in step.use:
            if used not in workload.args:
                raise _missing(f"{where}.use", "argument set", used, workload.args)
        if step.part_of is not None and step.part_of not in earlier:
            raise _missing(f"{where}.part_of", "earlier step", step.part_of, earlier)
        check_requirement(step.requires, where=f"{where}.requires")
        if step.each:
            _check_each(f"{where}.each", step, workload)
        else:
            earlier.append(step.name)


def _check_each(where: str, step: Step, workload: Workload) -> None:
    """The parameter is a text of values, in the defaults and in every scale."""
    check_parameter(step.each, workload.params, where=where)
    if not isinstance(workload.params[step.each], str):
        raise ConfigurationError(
            f"{where}: parameter {step.each} is no list", f'{step.each} = "1,2,4"'
        )
    for values in (workload.params, *workload.scale.values()):
        try:
            expanded_steps(workload, {**workload.params, **values})
        except ConfigurationError as error:
            raise ConfigurationError(f"{where}: {error.message}", error.hint) from None


def _check_rules(path: Path, workload: Workload) -> None:
    for rule in workload.rule:
        where = f"{path}: rule.{rule.flag}"
        for bound in (rule.since, rule.until):
            if bound is not None and Version.parse(bound) is None:
                raise ConfigurationError(
                    f"{where}: {bound!r} is not a version", 'write it like "7.2"'
                )
        if rule.action == "rename" and rule.to is None:
            raise ConfigurationError(
                f"{where}: a rename needs to = the new flag", 'to = "new_flag"'
            )
        if rule.action == "set" and rule.value is None:
            raise ConfigurationError(f"{where}: set needs a value", "value = 0")
        params = {name: normalised(value) for name, value in workload.params.items()}
        expand(rule.value or 0, {**params, **BUILTINS, "asked": 1}, where=f"{where}.value")


def _check_page(path: Path, workload: Workload, known: Names) -> None:
    steps = [step.name for step in workload.steps]
    for where, step, metrics in _shown(workload):
        if step not in steps:
            raise _missing(f"{path}: {where}", "step", step, steps)
        for metric in metrics:
            if metric not in known.metrics():
                raise _missing(f"{path}: {where}", "metric", metric, known.metrics())
    check_lines(path, workload, known.metrics())
    _check_ceilings(path, workload, known)
    named = [("page.appendix", name) for name in workload.page.appendix]
    if workload.ceiling is not None and workload.ceiling.workload:
        named.append(("ceiling.workload", workload.ceiling.workload))
    for where, name in named:
        if name not in known.names("workloads"):
            raise _missing(f"{path}: {where}", "workload", name, known.names("workloads"))


def _check_ceilings(path: Path, workload: Workload, known: Names) -> None:
    """Ceilings are metrics; those that a workload gives come from steps and scales that it has."""
    taints = workload.ceiling.taints if workload.ceiling is not None else {}
    for metric in [*taints, *taints.values()]:
        if metric not in known.metrics():
            raise _missing(f"{path}: ceiling.taints", "metric", metric, known.metrics())
    steps = [step.name for step in workload.steps]
    for number, gift in enumerate(workload.gives, start=1):
        where = f"{path}: gives[{number}]"
        if gift.metric not in known.metrics():
            raise _missing(f"{where}.metric", "metric", gift.metric, known.metrics())
        if not any(fnmatchcase(name, gift.steps) for name in steps):
            raise _missing(f"{where}.steps", "step", gift.steps, steps)
        for scale in gift.scales:
            if scale not in workload.scale:
                raise _missing(f"{where}.scales", "scale", scale, workload.scale)


def _shown(workload: Workload) -> Iterator[tuple[str, str, list[str]]]:
    """Place, step and metrics of every table column and chart."""
    for number, table in enumerate(workload.page.tables, start=1):
        where = f"page.tables[{number}]"
        yield f"{where}.step", table.step, []
        for column in table.columns:
            metric = column if isinstance(column, str) else column.metric
            step = None if isinstance(column, str) else column.step
            of = None if isinstance(column, str) else column.of
            yield f"{where}.columns", step or table.step, [metric, *([of] if of else [])]
    for number, chart in enumerate(workload.page.charts, start=1):
        yield f"page.charts[{number}]", chart.step, [chart.metric, *filter(None, [chart.right])]


def _check_templates(path: Path, workload: Workload, known: Names) -> None:
    """Every template has a value with the default parameters."""
    params = {name: normalised(value) for name, value in workload.params.items()}
    for step in expanded_steps(workload, params):
        inside = with_value(step, params)
        for where, template in _step_templates(step, workload, known):
            expand(template, {**inside, **BUILTINS}, where=f"{path}: {where}")
        for where, template in _limits(step):
            expand(template, inside, where=f"{path}: {where}")
    for where, template in (*service_templates(workload), *_shared_templates(workload)):
        expand(template, {**params, **BUILTINS}, where=f"{path}: {where}")
    expand(workload.compression, params, where=f"{path}: compression")
    for where, expression in (
        ("disk", workload.estimate.disk),
        ("memory", workload.estimate.memory),
    ):
        if expression:
            evaluate(expression, params, where=f"{path}: estimate.{where}")
    if workload.data_on == "memory" and not workload.estimate.disk:
        raise ConfigurationError(
            f"{path}: data_on: how much memory the databases need is not said",
            "add [estimate] with disk = an expression over the parameters",
        )
    for number, check_ in enumerate(workload.check, start=1):
        evaluate(check_.that, params, where=f"{path}: check[{number}].that")


def _shared_templates(workload: Workload) -> Iterator[tuple[str, Scalar]]:
    """Those that no step or every step uses."""
    used = {name for step in workload.steps for name in step.use}
    sets: dict[str, Mapping[str, Scalar | list[str]]] = {
        f"args.{name}": values for name, values in workload.args.items() if name not in used
    }
    sets["pinned"] = workload.pinned
    for variant in workload.variants:
        sets[f"variants.{variant.name}.options"] = variant.options
        yield from ((f"variants.{variant.name}.wrap", word) for word in variant.wrap)
        yield from ((f"variants.{variant.name}.env.{k}", v) for k, v in variant.env.items())
    for where, values in sets.items():
        yield from _each_value(where, values)


def _step_templates(step: Step, workload: Workload, known: Names) -> Iterator[tuple[str, Scalar]]:
    """Those of one step, of the sets that it uses, and of the engines that it drives."""
    for name in step.use:
        yield from _each_value(f"args.{name}", workload.args[name])
    yield from _each_value(f"steps.{step.name}.args", step.args)
    yield from ((f"steps.{step.name}.words", word) for word in step.words)
    if known.tool(step.tool).of_job:
        for engine in [step.engine] if step.engine else workload.engines or [workload.engine]:
            yield from _each_value(f"engine {engine}: args", known.engine(engine).args)


def _each_value(
    where: str, values: Mapping[str, Scalar | list[str]]
) -> Iterator[tuple[str, Scalar]]:
    for flag, value in values.items():
        many = value if isinstance(value, list) else [value]
        yield from ((f"{where}.{flag}", one) for one in many)


def _limits(step: Step) -> Iterator[tuple[str, Scalar]]:
    limits = {"threads": step.threads, "seconds": step.seconds, "timeout_s": step.timeout_s}
    for key, value in limits.items():
        if value is not None:
            yield f"steps.{step.name}.{key}", value


def _check_texts(path: Path, workload: Workload, known: Names) -> None:
    """Texts of a page name parameters and metrics: ``{NUM_KEYS:,}``, ``{found_ratio:.0%}``."""
    allowed = {*workload.params, *known.metrics()}
    for where, text in _texts(workload):
        try:
            names = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
        except ValueError as error:
            raise ConfigurationError(f"{path}: {where}: {error}", "write {{ for a brace") from None
        for name in names:
            if name not in allowed:
                raise _missing(f"{path}: {where}", "parameter or metric", name, allowed)


def _texts(workload: Workload) -> Iterator[tuple[str, str]]:
    page = workload.page
    yield "page.intro", page.intro
    yield from ((f"page.setup[{number}]", line) for number, line in enumerate(page.setup, start=1))
    for step in workload.steps:
        yield from _step_texts(step)


def _step_texts(step: Step) -> Iterator[tuple[str, str]]:
    yield f"steps.{step.name}.title", step.title
    yield f"steps.{step.name}.text", step.text
    yield f"steps.{step.name}.command", step.command


def _check_sweep(path: Path, data: Mapping[str, Any], sweep: Sweep, known: Names) -> None:
    named = {"workloads": sweep.workloads, "engines": sweep.engines, "hosts": sweep.hosts}
    for kind, names in named.items():
        for name in names:
            if name not in known.names(kind):
                raise _missing(f"{path}: {kind}", kind.removesuffix("s"), name, known.names(kind))
    if sweep.server is not None and sweep.server not in known.names("hosts"):
        raise _missing(f"{path}: server", "host", sweep.server, known.names("hosts"))
    for number, cell in enumerate(data.get("exclude", []), start=1):
        version = cell.get("version")
        if isinstance(version, float | int):
            raise unquoted_version(path, f"exclude[{number}].version", version)


def _check_patterns(path: Path, where: str, patterns: Iterable[str]) -> None:
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ConfigurationError(
                f"{path}: {where}: {pattern!r} is not a regular expression: {error}",
                "use a literal string in single quotes",
            ) from None


def _check_unique(where: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"{where}: {name!r} is there twice", "give each its own name")


def _missing(where: str, what: str, name: str, known: Iterable[str]) -> ConfigurationError:
    names = list(known)
    shown = listed(names) if len(names) <= 30 else "benchrunner list metrics"
    return ConfigurationError(
        f"{where}: there is no {what} {name!r}{did_you_mean(name, names)}", shown
    )
