"""Writes ``reference.md`` beside this file: every key of every TOML file, from its definition.

Run it after a change of ``benchrunner/definitions``; a test holds that the page is in step.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from benchrunner import definitions
from benchrunner.params import BUILTINS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

FILES: dict[str, type[BaseModel]] = {
    "`workloads/NAME.toml`": definitions.Workload,
    "`sweeps/NAME.toml`": definitions.Sweep,
    "`hosts/NAME.toml`": definitions.Host,
    "`engines/NAME.toml`": definitions.Engine,
    "`tools/NAME.toml`": definitions.Tool,
    "`metrics.toml`, a table for each metric id": definitions.Metric,
}
INTRODUCTION = """# Reference: the TOML files

Made from `benchrunner/definitions` by `docs/make_reference.py`; do not edit it by hand. The
words are in [the glossary](glossary.md).

Files are looked up in `--catalog DIR`, in the working directory, in the folders of
`$BENCHRUNNER_PATH`, and in what is shipped; the first that has a name wins, and `benchrunner list
workloads` tells which that is. A file is called after its `name`. An unknown key is an error.
Versions are texts in quotes: `"7.10"`, for TOML reads 7.10 as the number 7.1.

Texts in `args`, `pinned`, `options`, `wrap` and `env` are templates: `"{NUM_KEYS}"` is the
parameter, with its type; `"{MB_WRITE_PER_SEC * 1048576}"` calculates with `+ - * / // % **`,
comparisons, `a if b else c`, `min`, `max`, `round` and `int`; `{{` and `}}` are braces. Besides
parameters they may use BUILTINS. `step_index` is the step's place in the workload,
`repetition` counts the trials of a job, both from 1. `seconds`, `timeout_s`, `threads`,
`compression` and, without braces, `estimate` use parameters only. A parameter like `"6GiB"` is a
number of bytes.

Arguments of a step are merged in this order, and later ones win: the sets named in `use`, `args`,
the variant's `options`. `pinned` fills in what none of them sets. The last two apply to tools of
the workload's engine only.
"""


def reference() -> str:
    """The text of the page."""
    parts = [INTRODUCTION.replace("BUILTINS", ", ".join(f"`{name}`" for name in BUILTINS))]
    described: set[type[BaseModel]] = set()
    for title, model in FILES.items():
        parts.append(f"## {title}\n")
        for key, one in _tables("", model):
            if one not in described:
                described.add(one)
                parts.append(_section(key, one))
    return "\n".join(parts)


def _tables(key: str, model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """A model and the models inside it, with the TOML header of each."""
    yield key, model
    for name, field in model.model_fields.items():
        for inner in _models(field.annotation):
            path = f"{key.strip('[]')}.{name}".strip(".")
            is_list = str(field.annotation).startswith("list")
            yield from _tables(f"[[{path}]]" if is_list else f"[{path}]", inner)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _section(key: str, model: type[BaseModel]) -> str:
    head = f"### `{key}`\n\n" if key else ""
    rows = [_row(name, field) for name, field in model.model_fields.items()]
    table = "\n".join(["| Key | Type | Default | Meaning |", "|---|---|---|---|", *rows])
    return f"{head}{model.__doc__}\n\n{table}\n"


def _row(name: str, field: FieldInfo) -> str:
    default = "required" if field.is_required() else f"`{_written(field.default)}`"
    if default in ("`None`", '`""`', "`[]`", "`{}`") or isinstance(field.default, BaseModel):
        default = ""
    cells = [f"`{name}`", _type(field.annotation), default, field.description or ""]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _type(annotation: Any) -> str:
    """A type in the words of a TOML file.

    >>> _type(list[str]), _type(dict[str, int])
    ('list of text', 'table of whole number')
    """
    origin, arguments = getattr(annotation, "__origin__", None), get_args(annotation)
    if origin is list:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"table of {_type(arguments[1])}"
    if arguments and re.match(r"typing\.Literal", str(annotation)):
        return ", ".join(f"`{value}`" for value in arguments)
    if hasattr(annotation, "__metadata__"):
        return _type(arguments[0])
    kinds = [one for one in arguments if one is not type(None)]
    if kinds:
        words = " or ".join(dict.fromkeys(_type(one) for one in kinds))
        return words.replace("true or false or whole number or number or text", "value")
    words_of = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    return words_of.get(annotation, "table")


def _written(default: Any) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, str):
        return f'"{default}"'
    if isinstance(default, list):
        return "[" + ", ".join(_written(one) for one in default) + "]"
    if isinstance(default, BaseModel):
        return str(getattr(default, "name", ""))
    return str(default)


if __name__ == "__main__":
    page = Path(__file__).with_name("reference.md")
    if "--check" in sys.argv:
        sys.exit(0 if page.read_text() == reference() else f"{page} is out of date: run {__file__}")
    page.write_text(reference())
    print(f"wrote {page.name}")
