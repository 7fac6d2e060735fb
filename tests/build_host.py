"""A remote host for builds, played by this machine: another cache, the real supervisor, an account
of what was sent."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from source_support import tiny_engine, tiny_tree

from benchrunner.build import BuildSite, Workshop, build
from benchrunner.errors import TransportError
from benchrunner.launchers.direct import DirectLauncher
from benchrunner.sources import find_version
from benchrunner.transports.local import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchrunner.definitions import Engine
    from benchrunner.model import Artifact, SourceRef
    from benchrunner.transports import Completed


class Wire(LocalTransport):
    """Counts what is sent, breaks when it is told to, and answers for the host where it is told."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.answers: list[tuple[str, Callable[[Completed], Completed]]] = []
        self.before: list[tuple[str, Callable[[], object]]] = []
        """A word in a command, and what happens just before that command."""
        self.breaks: Callable[[str], bool] = lambda _path: False
        """Whether reading a path finds the connection gone."""

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        input: bytes | None = None,  # noqa: A002
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Completed:
        for word, happen in self.before:
            if any(word in text for text in argv):
                happen()
        done = super().run(argv, timeout_s=timeout_s, input=input, env=env, cwd=cwd)
        for word, change in self.answers:
            if any(word in text for text in argv):
                done = change(done)
        return done

    def put(self, local: Path, remote: str, mode: int | None = None) -> None:
        self.sent.append(Path(remote).name)
        super().put(local, remote, mode)

    def read(self, remote: str, offset: int = 0, limit: int | None = None) -> bytes:
        if self.breaks(remote):
            raise TransportError("the connection to far is gone", "try again")
        return super().read(remote, offset, limit)


class Far:
    """The tiny engine, the controller's cache, and a host named ``far``."""

    def __init__(self, folder: Path, supervisor: str) -> None:
        self.folder = folder
        self.supervisor = supervisor
        self.tree = tiny_tree(folder / "tiny")
        self.cache = folder / "controller"
        self.remote = folder / "far"
        self.mark = folder / "compiled"
        self.wire = Wire()
        self.notes: list[str] = []
        self.progress: list[tuple[int, int | None]] = []
        self.site = self.new_site()

    def new_site(self, **changes: Any) -> BuildSite:
        launcher = DirectLauncher(self.wire, self.supervisor)
        site = BuildSite("far", self.wire, str(self.remote), launcher, jobs=2)
        return replace(site, **changes)

    def engine(self, **recipe: Any) -> Engine:
        env = {"BUILD_MARK": str(self.mark), "DEBUG_LEVEL": "0", **recipe.pop("env", {})}
        return tiny_engine({"kind": "path"}, env=env, **recipe)

    def ref(self) -> SourceRef:
        found = find_version(self.engine(), str(self.tree), self.cache)
        assert found is not None
        return found

    def build(self, engine: Engine | None = None, **changes: Any) -> Artifact:
        workshop = Workshop(
            self.cache, None, lambda done, total: self.progress.append((done, total)),
            self.notes.append, site=changes.pop("site", self.site), **changes,
        )  # fmt: skip
        return build(engine or self.engine(), self.ref(), workshop)

    def waiting(self) -> Engine:
        """A recipe that says that it has begun, and goes on when it is let."""
        begun, go = self.folder / "begun", self.folder / "go"
        script = f"echo begun; echo $$ >{begun}.new; mv {begun}.new {begun}; "
        script += f"while [ ! -e {go} ]; do sleep 0.02; done; make tiny_bench"
        return self.engine(commands=[["sh", "-c", script]])

    @property
    def compiled(self) -> int:
        return len(self.mark.read_text().split()) if self.mark.exists() else 0

    @property
    def left_on_host(self) -> list[str]:
        """What builds have left outside the host's cache of artifacts."""
        return [path.name for path in (self.remote / "builds").iterdir()]

    @property
    def run_dir(self) -> Path:
        """The folder of the only run on the host."""
        (path,) = (self.remote / "builds").iterdir()
        return path

    def supervisor_pid(self) -> int:
        record = json.loads((self.run_dir / "command.json").read_text())
        return int(record["supervisor"]["pid"])


def tools_only(folder: Path, *without: str) -> str:
    """A ``PATH`` with everything that is installed but some programs."""
    folder.mkdir()
    for place in ("/usr/bin", "/bin"):
        for program in Path(place).iterdir():
            if program.name not in without and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program)
    return str(folder)
