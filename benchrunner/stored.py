"""A stored sweep: what it was made from, and its step runs' raw output read again.

Everything that trials run comes from the snapshot that was stored with their sweep, so that edits
of a TOML file do not reach a sweep that has begun.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchrunner import definitions
from benchrunner.reading import StoredStep, read_step
from benchrunner.run_parts import Subject
from benchrunner.session import Choices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchrunner.model import Plan, StepState
    from benchrunner.session import Session
    from benchrunner.store.rows import EndedStep, TrialRow


def snapshot(session: Session, sweep: definitions.Sweep, plan: Plan) -> dict[str, Any]:
    """Everything that the trials of a plan run, and what the command line said about places."""
    catalog = session.catalog
    names = sorted({trial.job.workload for trial in plan.trials})
    workloads = {name: catalog.workload(name) for name in names}
    engines = {w.engine: catalog.engine(w.engine) for w in workloads.values()}
    tools = {s.tool: catalog.tool(s.tool) for w in workloads.values() for s in w.steps}
    hosts = {name: catalog.host(name) for name in sweep.hosts}
    return {
        "sweep": sweep.model_dump(mode="json"),
        "workloads": _dumped(workloads),
        "engines": _dumped(engines),
        "tools": _dumped(tools),
        "hosts": _dumped(hosts),
        "settings": session.settings.choices.stored(),
    }


def _none(_engine: str) -> Mapping[str, Any]:
    return {}


class StoredSweep:
    """What the trials of one stored sweep run: definitions as they were when it began."""

    def __init__(
        self, spec: Mapping[str, Any], flags: Callable[[str], Mapping[str, Any]] = _none
    ) -> None:
        """Revives what was stored.

        Args:
            spec: of the stored sweep.
            flags: engine -> its flag matrix; only needed to run trials, and too large to store.
        """
        self.sweep = definitions.Sweep.model_validate(spec["sweep"])
        self.choices = Choices.revived(spec.get("settings", {}))
        self._workloads = _revived(spec["workloads"], definitions.Workload)
        self._engines = _revived(spec["engines"], definitions.Engine)
        self._tools = _revived(spec["tools"], definitions.Tool)
        self._hosts = _revived(spec["hosts"], definitions.Host)
        self._flags = flags
        self._made: dict[tuple[str, str], Subject] = {}

    def host(self, name: str) -> definitions.Host:
        """A host of the sweep."""
        host = self._hosts[name]
        assert isinstance(host, definitions.Host)  # noqa: S101
        return host

    def subject(self, trial: TrialRow) -> Subject:
        """What a trial runs."""
        key = (trial.job.workload, trial.job.host)
        if key not in self._made:
            workload = self._workloads[trial.job.workload]
            hours = self._hosts[trial.job.host].limits.step_hours
            self._made[key] = Subject(
                workload=workload,
                engine=self._engines[workload.engine],
                tools={step.tool: self._tools[step.tool] for step in workload.steps},
                flags=self._flags(workload.engine),
                host_env=self._hosts[trial.job.host].env,
                host_step_s=None if hours is None else hours * 3600,
            )
        return self._made[key]


def parse_step(
    session: Session, row: EndedStep, trial: TrialRow, sweep: StoredSweep
) -> tuple[StepState, str]:
    """Reads one step run's raw output and stores what it says."""
    if not row.raw_path:
        return row.state, row.reason
    subject = sweep.subject(trial)
    step = subject.step(row.step)
    flags = {note.flag: note.asked for note in row.flags if note.given is not None}
    stored = StoredStep(session.raw / row.raw_path, row.state, row.status, flags)
    limits: dict[str, float] = {}
    if subject.workload.ceiling is not None:
        limits = {c.metric: c.value for c in session.store.ceilings(trial.job.host)}
    found = read_step(
        stored, step, subject.tools[step.tool], subject.workload, trial.job.params, limits
    )
    return session.store.save_parsed(
        row.id, found.parsed, parser=found.parser, parser_version=found.parser_version,
        derived=found.derived,
    )  # fmt: skip


def _dumped(models: Mapping[str, definitions.Definition]) -> dict[str, Any]:
    return {name: model.model_dump(mode="json") for name, model in models.items()}


def _revived(stored: Mapping[str, Any], model: Any) -> dict[str, Any]:
    return {name: model.model_validate(value) for name, value in stored.items()}
