"""The artifacts of a sweep on one host: each built once, stored, checked against what is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from benchrunner.build import Workshop, build, refused, this_machine
from benchrunner.errors import SourceError
from benchrunner.events import Event
from benchrunner.expressions import expand, to_text
from benchrunner.model import Artifact
from benchrunner.selection import named_version

if TYPE_CHECKING:
    from benchrunner.build import BuildSite
    from benchrunner.definitions import Engine
    from benchrunner.model import Job, SourceRef
    from benchrunner.run_parts import Subject
    from benchrunner.session import Session


class Artifacts:
    """Builds on first demand and remembers."""

    def __init__(self, session: Session, site: BuildSite | None = None) -> None:
        self._session = session
        self._site = site or this_machine(session.settings.cache)
        self._built: dict[tuple[str, str, str, str, str], Artifact] = {}

    def of(self, job: Job, subject: Subject) -> Artifact:
        """The artifact that a job runs; its state says whether it can."""
        source = job.source
        if not _is_needed(job, subject):
            return self._unbuilt(subject.engine, source)
        key = (
            subject.engine.built_as,
            source.kind,
            source.ref,
            source.note,
            wanted_driver(subject),
        )
        if key not in self._built:
            self._built[key] = self.make(subject.engine, job.source, wanted_driver(subject))
        artifact = self._built[key]
        template = subject.workload.compression
        if not template:
            return artifact
        where = f"compression of {subject.workload.name}"
        codec = to_text(expand(template, job.params, where=where))
        checked = refused(artifact, codec)
        if checked.state != artifact.state:
            # The build itself is good, for other workloads: it keeps its own record.
            checked = replace(checked, id=f"{artifact.id}-without-{codec}")
            self._session.store.save_artifact(checked)
        return checked

    def _unbuilt(self, engine: Engine, ref: SourceRef) -> Artifact:
        """Stands for a build of which no step runs a program."""
        artifact = Artifact(
            f"unbuilt-{engine.name}", engine.name, ref.version, ref.kind, ref.ref, "built"
        )
        self._session.store.save_artifact(artifact)
        return artifact

    def beside(self, job: Job, subject: Subject) -> Artifact:
        """The artifact of another engine whose program some steps run; a failure is one, too."""
        engine, word = subject.engine, job.version
        tools = [subject.tools[s.tool] for s in subject.workload.steps if s.engine == engine.name]
        driver = engine.build.driver if any(tool.of_job for tool in tools) else ""
        key = (engine.built_as, "also", word, "", driver)
        if key not in self._built:
            try:
                ref = named_version(self._session, engine, word)
                self._built[key] = self.make(engine, ref, driver)
            except SourceError as error:
                why = f"{error.message}; {error.hint}" if error.hint else error.message
                self._built[key] = Artifact("", engine.name, word, "none", "", "failed", reason=why)
        return self._built[key]

    def make(self, engine: Engine, ref: SourceRef, driver: str = "") -> Artifact:
        """Builds, or takes from the cache; tells the observer and stores the result.

        Args:
            engine: what is built.
            ref: which version, from where.
            driver: the driver that is compiled against it as well.

        Raises:
            TransportError: A remote host is out of reach; what it compiles goes on there.
            LaunchError: The same.
        """
        session, observer = self._session, self._session.observer
        name = f"{engine.title} {ref.version}"
        where = {} if self._site.is_here else {"host": self._site.name}

        def progress(done: int, total: int | None) -> None:
            data = {"version": name, "done": done, "total": total}
            observer(Event("build-progress", "", {**data, **where}))

        text = f"{name} from {ref.kind} {ref.ref}{self._site.on_host}"
        observer(Event("build", text, {"ref": ref.ref, **where}))
        workshop = Workshop(
            session.settings.cache, session.settings.jobs, progress,
            on_note=lambda text: observer(Event("note", text)), site=self._site, driver=driver,
        )  # fmt: skip
        artifact = build(engine, ref, workshop)
        session.store.save_artifact(artifact)
        first = artifact.reason.partition("\n")[0]
        text = f"{name} is ready{self._site.on_host}"
        if artifact.state != "built":
            end = "was refused" if artifact.state == "refused" else artifact.state
            text = f"the build of {name}{self._site.on_host} {end}: {first}"
        data = {"version": ref.version, "state": artifact.state, "artifact": artifact.id}
        observer(Event("build-end", text, {**data, **where}))
        return artifact


def _is_needed(job: Job, subject: Subject) -> bool:
    """Whether a step runs a program of the job's own engine."""
    name = subject.engine.name
    running = [s for s in subject.workload.steps if s.name in job.steps and not s.engine]
    return name in subject.tools or any(subject.tools[s.tool].drives(name) for s in running)


def wanted_driver(subject: Subject) -> str:
    """The driver that a workload's steps take from the job's own build; empty: none."""
    driver = subject.engine.build.driver
    tools = (subject.tools.get(step.tool) for step in subject.workload.steps)
    taken = {tool.binary or tool.name for tool in tools if tool is not None and tool.of_job}
    return driver if driver in taken else ""
