"""Names of jobs, trials and datasets: hashes of what they are made of. Pure.

The same content has the same id in whatever order its keys come, on every machine and in every run.
"""

from __future__ import annotations

import hashlib
import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from benchrunner.arguments import asked_arguments, find_variant, loading_steps
from benchrunner.expressions import names_in
from benchrunner.model import SourceRef

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from benchrunner.arguments import Arguments
    from benchrunner.definitions import Tool, Workload
    from benchrunner.model import Job

DIGITS = 16


def digest(content: Any) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of plain data as canonical JSON.

    >>> digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1})
    True
    """
    text = json.dumps(
        content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def job_id(content: Mapping[str, Any]) -> str:
    """The id of a job from all its other fields.

    A source's note is part of it: the commit of a branch, the content of a tree.
    """
    source = content["source"]
    assert isinstance(source, SourceRef)  # noqa: S101
    noted = [source.note] if source.note else []
    place = [source.engine, source.version, source.kind, source.ref, *noted]
    return digest({**content, "source": place})


def trial_id(sweep: str, job: str, repetition: int) -> str:
    """The id of one repetition of a job in a sweep."""
    return digest([sweep, job, repetition])


def dataset_id(
    job: Job,
    workload: Workload,
    tools: Mapping[str, Tool],
    repetition: int = 1,
    engine_args: Arguments = MappingProxyType({}),
) -> str:
    """The id of the database that a job's loading steps leave.

    It hashes the engine's version and the arguments that load, with the parameters they use: what
    later steps do with the database is no part of it. The workload is unfolded for the job.
    """
    variant = find_variant(workload, job.variant)
    steps = [step for step in loading_steps(workload) if step.name in job.steps]
    asked = {
        step.name: asked_arguments(
            step, tools[step.tool], workload, variant, engine_args, as_shipped=job.as_shipped
        ).values
        for step in steps
    }
    used = _names_used(value for values in asked.values() for value in values.values())
    known = {**job.params, "repetition": repetition}
    return digest(
        {
            "engine": [job.engine, job.version, job.source.kind, job.source.ref],
            "steps": asked,
            "order": [step.name for step in steps],
            "values": {name: known[name] for name in sorted(used) if name in known},
            "wrap": [variant.wrap, variant.env],
        }
    )


def _names_used(values: Iterable[Any]) -> set[str]:
    return {
        name
        for value in values
        for one in (value if isinstance(value, list) else [value])
        for name in names_in(one)
    }
