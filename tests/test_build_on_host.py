"""Builds on a remote host: the source sent once, built there, adopted after a break."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from build_host import Far, tools_only
from source_support import tiny_engine

from benchrunner.artifacts import Artifacts
from benchrunner.build import Workshop, build, cache_key, refused, site_of
from benchrunner.building.order import Order
from benchrunner.building.there import There
from benchrunner.definitions import Host, HostLimits
from benchrunner.errors import LaunchError, TransportError
from benchrunner.launchers.supervisor import ensure_supervisor, supervisor_sources
from benchrunner.model import SourceRef
from benchrunner.session import Session, Settings
from benchrunner.toolchain import find_toolchain
from benchrunner.transports import MissingFileError
from benchrunner.transports.local import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from benchrunner.events import Event
    from benchrunner.launchers import LaunchRequest, RunState, Tick
    from benchrunner.model import Artifact, Handle

pytestmark = pytest.mark.native
DEADLINE_S = 20.0


@pytest.fixture(scope="module")
def supervisor(tmp_path_factory: pytest.TempPathFactory) -> str:
    cache = str(tmp_path_factory.mktemp("supervisor"))
    return ensure_supervisor(LocalTransport(), supervisor_sources(), cache)


@pytest.fixture
def far(tmp_path: Path, supervisor: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Far]:
    for name in ("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "CCACHE_BASEDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "ccache"))
    yield Far(tmp_path, supervisor)
    (tmp_path / "go").touch()  # no build of a test that failed waits for ever


def until(condition: Callable[[], object]) -> None:
    limit = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < limit, "it did not happen"
        time.sleep(0.01)


class InBackground:
    """A build in a thread; its artifact or its error when it has ended."""

    def __init__(self, work: Callable[[], Artifact]) -> None:
        self.artifact: Artifact | None = None
        self.error: BaseException | None = None

        def run() -> None:
            try:
                self.artifact = work()
            except BaseException as error:
                self.error = error

        self.thread = threading.Thread(target=run)
        self.thread.start()

    def end(self) -> Artifact:
        self.thread.join(DEADLINE_S)
        assert self.error is None, self.error
        assert self.artifact is not None
        return self.artifact


# ---------------------------------------------------------------- what a build leaves


def test_a_build_is_made_on_the_host_and_recorded_on_both_sides(far: Far) -> None:
    artifact = far.build()
    key = cache_key(far.engine(), far.ref(), find_toolchain())
    folder = far.remote / "artifacts" / key
    assert (artifact.state, artifact.reason) == ("built", "")
    assert artifact.binaries == {"tiny_bench": str(folder / "tiny_bench")}
    assert artifact.directory == str(folder)
    printed = subprocess.run(
        artifact.binaries["tiny_bench"], capture_output=True, text=True, check=True
    )
    assert printed.stdout == "tiny_bench version 1.2.3\n"
    assert (artifact.version, artifact.source) == ("1.2.3", "path")
    assert artifact.compiler == find_toolchain().version
    assert artifact.features == {"zstd", "lz4"}
    assert {"num", "use_direct_reads"} <= (artifact.known_flags or set())
    assert artifact.build_flags["host"] == "far"
    assert artifact.build_flags["PLATFORM_CXXFLAGS"] == "-DZSTD -DLZ4"
    assert sorted(path.name for path in folder.iterdir()) == [
        "artifact.json", "build.log", "make_config.mk", "tiny_bench",
    ]  # fmt: skip
    home = far.cache / "hosts" / "far" / artifact.id
    assert artifact.log == str(home / "build.log")
    assert Path(artifact.log).read_text() == (folder / "build.log").read_text()
    assert "  CC       main.o" in Path(artifact.log).read_text()
    assert json.loads((home / "artifact.json").read_text())["binaries"] == artifact.binaries
    assert not (far.cache / "artifacts").exists()
    assert far.left_on_host == []
    assert not list((far.cache / "builds").glob("*"))
    assert far.progress == [(1, 3), (2, 3), (3, 3)]


def test_progress_without_a_total_and_without_a_rule(far: Far) -> None:
    far.build(far.engine(commands=[["sh", "-c", "make tiny_bench"]]))
    assert far.progress == [(1, None), (2, None), (3, None)]
    far.build(far.engine(count=""))
    assert len(far.progress) == 3


def test_the_second_build_sends_and_builds_nothing(far: Far) -> None:
    first = far.build()
    assert far.build() == far.build(site=far.new_site()) == first
    assert len(far.wire.sent) == 1
    assert far.compiled == 2


def test_a_controller_that_knows_nothing_takes_what_the_host_has(far: Far) -> None:
    first = far.build()
    far.cache = far.folder / "another controller"
    again = far.build()
    assert (again.id, again.binaries) == (first.id, first.binaries)
    assert Path(again.log).is_file()
    assert str(far.cache) in again.log
    assert far.compiled == 2


def test_another_recipe_is_built_from_the_source_that_was_sent(far: Far) -> None:
    first = far.build()
    second = far.build(far.engine(env={"EXTRA_CFLAGS": "-O1"}))
    assert second.id != first.id
    assert far.compiled == 4
    assert len(far.wire.sent) == 1


def test_another_tree_is_another_source(far: Far) -> None:
    far.build()
    (far.tree / "NOTES").write_text("changed")
    far.build()
    assert len(set(far.wire.sent)) == 2


def test_a_source_that_was_damaged_on_the_host_is_sent_again(far: Far) -> None:
    far.build()
    (source,) = (far.remote / "sources").iterdir()
    source.write_bytes(source.read_bytes()[:-20])
    assert far.build(far.engine(env={"EXTRA_CFLAGS": "-O1"})).state == "built"
    assert far.wire.sent == [source.name] * 2


def test_a_binary_that_is_not_what_was_built_is_built_again(far: Far) -> None:
    binary = Path(far.build().binaries["tiny_bench"])
    binary.write_bytes(b"something else")
    assert far.build().state == "built"
    assert far.compiled == 4
    assert far.notes == [f"tiny 1.2.3: {binary} on far is not what was built; building it again"]


def test_the_same_build_on_another_host_is_another_artifact(far: Far) -> None:
    here = far.build(site=None)
    there = far.build()
    other = far.build(site=far.new_site(name="near"))
    assert len({here.id, there.id, other.id}) == 3
    assert "host" not in here.build_flags


def test_the_environment_of_a_host_reaches_its_builds(far: Far) -> None:
    plain = far.build()
    site = far.new_site(env={"CFLAGS": "-O3", "MAKEFLAGS": "-k"})
    flagged = far.build(site=site)
    assert flagged.id != plain.id
    assert flagged.build_flags["CFLAGS"] == "-O3"
    assert "MAKEFLAGS" not in flagged.build_flags


def test_a_build_can_be_nice(far: Far) -> None:
    say = ["sh", "-c", "mkdir out; nice > out/niceness && make tiny_bench"]
    recipe = far.engine(commands=[say], keep=["tiny_bench", "out/niceness"])
    artifact = far.build(recipe, nice=7)
    assert int((Path(artifact.directory) / "niceness").read_text()) >= 7


# ---------------------------------------------------------------- what does not work


def test_a_failed_build_is_a_result_with_its_log_here(far: Far) -> None:
    needed = far.folder / "needed"
    recipe = far.engine(commands=[["sh", "-c", f"echo no luck; test -e {needed}"], ["make"]])
    artifact = far.build(recipe)
    assert artifact.state == "failed"
    assert artifact.reason == "sh of tiny 1.2.3 failed with status 1 on far\nno luck"
    assert artifact.build_flags == {"host": "far"}
    assert artifact.compiler == find_toolchain().version
    assert Path(artifact.log).read_text() == "no luck\n"
    assert (far.cache / "artifacts-failed") in Path(artifact.log).parents
    assert far.left_on_host == []
    needed.touch()
    assert far.build(recipe).state == "built"
    assert len(far.wire.sent) == 1


@pytest.mark.parametrize(
    ("env", "reason"),
    [
        ({"DEBUG_LEVEL": "1"}, "a debug build"),
        ({"EXTRA_CFLAGS": "-DDEBUG"}, "assertions are enabled"),
    ],
)
def test_a_debug_build_is_refused(far: Far, env: dict[str, str], reason: str) -> None:
    artifact = far.build(far.engine(env=env))
    assert artifact.state == "refused"
    assert artifact.reason == f"the build of tiny 1.2.3 is refused: {reason}"
    assert far.left_on_host == []
    assert not list((far.remote / "artifacts").glob("*"))


def test_a_build_that_makes_nothing_is_a_failure(far: Far) -> None:
    artifact = far.build(far.engine(commands=[["true"]]))
    assert artifact.reason == "the build of tiny 1.2.3 on far made no tiny_bench"


def test_a_command_that_a_signal_ends(far: Far) -> None:
    artifact = far.build(far.engine(commands=[["sh", "-c", "kill -KILL $PPID"]]))
    assert artifact.reason == "sh of tiny 1.2.3 was ended by SIGKILL on far"


def test_a_build_that_takes_too_long_is_ended(far: Far) -> None:
    endless = far.engine(commands=[["sh", "-c", "echo begun; sleep 600"]])
    artifact = far.build(endless, limit_s=0.3)
    assert artifact.reason.startswith("sh did not end within 0.3 s on far\nbegun")


def test_a_source_that_cannot_be_had_is_a_failed_build(far: Far) -> None:
    gone = SourceRef("tiny", "1.2.3", "path", str(far.folder / "gone"))
    artifact = build(far.engine(), gone, Workshop(far.cache, 1, site=far.site))
    assert artifact.state == "failed"
    assert artifact.reason.startswith(
        f"the source tree {far.folder / 'gone'} is not there any more"
    )


def test_a_missing_compression_names_the_host(far: Far) -> None:
    artifact = far.build()
    assert refused(artifact, "snappy").reason == (
        "it was built without snappy (it has lz4, zstd); install libsnappy-dev and remove "
        f"{artifact.directory} on far"
    )


def test_a_host_without_compiler_is_told_both_ways_out(far: Far) -> None:
    path = tools_only(far.folder / "bin", "gcc", "g++")
    site = far.new_site(env={"PATH": path})
    artifact = far.build(far.engine(needs={"debian": ["g++", "libtiny-of-no-one-dev"]}), site=site)
    assert artifact.state == "failed"
    assert artifact.reason == (
        "tiny 1.2.3 cannot be built on far without gcc, g++, libtiny-of-no-one-dev; "
        "try: apt-get install -y gcc g++ libtiny-of-no-one-dev there, "
        'or build = "controller" in hosts/far.toml, which builds here'
    )
    assert far.wire.sent == []


def test_a_host_without_apt_is_told_the_names(far: Far) -> None:
    site = far.new_site(env={"PATH": tools_only(far.folder / "bin", "apt-get", "g++")})
    assert far.build(site=site).reason == (
        "tiny 1.2.3 cannot be built on far without g++; try: install what Debian calls g++ there, "
        'or build = "controller" in hosts/far.toml, which builds here'
    )


def test_packages_that_are_missing_there(far: Far) -> None:
    artifact = far.build(far.engine(needs={"debian": ["make", "libtiny-of-no-one-dev"]}))
    assert artifact.state == "failed"
    assert "cannot be built on far without libtiny-of-no-one-dev; try: apt-get" in artifact.reason
    assert far.compiled == 0


# ---------------------------------------------------------------- broken connections, controllers


def test_a_build_outlives_the_connection_and_is_adopted(far: Far) -> None:
    far.wire.breaks = lambda path: "/builds/" in path and (far.folder / "begun").exists()
    with pytest.raises(TransportError, match="the connection to far is gone"):
        far.build(far.waiting())
    far.wire.breaks = lambda _path: False
    assert far.left_on_host == [far.run_dir.name]
    adopted = InBackground(lambda: far.build(far.waiting()))
    until(lambda: far.notes)
    (far.folder / "go").touch()
    artifact = adopted.end()
    assert far.notes == ["tiny 1.2.3: a build of it goes on on far; waiting for that"]
    assert artifact.state == "built"
    assert far.compiled == 2
    assert far.progress[-1] == (3, None)
    assert len(far.wire.sent) == 1
    assert far.left_on_host == []


def test_a_build_that_ended_while_nobody_looked_is_collected(far: Far) -> None:
    far.wire.breaks = lambda path: path.endswith("/status.json")
    with pytest.raises(TransportError):
        far.build()
    until((far.run_dir / "status.json").exists)
    far.wire.breaks = lambda _path: False
    assert far.build().state == "built"
    assert far.compiled == 2


def test_a_build_that_failed_while_nobody_looked_is_tried_again(far: Far) -> None:
    needed = far.folder / "needed"
    recipe = far.engine(commands=[["sh", "-c", f"sleep 0.3; test -e {needed} && make tiny_bench"]])
    far.wire.breaks = lambda path: path.endswith("/status.json")
    with pytest.raises(TransportError):
        far.build(recipe)
    until((far.run_dir / "status.json").exists)
    far.wire.breaks = lambda _path: False
    needed.touch()
    assert far.build(recipe).state == "built"


def test_two_at_once_build_once(far: Far) -> None:
    both = [InBackground(lambda: far.build(far.waiting(), site=far.new_site())) for _ in range(2)]
    until(lambda: far.notes)
    (far.folder / "go").touch()
    first, second = (one.end() for one in both)
    assert (first.state, second.state) == ("built", "built"), (first.reason, second.reason)
    assert first.id == second.id
    assert first.binaries == second.binaries
    assert far.compiled == 2
    assert far.left_on_host == []


@pytest.mark.parametrize("moment", ["TEXT=", "sha256sum", "cp -pL"])
def test_who_waited_for_the_same_run_keeps_it_under_our_hands(far: Far, moment: str) -> None:
    others: list[Artifact] = []

    def keep_it() -> None:
        far.wire.before.clear()
        others.append(far.build(site=far.new_site()))

    far.wire.breaks = lambda path: path.endswith("/status.json")
    with pytest.raises(TransportError):
        far.build()
    until((far.run_dir / "status.json").exists)
    far.wire.breaks = lambda _path: False
    far.wire.before.append((moment, keep_it))
    ours = far.build()
    assert (ours.state, ours.id) == ("built", others[0].id), ours.reason
    assert far.compiled == 2
    assert far.left_on_host == []


def test_a_supervisor_that_is_killed_is_a_failed_build(far: Far) -> None:
    started = InBackground(lambda: far.build(far.waiting()))
    until((far.folder / "begun").exists)
    os.kill(far.supervisor_pid(), signal.SIGKILL)
    artifact = started.end()
    assert artifact.state == "failed"
    assert artifact.reason.startswith("the build of tiny 1.2.3 was lost on far: ")
    assert artifact.reason.endswith("\nbegun")
    assert far.left_on_host == []


def test_a_run_that_was_lost_before_is_started_anew(far: Far) -> None:
    far.wire.breaks = lambda path: "/builds/" in path and (far.folder / "begun").exists()
    with pytest.raises(TransportError):
        far.build(far.waiting())
    far.wire.breaks = lambda _path: False
    os.kill(far.supervisor_pid(), signal.SIGKILL)
    (far.folder / "go").touch()
    assert far.build(far.waiting()).state == "built"
    assert far.left_on_host == []


class Interrupted:
    """A launcher whose wait is interrupted by Ctrl-C when the build has begun."""

    def __init__(self, far: Far) -> None:
        self._far = far
        assert far.site.launcher is not None
        self._real = far.site.launcher

    def start(self, request: LaunchRequest) -> Handle:
        return self._real.start(request)

    def find(self, run_dir: str) -> Handle | None:
        return self._real.find(run_dir)

    def poll(self, handle: Handle) -> RunState:
        return self._real.poll(handle)

    def stop(self, handle: Handle, grace_s: float) -> RunState:
        return self._real.stop(handle, grace_s)

    def wait(self, handle: Handle, on_tick: Tick | None = None) -> RunState:
        del on_tick
        until((self._far.folder / "begun").exists)
        raise KeyboardInterrupt


def test_ctrl_c_ends_the_build_that_it_interrupts(far: Far) -> None:
    with pytest.raises(KeyboardInterrupt):
        far.build(far.waiting(), site=far.new_site(launcher=Interrupted(far)))
    assert far.left_on_host == []


def test_ctrl_c_of_one_who_waits_leaves_the_build_to_the_other(far: Far) -> None:
    started = InBackground(lambda: far.build(far.waiting()))
    until((far.folder / "begun").exists)
    with pytest.raises(KeyboardInterrupt):
        far.build(far.waiting(), site=far.new_site(launcher=Interrupted(far)))
    (far.folder / "go").touch()
    assert started.end().state == "built"
    assert far.compiled == 2


def test_who_waits_for_a_build_that_is_stopped_builds_it(far: Far) -> None:
    started = InBackground(lambda: far.build(far.waiting()))
    until((far.folder / "begun").exists)
    waiter = InBackground(lambda: far.build(far.waiting()))
    until(lambda: far.notes)
    (far.folder / "go").touch()
    os.kill(far.supervisor_pid(), signal.SIGTERM)
    results = {started.end().state, waiter.end().state}
    assert "built" in results


class Late:
    """A launcher that finds nothing at first: another controller starts in that moment."""

    def __init__(self, far: Far, *, finds_later: bool) -> None:
        assert far.site.launcher is not None
        self._real = far.site.launcher
        self._finds = [False, finds_later]

    def find(self, run_dir: str) -> Handle | None:
        return self._real.find(run_dir) if self._finds.pop(0) else None

    def start(self, request: LaunchRequest) -> Handle:
        self._real.start(request)
        return self._real.start(request)

    def poll(self, handle: Handle) -> RunState:
        return self._real.poll(handle)

    def stop(self, handle: Handle, grace_s: float) -> RunState:
        return self._real.stop(handle, grace_s)

    def port(self, arguments: Sequence[str], timeout_s: float) -> Mapping[str, Any]:
        return self._real.port(arguments, timeout_s)

    def wait(self, handle: Handle, on_tick: Tick | None = None) -> RunState:
        return self._real.wait(handle, on_tick)


def test_a_run_that_appears_between_looking_and_starting_is_adopted(far: Far) -> None:
    artifact = far.build(site=far.new_site(launcher=Late(far, finds_later=True)))
    assert artifact.state == "built"
    assert far.compiled == 2


def test_a_run_that_cannot_be_started_is_no_result_of_a_build(far: Far) -> None:
    with pytest.raises(LaunchError, match="holds a run already"):
        far.build(site=far.new_site(launcher=Late(far, finds_later=False)))
    assert far.build().state == "built"


@pytest.mark.parametrize("moment", ["br-supervise", 'cat >"$part/artifact.json"'])
def test_what_another_controller_has_published_meanwhile_is_taken(far: Far, moment: str) -> None:
    folder = Path(far.build().directory)
    aside = folder.rename(far.folder / "aside")
    marked = aside / "build.log"
    marked.write_text("of the other controller")
    far.cache = far.folder / "another controller"

    def publish() -> None:
        if not folder.exists():
            shutil.copytree(aside, folder)

    far.wire.before.append((moment, publish))
    artifact = far.build()
    assert artifact.state == "built"
    assert Path(artifact.log).read_text() == "of the other controller"
    assert far.left_on_host == []
    assert not list((far.remote / "artifacts").glob("*.part-*"))


def test_a_cache_that_cannot_be_written_there_is_a_failed_build(far: Far) -> None:
    far.remote.mkdir()
    (far.remote / "artifacts").symlink_to("/proc")
    artifact = far.build()
    assert artifact.state == "failed"
    assert " cannot be used on far: " in artifact.reason
    assert "try: look at the space and the permissions there" in artifact.reason
    assert far.left_on_host == []


def test_a_build_that_others_always_take_away_ends_some_time(far: Far) -> None:
    def missing(path: str) -> bool:
        if path.endswith("/origin.json"):
            raise MissingFileError("gone")
        return False

    far.wire.breaks = missing
    artifact = far.build()
    assert artifact.reason == "tiny 1.2.3 was taken out of our hands 5 times; try: build it again"


def test_what_does_not_start_there_tells_nothing(far: Far) -> None:
    assert far.site.ask(["no-such-program-anywhere"]) is None


def test_only_the_run_that_was_looked_at_is_removed(far: Far) -> None:
    """A controller that comes late must not remove what another one has started since."""
    started = InBackground(lambda: far.build(far.waiting()))
    until((far.folder / "begun").exists)
    engine = far.waiting()
    key = cache_key(engine, far.ref(), far.site.toolchain)
    order = Order(engine, far.ref(), Workshop(far.cache, None), far.site, key)
    late = There(order, Late(far, finds_later=True))
    late.discard()
    late._run = "that of an earlier run"
    late.discard()
    (far.folder / "go").touch()
    assert started.end().state == "built"


# ---------------------------------------------------------------- installed programs, sweeps


def test_an_installed_program_is_looked_up_on_the_host(far: Far) -> None:
    built = far.build(far.engine(env={"EXTRA_CFLAGS": "-DDEBUG"}, forbid={}), site=None)
    assert built.state == "refused"
    programs = Path(far.build().directory)
    engine = tiny_engine({"kind": "system", "binary": "tiny_bench", "debian": "tiny-tools"})
    ref = SourceRef("tiny", "9", "system", "/opt/controller/tiny_bench")
    site = far.new_site(env={"PATH": f"{programs}:{os.environ['PATH']}"})
    artifact = build(engine, ref, Workshop(far.cache, None, site=site))
    assert (artifact.state, artifact.version) == ("built", "1.2.3")
    assert artifact.binaries == {"tiny_bench": str(programs / "tiny_bench")}
    assert artifact.build_flags == {"host": "far"}
    assert artifact.known_flags is not None
    missing = build(engine, ref, Workshop(far.cache, None, site=far.site))
    assert missing.state == "failed"
    assert missing.reason == (
        "tiny_bench is not installed on far; try: apt-get install -y tiny-tools"
    )


def test_a_sweep_stores_which_host_it_built_on(far: Far) -> None:
    told: list[Event] = []
    settings = Settings(str(far.folder / "results"), far.cache, observer=told.append)
    session = Session(settings)
    artifact = Artifacts(session, far.site).make(far.engine(), far.ref())
    stored = session.store.artifact(artifact.id)
    assert stored == artifact
    assert stored is not None
    assert stored.build_flags["host"] == "far"
    assert told[0].text == f"Tiny 1.2.3 from path {far.tree} on far"
    assert told[-1].text == "Tiny 1.2.3 is ready on far"


def test_a_host_says_how_many_compilers_it_can_run(far: Far) -> None:
    assert replace(far.site, jobs=None).processors == len(os.sched_getaffinity(0))


def test_a_host_of_the_inventory_as_a_place_to_build(far: Far) -> None:
    assert far.site.launcher is not None
    fields: dict[str, Any] = {"limits": HostLimits(jobs=3), "env": {"CFLAGS": "-O3"}}
    remote = Host(name="far", address="far.example.org", build="controller", **fields)
    site = site_of(remote, far.wire, far.site.launcher, "/cache")
    assert (site.name, site.cache, site.jobs, site.build) == ("far", "/cache", 3, "controller")
    assert (site.is_here, dict(site.env)) == (False, {"CFLAGS": "-O3"})
    here = site_of(Host(name="local", **fields), far.wire, far.site.launcher, "/cache")
    assert (here.is_here, here.jobs, dict(here.env)) == (True, 3, {})
