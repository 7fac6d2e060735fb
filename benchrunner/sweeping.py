"""A stored sweep's unfinished trials on one host: built, run, parsed, one after another.

In: the store's plan and a host made ready. Out: every trial with an end that is stored.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING

from benchrunner.arguments import find_variant
from benchrunner.artifacts import Artifacts
from benchrunner.build import site_of
from benchrunner.ceiling import Limit, best_of, limits_given
from benchrunner.effective import compare_options
from benchrunner.errors import HostBusyError, OutputNotRecognisedError
from benchrunner.events import Event
from benchrunner.host_places import cache_dir
from benchrunner.live import LiveRate
from benchrunner.model import MISSING, StepState, Taint, TrialState
from benchrunner.run import TrialRunner
from benchrunner.run_parts import Hooks, Side
from benchrunner.run_steps import InterruptedByUserError
from benchrunner.run_tools import Tools
from benchrunner.store.rows import MEMORY, CeilingRow
from benchrunner.stored import StoredSweep, parse_step
from benchrunner.surroundings import Around
from benchrunner.transports import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from benchrunner.definitions import Gift
    from benchrunner.host_session import HostSession
    from benchrunner.model import Artifact, Command, HostFacts, Job
    from benchrunner.run_parts import Subject
    from benchrunner.server_host import ServerHost
    from benchrunner.session import Session
    from benchrunner.store.rows import EndedStep, StepRow, TrialRow


class SweepOnHost:
    """One sweep's unfinished trials on one host."""

    def __init__(
        self,
        session: Session,
        sweep_id: int,
        stored: StoredSweep,
        host: HostSession,
        server: ServerHost | None = None,
    ):
        """Takes the host of the steps, and that of their services where it is another one."""
        self._session = session
        self._sweep_id = sweep_id
        self._host = host
        self._server = server
        self._presence = host.presence if server is None else server.presence
        self._stored = stored
        trials = session.store.trials(sweep_id)
        self._ceiling_metrics = self._wanted_ceilings(trials)
        self._count = len(trials)
        self._trials = [t for t in trials if t.job.host == host.name and not t.state.final]
        self._by_id = {trial.id: trial for trial in self._trials}
        definition = host.definition
        cache = cache_dir(session, definition)
        site = site_of(definition, host.transport, host.launcher, cache)
        self._artifacts = Artifacts(session, site)
        around = Around(host.surroundings, None if server is None else server.host.surroundings)
        hooks = Hooks(
            self._after_step, _compare, self._keep_ceilings,
            lambda subject, step, seconds, beside: around.before(
                subject.workload, step, seconds, beside.here, beside.there
            ),
            around.after, self._leave_memory,
        )  # fmt: skip
        observer = LiveRate(host.transport, session.observer)
        place = None if server is None else server.place
        tools = Tools(session.store, host.disk, host.launcher, hooks, observer, session.stop, place)
        self._runner = TrialRunner(tools)

    def run(self) -> None:
        """Builds first, so that no compiler disturbs a measurement; then one trial after another.

        Raises:
            HostBusyError: A step of another sweep still runs here.
        """
        self._refuse_strangers()
        for trial in self._trials:
            if trial.job.source.kind == MISSING:
                continue
            build = partial(self._artifacts.of, trial.job, self._stored.subject(trial))
            self._host.presence.through(build)
            self._host.presence.through(partial(self._sides, trial))
        for trial in self._trials:
            if self._session.stop.is_set():
                raise InterruptedByUserError("interrupted between two trials")
            for host in self._hosts:
                host.right.check()
            self._trial(trial)

    def _sides(self, trial: TrialRow) -> dict[str, Side]:
        """Builds of the other engines whose programs a trial's steps run."""
        return {
            name: Side(subject, job, self._artifacts.beside(job, subject))
            for name, (subject, job) in self._stored.sides(trial).items()
        }

    def _refuse_strangers(self) -> None:
        """A step can outlive its controller; two at a time would disturb each other."""
        store = self._session.store
        hosts = {host.name: host for host in self._hosts}
        for row in store.running_steps():
            owner = store.trial(row.trial_id)
            host = hosts.get(row.host or owner.job.host)
            if owner.sweep_id == self._sweep_id or host is None:
                continue
            handle = host.launcher.find(row.run_dir)
            if handle is not None and host.launcher.poll(handle).state == "running":
                raise HostBusyError(
                    f"step {row.step} of sweep {owner.sweep_id} still runs on host {host.name}, "
                    "left by a controller that is gone",
                    f"{self._session.resume_command} goes on with sweep {owner.sweep_id} first",
                )

    @property
    def _hosts(self) -> list[HostSession]:
        """That of the steps, and that of their services."""
        return [self._host, *([] if self._server is None else [self._server.host])]

    def _trial(self, trial: TrialRow) -> None:
        job, store = trial.job, self._session.store
        cell = f"{job.engine} {job.version} {job.variant}"
        data = {"trial": trial.id, "position": trial.position, "trials": self._count,
                "steps": len(job.steps), "cell": cell}  # fmt: skip
        text = f"trial {trial.position} of {self._count}: {job.workload} {cell}"
        self._session.observer(Event("trial", text, data))
        subject = self._stored.subject(trial)
        if job.source.kind == MISSING:
            self._end(trial, (TrialState.SKIPPED, job.source.note), data)
            return
        artifact = self._artifacts.of(job, subject)
        if trial.state is TrialState.PLANNED:
            end = self._cannot_run(trial, subject, artifact)
            if end is not None:
                self._end(trial, end, data)
                return
        server = self._server if job.server else None
        attempt = store.begin_trial(
            trial.id,
            artifact_id=artifact.id,
            facts_id=self._host.facts.id,
            fence=self._host.right.fence,
            server=None if server is None else server.seen,
        )
        taints = (*self._host.taints, *without_effect(subject, job, self._host.facts))
        if server is not None:
            taints = (*taints, *server.taints)
        if taints and trial.state is TrialState.PLANNED:
            store.add_taints(taints, trial_id=trial.id)
        new_attempt = attempt if trial.state is TrialState.PLANNED else None
        attempts = [new_attempt]

        def go_on() -> None:
            # After a lost connection it is found out like after a crash what has happened.
            known = attempts.pop() if attempts else None
            self._runner.run(
                trial.planned(), subject, artifact, new_attempt=known, sides=self._sides(trial)
            )

        try:
            self._presence.through(go_on)
        except (UnreachableError, KeyboardInterrupt) as error:
            if job.server:  # the host that is there shall not go on for the one that is away
                why = error.message if isinstance(error, UnreachableError) else "interrupted"
                self._runner.leave(trial.id, why)
            raise

    def _end(self, trial: TrialRow, end: tuple[TrialState, str], data: Mapping[str, Any]) -> None:
        """Ends a trial of which nothing runs."""
        self._leave_memory(trial.id)
        self._session.store.end_trial(trial.id, *end)
        outcome = {"state": end[0].value, "reason": end[1]}
        text = f"trial {end[0].value}: {end[1].partition(chr(10))[0]}"
        self._session.observer(Event("trial-end", text, {**data, **outcome}))

    def _leave_memory(self, trial_id: str) -> None:
        """The memory of databases is given back before nothing is left to go on with."""
        memory = self._host.memory
        if memory is not None and trial_id == self._trials[-1].id:
            self._host.presence.through(memory.leave)

    def _cannot_run(
        self, trial: TrialRow, subject: Subject, artifact: Artifact
    ) -> tuple[TrialState, str] | None:
        """Why a trial that has not begun cannot run here at all."""
        variant = next(v for v in subject.workload.variants if v.name == trial.job.variant)
        lacks = dict(self._host.lacks)
        if trial.job.server and self._server is not None:
            lacks = {**self._server.lacks, **lacks}
        for need in variant.needs:
            if need in lacks:
                return TrialState.SKIPPED, lacks[need]
        tools = [subject.tools[subject.step(name).tool] for name in trial.job.steps]
        if artifact.state != "built" and not any(
            tool.is_free and tool.name != trial.job.engine for tool in tools
        ):
            return TrialState.FAILED, f"build {artifact.state}: {artifact.reason}"
        return None

    def _after_step(self, ended: EndedStep) -> tuple[StepState, str]:
        trial = self._by_id[ended.trial_id]
        return parse_step(self._session, ended, trial, self._stored, self._host.facts.device)

    def _gifts(self, trial_id: str) -> list[Gift]:
        """What of a trial is a ceiling: as its workload says, else what others compare with."""
        from benchrunner.definitions import Gift

        job = self._by_id[trial_id].job
        workload = self._stored.subject(self._by_id[trial_id]).workload
        if not workload.gives:
            return [Gift(metric=metric) for metric in self._ceiling_metrics.get(job.workload, ())]
        return [one for one in workload.gives if not one.scales or job.scale in one.scales]

    def _wanted_ceilings(self, trials: tuple[TrialRow, ...]) -> dict[str, list[str]]:
        """Ceiling workload -> metrics of it that other workloads of the sweep compare with."""
        subjects = {t.job.workload: self._stored.subject(t) for t in trials}
        ceilings = (subject.workload.ceiling for subject in subjects.values())
        return {one.workload: list(one.taints.values()) for one in ceilings if one is not None}

    def _keep_ceilings(self, trial_id: str) -> None:
        """What a trial gives becomes the host's ceilings: the best that any step reached."""
        gifts = self._gifts(trial_id)
        for of, device in (("device", self._host.facts.device), ("memory", MEMORY)):
            self._keep_ceilings_of(device, trial_id, [gift for gift in gifts if gift.of == of])

    def _keep_ceilings_of(self, device: str, trial_id: str, gifts: Sequence[Gift]) -> None:
        if not gifts:
            return
        store = self._session.store
        found: dict[Limit, StepRow] = {}
        for row in store.step_runs(trial_id):
            given = [gift for gift in gifts if fnmatchcase(row.step, gift.steps)]
            if given and row.state is StepState.OK:
                measured = store.measurements(row.id)
                found |= {one: row for gift in given for one in limits_given(gift, measured)}
        known = {
            (row.metric, row.block_bytes, row.step_run_id)
            for row in store.ceilings(self._host.name, device)
        }
        for one in best_of(found):
            row = found[one]
            if (one.metric, one.block_bytes, row.id) not in known:
                at, host = row.ended_at or 0.0, self._host.name
                store.add_ceiling(
                    CeilingRow(host, device, one.metric, one.value, at, row.id, one.block_bytes)
                )


def _compare(command: Command, text: str) -> Mapping[str, Any]:
    try:
        return compare_options(command.flags, text)
    except OutputNotRecognisedError as error:
        return {"unreadable": error.message}


def without_effect(subject: Subject, job: Job, facts: HostFacts) -> tuple[Taint, ...]:
    """The mark of a trial whose variant places memory on a host that has one place for it."""
    variant = find_variant(subject.workload, job.variant)
    nodes = (facts.facts.get("numa") or {}).get("nodes") or []
    if "numactl" not in variant.needs or len(nodes) > 1:
        return ()
    prefix = " ".join(variant.wrap)
    return (
        Taint(
            "single-numa-node",
            f"host {facts.host} has one NUMA node, so {prefix} changes nothing there",
            "compare placements on a host with several NUMA nodes (numactl --hardware)",
        ),
    )
