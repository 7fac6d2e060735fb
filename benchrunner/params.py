"""Parameters of a workload: defaults, a scale preset, overrides and axes in, plain values out.

Pure. A parameter has the type of its default; a default like ``"6GiB"`` is a number of bytes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from benchrunner.errors import ConfigurationError
from benchrunner.expressions import Scalar, to_text
from benchrunner.suggest import did_you_mean, listed
from benchrunner.units import parse_size_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchrunner.definitions import Workload

BUILTINS: Mapping[str, Scalar] = {
    "db_dir": "/db",
    "wal_dir": "/wal",
    "run_dir": "/run",
    "work_dir": "/work",
    "step_index": 1,
    "repetition": 1,
    "version": "1.0.0",
    "server_address": "127.0.0.1",
}
"""Names that arguments may use besides parameters, with examples of their values.

``step_index`` is a step's place in its workload, from 1: the same for every version, also for one
that leaves a step out, so that a seed made from it is the same too.
"""

_SIZE = re.compile(r"\d+(?:\.\d+)?\s*[KMGTP]iB")
_WHOLE = re.compile(r"[+-]?\d[\d_]*")
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def normalised(value: Scalar) -> Scalar:
    """A size with a binary prefix as its number of bytes, anything else as it is.

    >>> normalised("6GiB"), normalised("zstd"), normalised(8192)
    (6442450944, 'zstd', 8192)
    """
    if isinstance(value, str) and _SIZE.fullmatch(value):
        return parse_size_bytes(value)
    return value


def typed(value: Scalar, default: Scalar, *, where: str) -> Scalar:
    """A value in the type of the parameter's default; texts come from the command line.

    >>> typed("16MiB", 0, where="--set CACHE_SIZE"), typed("no", True, where="--set SYNC")
    (16777216, False)

    Raises:
        ConfigurationError: The value is of another type.
    """
    default = normalised(default)
    if isinstance(default, bool):
        return _truth(value, where)
    if isinstance(default, int):
        return _whole(value, where)
    if isinstance(default, float):
        return _real(value, where)
    if isinstance(value, str):
        return value
    raise ConfigurationError(f"{where}: expected a text, got {to_text(value)}", f'write "{value}"')


def effective(
    workload: Workload, scale: str | None, overrides: Mapping[str, Scalar]
) -> dict[str, Scalar]:
    """All parameters of a workload: defaults, then the scale preset, then overrides.

    Raises:
        ConfigurationError: The workload has no such scale or parameter, or a value of another type.
    """
    scale = checked_scale(workload, scale)
    preset = workload.scale.get(scale, {})
    result = {name: normalised(value) for name, value in workload.params.items()}
    for where, values in ((f"scale {scale}", preset), ("--set", overrides)):
        for name, value in values.items():
            check_parameter(name, workload.params, where=f"{where} {name}")
            result[name] = typed(value, workload.params[name], where=f"{where} {name}")
    return result


def checked_scale(workload: Workload, scale: str | None) -> str:
    """The scale's name, the workload's default for ``None``.

    Raises:
        ConfigurationError: The workload has no such scale.
    """
    wanted = workload.default_scale if scale is None else scale
    if wanted in workload.scale or (not workload.scale and wanted == workload.default_scale):
        return wanted
    raise ConfigurationError(
        f"workload {workload.name} has no scale {wanted!r}{did_you_mean(wanted, workload.scale)}",
        f"--scale {listed(workload.scale)}" if workload.scale else "leave --scale out",
    )


def check_parameter(name: str, known: Mapping[str, object], *, where: str) -> None:
    """Makes sure that a parameter exists.

    Raises:
        ConfigurationError: It does not.
    """
    if name not in known:
        raise ConfigurationError(
            f"{where}: there is no parameter {name!r}{did_you_mean(name, known)}", listed(known)
        )


def _truth(value: Scalar, where: str) -> bool:
    found = _TRUTH.get(to_text(value).casefold())
    if found is None:
        raise ConfigurationError(f"{where}: {value!r} is neither true nor false", "true or false")
    return found


def _whole(value: Scalar, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = to_text(value).strip()
    if _WHOLE.fullmatch(text):
        return int(text)
    if isinstance(value, str):
        try:
            return parse_size_bytes(value)
        except ConfigurationError:
            pass
    raise ConfigurationError(f"{where}: {value!r} is not a whole number", "400000 or 6GiB")


def _real(value: Scalar, where: str) -> float:
    try:
        if not isinstance(value, bool):
            return float(value)
    except ValueError:
        pass
    raise ConfigurationError(f"{where}: {value!r} is not a number", "0.5")
