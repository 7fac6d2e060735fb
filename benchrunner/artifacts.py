"""The artifacts of a sweep on one host: each built once, stored, checked against what is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from benchrunner.build import Workshop, build, refused, this_machine
from benchrunner.events import Event
from benchrunner.expressions import expand, to_text

if TYPE_CHECKING:
    from benchrunner.build import BuildSite
    from benchrunner.definitions import Engine
    from benchrunner.model import Artifact, Job, SourceRef
    from benchrunner.run_parts import Subject
    from benchrunner.session import Session


class Artifacts:
    """Builds on first demand and remembers."""

    def __init__(self, session: Session, site: BuildSite | None = None) -> None:
        self._session = session
        self._site = site or this_machine(session.settings.cache)
        self._built: dict[tuple[str, str, str, str], Artifact] = {}

    def of(self, job: Job, subject: Subject) -> Artifact:
        """The artifact that a job runs; its state says whether it can."""
        key = (job.engine, job.source.kind, job.source.ref, job.source.note)
        if key not in self._built:
            self._built[key] = self.make(subject.engine, job.source)
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

    def make(self, engine: Engine, ref: SourceRef) -> Artifact:
        """Builds, or takes from the cache; tells the observer and stores the result.

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
            on_note=lambda text: observer(Event("note", text)), site=self._site,
        )  # fmt: skip
        artifact = build(engine, ref, workshop)
        session.store.save_artifact(artifact)
        first = artifact.reason.partition("\n")[0]
        text = f"{name} is ready" if artifact.state == "built" else f"{name}: build failed: {first}"
        data = {"version": ref.version, "state": artifact.state, "artifact": artifact.id}
        observer(Event("build-end", text + self._site.on_host, {**data, **where}))
        return artifact
