"""A stored sweep: what it was made from, and its step runs' raw output read again.

Everything that trials run comes from the snapshot that was stored with their sweep, so that edits
of a TOML file do not reach a sweep that has begun.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchrunner import definitions
from benchrunner.ceiling import Limit
from benchrunner.memory_disk import Room
from benchrunner.plan_cost import job_disk_bytes, job_memory_bytes
from benchrunner.reading import StoredStep, read_step
from benchrunner.run_parts import Subject, beside
from benchrunner.session import Choices
from benchrunner.unfolding import tool_names, unfolded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from benchrunner.model import Job, Plan, StepState
    from benchrunner.session import Session
    from benchrunner.store.rows import EndedStep, TrialRow


def snapshot(session: Session, sweep: definitions.Sweep, plan: Plan) -> dict[str, Any]:
    """Everything that the trials of a plan run, and what the command line said about places."""
    catalog = session.catalog
    names = sorted({trial.job.workload for trial in plan.trials})
    workloads = {name: catalog.workload(name) for name in names}
    names_of_engines = {t.job.engine for t in plan.trials}.union(
        *(w.also for w in workloads.values())
    )
    engines = {name: catalog.engine(name) for name in sorted(names_of_engines)}
    tools = {name: catalog.tool(name) for w in workloads.values() for name in tool_names(w)}
    servers = [] if sweep.server is None else [sweep.server]
    hosts = {name: catalog.host(name) for name in (*sweep.hosts, *servers)}
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
        self._made: dict[str, Subject] = {}

    def host(self, name: str) -> definitions.Host:
        """A host of the sweep."""
        host = self._hosts[name]
        assert isinstance(host, definitions.Host)  # noqa: S101
        return host

    def room(self, host: str, trials: Iterable[TrialRow]) -> Room | None:
        """Memory that unfinished trials on a host need, where their databases are to lie in it."""
        jobs = {
            trial.id: (self.subject(trial).workload, trial.job)
            for trial in trials
            if trial.job.host == host and self._workloads[trial.job.workload].data_on == "memory"
        }
        if not jobs:
            return None
        return Room(
            max(job_disk_bytes(*job) or 0 for job in jobs.values()),
            max(job_memory_bytes(*job) or 0 for job in jobs.values()),
            tuple(jobs),
        )

    def subject(self, trial: TrialRow) -> Subject:
        """What a trial runs."""
        job = trial.job
        if job.id not in self._made:
            workload = self._workloads[job.workload]
            hours = self._hosts[job.host].limits.step_hours
            self._made[job.id] = Subject(
                workload=unfolded(workload, job),
                engine=self._engines[job.engine],
                tools={name: self._tools[name] for name in tool_names(workload)},
                flags=self._flags(job.engine),
                host_env=self._hosts[job.host].env,
                host_step_s=None if hours is None else hours * 3600,
            )
        return self._made[job.id]

    def sides(self, trial: TrialRow) -> dict[str, tuple[Subject, Job]]:
        """The trial as one of each of the other engines whose programs its steps run."""
        subject = self.subject(trial)
        running = [s for s in subject.workload.steps if s.name in trial.job.steps]
        return {
            name: beside(subject, trial.job, self._engines[name], self._flags(name))
            for name in subject.workload.also
            if any(step.engine == name for step in running)
        }


def parse_step(
    session: Session, row: EndedStep, trial: TrialRow, sweep: StoredSweep, device: str
) -> tuple[StepState, str]:
    """Reads one step run's raw output and stores what it says.

    Args:
        session: with the store.
        row: the step run.
        trial: the one that it belongs to.
        sweep: the one that the trial belongs to.
        device: below the trial's databases, as the facts of its host name it.
    """
    if not row.raw_path:
        return row.state, row.reason
    subject = sweep.subject(trial)
    step = subject.step(row.step)
    flags = dict(_as_given(note.given) for note in row.flags if note.given is not None)
    stored = StoredStep(session.raw / row.raw_path, row.state, row.status, flags)
    limits: list[Limit] = []
    if subject.workload.ceiling is not None:
        ceilings = session.store.ceilings(trial.job.host, device)
        limits = [Limit(one.metric, one.value, one.block_bytes) for one in ceilings]
    found = read_step(stored, step, subject, trial.job, limits)
    return session.store.save_parsed(
        row.id, found.parsed, parser=found.parser, parser_version=found.parser_version,
        derived=found.derived,
    )  # fmt: skip


def _as_given(flag: str) -> tuple[str, str]:
    """Name and value of a flag as it stands on a command line; ``--name`` alone is true."""
    name, equals, value = flag.removeprefix("--").partition("=")
    return name, value if equals else "true"


def _dumped(models: Mapping[str, definitions.Definition]) -> dict[str, Any]:
    return {name: model.model_dump(mode="json") for name, model in models.items()}


def _revived(stored: Mapping[str, Any], model: Any) -> dict[str, Any]:
    return {name: model.model_validate(value) for name, value in stored.items()}
