"""What is wrong with a TOML file, in one sentence: file, key, and the nearest that would be right.

Pure: pydantic's list of errors in, one of ours out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from benchrunner.errors import ConfigurationError
from benchrunner.suggest import did_you_mean, listed

if TYPE_CHECKING:
    import tomllib
    from collections.abc import Sequence
    from pathlib import Path

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

_AT = re.compile(
    r"(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)"
)
_VERSION_KEYS = frozenset(
    {"engines", "versions", "since", "until", "requires", "version", "baseline"}
)
_EXPECTED = {
    "string_type": "a text in quotes",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list in brackets",
    "dict_type": "a table",
    "model_type": "a table",
}


class WrittenFloat(float):
    """A float that remembers how it was written: ``7.10`` is 7.1 to every other reader."""

    text: str

    def __new__(cls, text: str) -> WrittenFloat:
        """A float from its text in a TOML file."""
        value = super().__new__(cls, text.replace("_", ""))
        value.text = text
        return value


def syntax_error(path: Path, text: str, error: tomllib.TOMLDecodeError) -> ConfigurationError:
    """A file that is not TOML: where, and what."""
    match = _AT.fullmatch(str(error))
    if match is None:
        return ConfigurationError(f"{path}: {error}", "see https://toml.io")
    if match["line"]:
        line, column = match["line"], match["column"]
    else:
        lines = text.splitlines() or [""]
        line, column = str(len(lines)), str(len(lines[-1]) + 1)
    return ConfigurationError(f"{path}:{line}:{column}: {match['what']}", "see https://toml.io")


def invalid(
    path: Path,
    data: object,
    model: type[BaseModel],
    error: ValidationError,
    inside: str | None = None,
) -> ConfigurationError:
    """The first thing in a file, or in one table of it, that its definition does not allow."""
    details = error.errors(include_url=False)
    first = next((found for found in details if found["type"] == "extra_forbidden"), details[0])
    place = dotted(data, first["loc"] if inside is None else (inside, *first["loc"]))
    if first["type"] == "extra_forbidden":
        return _unknown_key(path, place, first, model)
    if first["type"] == "missing":
        return ConfigurationError(f"{path}: {place} is missing", "docs/reference.md has every key")
    given = first["input"]
    if first["type"] == "string_type" and _VERSION_KEYS & {*map(str, first["loc"])}:
        return unquoted_version(path, place, given)
    there = [_expectation(found) for found in details if found["input"] is given]
    expected = " or ".join(dict.fromkeys(there))
    return ConfigurationError(
        f"{path}: {place}: expected {expected}, got {_shown(given)}{_nearest(first)}",
        "docs/reference.md has every key",
    )


def unquoted_version(path: Path, place: str, given: object) -> ConfigurationError:
    """A version that TOML has read as a number: 7.10 became 7.1."""
    text = given.text if isinstance(given, WrittenFloat) else "7.10"
    example = f'"{given}"' if isinstance(given, int) else f'"{text}"'
    what = _shown(given)
    return ConfigurationError(f"{path}: {place}: {what} is not a version", f"quote it: {example}")


def dotted(data: object, location: Sequence[str | int]) -> str:
    """A place in a file as a dotted key; elements of a list by name where they have one.

    >>> dotted({"steps": [{"name": "read", "args": {}}]}, ["steps", 0, "args", "num"])
    'steps.read.args.num'
    >>> dotted({"columns": [1, 2]}, ["columns", 1])
    'columns[2]'
    """
    place = ""
    for key in location:
        if isinstance(key, int):
            data = data[key] if isinstance(data, list) and key < len(data) else None
            name = data.get("name") if isinstance(data, dict) else None
            place += f".{name}" if isinstance(name, str) else f"[{key + 1}]"
        elif isinstance(data, dict) and key not in data and _is_type_name(key):
            continue  # pydantic names the member of a union that did not fit
        else:
            data = data.get(key) if isinstance(data, dict) else None
            place += f".{key}" if place else key
    return place


def _is_type_name(key: str) -> bool:
    return key in {"str", "int", "float", "bool"} or "[" in key or key.endswith("Definition")


def _unknown_key(
    path: Path, place: str, found: ErrorDetails, model: type[BaseModel]
) -> ConfigurationError:
    owner = model
    for key in found["loc"][:-1]:
        owner = _model_at(owner, key)
    valid = owner.model_fields
    return ConfigurationError(
        f"{path}: unknown key {place}{did_you_mean(str(found['loc'][-1]), valid)}", listed(valid)
    )


def _model_at(model: type[BaseModel], key: str | int) -> type[BaseModel]:
    """The model of a key's value; a list index or a dictionary key stays with the model."""
    field = model.model_fields.get(str(key))
    return next(_models(field.annotation), model) if field is not None else model


def _models(annotation: Any) -> Any:
    """Every model inside an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _expectation(found: ErrorDetails) -> str:
    kind = found["type"]
    if kind == "string_pattern_mismatch":
        return "a name of letters, digits, '.', '_' and '-' that starts with a letter or digit"
    return _EXPECTED.get(kind) or found["msg"].removeprefix("Input should be ")


def _nearest(found: ErrorDetails) -> str:
    """The allowed value that a mistyped one resembles."""
    if found["type"] != "literal_error":
        return ""
    return did_you_mean(str(found["input"]), re.findall(r"'([^']+)'", found["ctx"]["expected"]))


def _shown(value: object) -> str:
    match value:
        case WrittenFloat():
            return value.text
        case bool():
            return str(value).lower()
        case dict():
            return "a table"
        case list():
            return "a list"
        case _:
            return repr(value)
