"""Between database rows and the values of ``model`` and ``rows``. Pure functions."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from benchrunner.model import (
    Artifact,
    FlagNote,
    HostFacts,
    Job,
    SourceRef,
    StepState,
    Taint,
    TrialState,
)
from benchrunner.store.canonical import axes_key, version_key
from benchrunner.store.rows import EventRow, Lease, LeaseOwner, StepRow, SweepRow, TrialRow

if TYPE_CHECKING:
    from benchrunner.model import Plan

Row = Any
"""A SQLAlchemy row; its attributes are the column names."""


def job_values(job: Job) -> dict[str, Any]:
    """Columns of ``job``."""
    return {
        "id": job.id,
        "workload": job.workload,
        "engine": job.engine,
        "version": job.version,
        "version_key": version_key(job.version),
        "source": asdict(job.source),
        "variant": job.variant,
        "host": job.host,
        "scale": job.scale,
        "params": dict(job.params),
        "axes": dict(job.axes),
        "axes_key": axes_key(job.axes),
        "steps": list(job.steps),
        "policy": job.policy,
        "as_shipped": job.as_shipped,
        "server": job.server,
    }


def to_job(row: Row) -> Job:
    """A row of ``job``."""
    return Job(
        id=row.id,
        workload=row.workload,
        engine=row.engine,
        version=row.version,
        source=SourceRef(**row.source),
        variant=row.variant,
        host=row.host,
        scale=row.scale,
        params=row.params,
        axes=row.axes,
        steps=tuple(row.steps),
        policy=row.policy,
        as_shipped=row.as_shipped,
        server=row.server,
    )


def expected_values(plan: Plan) -> dict[str, Any]:
    """What a plan says of its own cost, as kept in ``sweep.expected``."""
    return {
        "loads": plan.loads,
        "disk_bytes": plan.disk_bytes,
        "seconds": plan.seconds,
        "skipped": [list(pair) for pair in plan.skipped],
    }


def to_sweep(row: Row) -> SweepRow:
    """A row of ``sweep`` with its count of unfinished trials."""
    return SweepRow(
        id=row.id,
        name=row.name,
        created_at=row.created_at,
        spec=row.spec,
        baseline=row.baseline,
        command_line=tuple(row.command_line),
        benchrunner_version=row.benchrunner_version,
        loads=row.expected["loads"],
        disk_bytes=row.expected["disk_bytes"],
        seconds=row.expected["seconds"],
        skipped=tuple((version, reason) for version, reason in row.expected["skipped"]),
        unfinished=row.unfinished,
    )


def artifact_values(artifact: Artifact) -> dict[str, Any]:
    """Columns of ``artifact`` except ``created_at``."""
    known = artifact.known_flags
    return {
        "id": artifact.id,
        "engine": artifact.engine,
        "version": artifact.version,
        "source": artifact.source,
        "ref": artifact.ref,
        "state": artifact.state,
        "commit": artifact.commit,
        "compiler": artifact.compiler,
        "directory": artifact.directory,
        "binaries": dict(artifact.binaries),
        "sha256": dict(artifact.sha256),
        "build_flags": dict(artifact.build_flags),
        "features": sorted(artifact.features),
        "known_flags": None if known is None else sorted(known),
        "seconds": artifact.seconds,
        "log": artifact.log,
        "reason": artifact.reason,
    }


def to_artifact(row: Row) -> Artifact:
    """A row of ``artifact``."""
    values = {name: value for name, value in row._asdict().items() if name != "created_at"}
    known = values["known_flags"]
    values["features"] = frozenset(values["features"])
    values["known_flags"] = None if known is None else frozenset(known)
    return Artifact(**values)


def to_facts(row: Row) -> HostFacts:
    """A row of ``host_facts``."""
    return HostFacts(**row._asdict())


def to_trial(row: Row, job: Job) -> TrialRow:
    """A row of ``trial`` with its job."""
    return TrialRow(
        id=row.id,
        sweep_id=row.sweep_id,
        job=job,
        repetition=row.repetition,
        position=row.position,
        state=TrialState(row.state),
        reason=row.reason,
        attempt=row.attempt,
        artifact_id=row.artifact_id,
        facts_id=row.facts_id,
        fence=row.fence,
        started_at=row.started_at,
        ended_at=row.ended_at,
        server_address=row.server_address,
        server_facts_id=row.server_facts_id,
    )


def to_step(row: Row) -> StepRow:
    """A row of ``step_run``."""
    values = row._asdict()
    values["state"] = StepState(values["state"])
    values["argv"] = tuple(values["argv"])
    values["flags"] = tuple(FlagNote(**note) for note in values["flags"])
    values["problems"] = tuple(values["problems"] or ())
    values["facts"] = values["facts"] or {}
    return StepRow(**values)


def to_taint(row: Row) -> Taint:
    """A row of ``taint``."""
    return Taint(row.name, row.evidence, row.remedy)


def to_lease(row: Row) -> Lease:
    """A row of ``lease`` that somebody holds."""
    owner = LeaseOwner(row.owner, row.pid, row.hostname, row.start_time)
    return Lease(row.host, owner, row.fence, row.since, row.heartbeat_at)


def to_event(row: Row) -> EventRow:
    """A row of ``event``."""
    return EventRow(**row._asdict())
