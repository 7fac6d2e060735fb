"""The lease of a host: the real supervisor, real processes, lock files of their own."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchrunner import controller
from benchrunner.controller import Owner, store_id, this_controller
from benchrunner.errors import ConfigurationError, HostBusyError, LaunchError
from benchrunner.host_lease import HostLease, HostLock, LeaseLostError, refuse_lost
from benchrunner.launchers.supervisor import ensure_supervisor, supervisor_sources
from benchrunner.transports import Completed, ConnectionLostError
from benchrunner.transports.local import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

pytestmark = pytest.mark.native

ROOT = Path(__file__).parents[1]
STALE_S = 0.5
LONG_S = 1000.0
ALICE = Owner("a" * 16, "store-1", "alice, process 1 on box: sweep")
BOB = Owner("b" * 16, "store-2", "bob, process 2 on fox: sweep")
CAROL = Owner("c" * 16, "store-1", "carol, process 3 on box: resume")
NOBODY = 65534
SANITIZERS = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


@pytest.fixture(scope="session")
def binaries(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> dict[str, str]:
    """The supervisor as it is used, and as it finds its own mistakes."""
    sanitized = tmp_path_factory.mktemp("sanitized") / "br-supervise"
    sources = sorted(str(path) for path in supervisor_sources().glob("*.c"))
    compiler = subprocess.Popen(["cc", "-std=c17", *SANITIZERS, "-o", str(sanitized), *sources])
    plain = ensure_supervisor(LocalTransport(), supervisor_sources(), str(cache))
    assert compiler.wait() == 0
    return {"plain": plain, "sanitized": str(sanitized)}


@dataclass
class Host:
    """A host with a lock folder of its own, and the steps that a test started there."""

    folder: Path
    supervisor: str
    runs: list[str] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return self.folder / "lock" / "benchrunner.lease"

    def lock(self, stale_s: float = LONG_S) -> HostLock:
        return HostLock(LocalTransport(), self.supervisor, str(self.path.parent), stale_s)

    def claim(self, owner: Owner, fence: int) -> list[str]:
        return ["--owner", owner.id, "--fence", str(fence)]

    def ask(self, verb: str, owner: Owner, fence: int) -> Any:
        return self.lock().ask(verb, "--lock", str(self.path), *self.claim(owner, fence))

    def run(self, *arguments: str) -> Completed:
        return LocalTransport().run([self.supervisor, *arguments], timeout_s=30)

    def start(self, owner: Owner, fence: int, *more: str, name: str = "run") -> Completed:
        self.runs.append(str(self.folder / name))
        lease = ["--lease", str(self.path), *self.claim(owner, fence)]
        return self.run("start", "--run-dir", self.runs[-1], *lease, *more, "--", "sleep", "1000")

    def stop(self, run_dir: str) -> None:
        self.run("stop", "--run-dir", run_dir, "--grace", "0")

    def content(self) -> dict[str, Any]:
        line, rest = self.path.read_text().split("\n")
        assert rest == ""
        content: dict[str, Any] = json.loads(line)
        return content

    def change(self, **changes: Any) -> None:
        self.path.write_text(json.dumps({**self.content(), **changes}) + "\n")


@pytest.fixture(params=["plain", "sanitized"])
def host(
    request: pytest.FixtureRequest,
    binaries: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Host]:
    """One host, with each build of the supervisor."""
    reports = tmp_path / "reports"
    for folder in (reports, tmp_path / "lock"):
        folder.mkdir()
    monkeypatch.setenv("ASAN_OPTIONS", f"log_path={reports}/report:detect_leaks=1")
    monkeypatch.setenv("UBSAN_OPTIONS", f"log_path={reports}/report")
    made = Host(tmp_path, binaries[request.param])
    yield made
    for run_dir in made.runs:
        made.stop(run_dir)
    assert [path.read_text() for path in reports.iterdir()] == []


def until(condition: Callable[[], Any]) -> None:
    """Waits for something that another thread or process does."""
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come about within 30 s")


# ---------------------------------------------------------------- one after the other


def test_one_holder_at_a_time_and_the_next_has_a_greater_fence(host: Host) -> None:
    lock = host.lock()
    assert lock.holder() is None
    with HostLease.take(lock, ALICE) as lease:
        assert (lease.fence, lease.took_over) == (1, None)
        lease.check()
        with pytest.raises(HostBusyError, match="alice"):
            HostLease.take(lock, BOB, wait=False)
        holder = lock.holder()
        assert holder is not None
        assert (holder.state, holder.owner, holder.stale) == ("held", ALICE.id, False)
    lease.release()  # once more changes nothing
    assert host.content()["state"] == "released"
    with HostLease.take(lock, BOB, wait=False) as lease:
        assert (lease.fence, lease.took_over) == (2, None)
    assert host.path.stat().st_mode & 0o777 == 0o666


def test_the_same_owner_may_take_it_again(host: Host) -> None:
    assert [host.lock().take(ALICE)["fence"] for _ in range(3)] == [1, 1, 1]


def test_releasing_twice_is_fine_until_somebody_else_had_it(host: Host) -> None:
    host.lock().take(ALICE)
    assert [host.ask("release", ALICE, 1)["granted"] for _ in range(2)] == [True, True]
    host.lock().take(BOB)
    assert host.ask("release", ALICE, 1)["why"] == "lost"


def test_the_refusal_says_who_since_when_and_what_to_do(host: Host) -> None:
    host.lock().take(ALICE)
    assert host.start(ALICE, 1).exit_code == 0
    host.change(since_unix_ns=1_700_000_000_000_000_000)
    with pytest.raises(HostBusyError) as caught:
        HostLease.take(host.lock(), BOB, wait=False)
    assert caught.value.message == (
        "this machine is in use by alice, process 1 on box: sweep; since 2023-11-14 22:13:20 UTC; "
        f"last sign of life 0 s ago; {host.folder}/run runs"
    )
    assert caught.value.hint == "wait for it to end, or end that process"


def test_who_waits_is_told_for_whom_and_gets_it(host: Host) -> None:
    lock = host.lock(STALE_S)
    lease = HostLease.take(lock, ALICE)
    waited_for: list[str | None] = []
    got: list[HostLease] = []

    def wait() -> None:
        got.append(HostLease.take(lock, BOB, on_wait=lambda one: waited_for.append(one.about)))

    waiting = threading.Thread(target=wait)
    waiting.start()
    until(lambda: waited_for)
    time.sleep(STALE_S * 1.5)  # long enough to be stale, were there no heartbeat
    assert not got
    lease.release()
    waiting.join()
    assert waited_for == [ALICE.about]
    assert got[0].fence == 2
    got[0].release()


def test_waiting_can_be_stopped(host: Host) -> None:
    host.lock().take(ALICE)
    stop = threading.Event()
    with pytest.raises(HostBusyError, match="is in use by alice"):
        HostLease.take(host.lock(), BOB, on_wait=lambda _: stop.set(), stop=stop)


def test_two_at_once_are_never_both_granted(host: Host) -> None:
    def both(*more: str) -> list[dict[str, Any]]:
        asked = [
            subprocess.Popen(
                [host.supervisor, "lease", "take", "--lock", str(host.path), "--owner", owner,
                 "--store", owner, "--about", owner, "--stale", "60", *more],
                stdout=subprocess.PIPE,
            )
            for owner in (f"a{number}", f"b{number}")
        ]  # fmt: skip
        answers = [json.loads(process.communicate()[0]) for process in asked]
        assert sorted(process.returncode for process in asked) == [0, 5]
        return answers

    fence = 0
    for number in range(50):
        if number % 10 == 0:
            host.path.unlink(missing_ok=True)  # they race for making it, too
            fence = 0
        dead = ["--dead", host.content()["owner"]] if fence else []
        granted = [answer for answer in both(*dead) if answer["granted"]]
        fence += 1
        assert [answer["fence"] for answer in granted] == [fence]


OWNERS = (ALICE, BOB, CAROL)
VERBS = ("take", "take over", "renew", "release", "start")


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(range(3)), st.sampled_from(VERBS)), max_size=15))
def test_whatever_they_do_one_holds_it_and_the_fence_only_grows(
    binaries: dict[str, str], steps: Sequence[tuple[int, str]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        host = Host(Path(folder), binaries["plain"])
        host.path.parent.mkdir()
        holder: int | None = None
        last_owner: int | None = None
        fence = 0
        believed = [0, 0, 0]
        for who, verb in steps:
            owner = OWNERS[who]
            if verb in ("take", "take over"):
                dead = OWNERS[holder].id if verb == "take over" and holder is not None else None
                answer = host.lock().take(owner, dead)
                free = holder in (None, who) or dead is not None
                assert answer["granted"] == free
                if free:
                    fence += holder != who
                    holder, last_owner = who, who
                    assert answer["fence"] == fence
                    believed[who] = fence
            elif believed[who] and verb == "start":
                remove = ["remove", "--lease", str(host.path), *host.claim(owner, believed[who])]
                ended = host.run(*remove, "--in", folder, "--folder", f"{folder}/none").exit_code
                assert ended == (0 if holder == who and believed[who] == fence else 5)
            elif believed[who]:
                answer = host.ask(verb, owner, believed[who])
                mine = believed[who] == fence and last_owner == who
                assert answer["granted"] == (mine and (verb == "release" or holder == who))
                holder = None if mine and verb == "release" else holder


# ---------------------------------------------------------------- dead controllers

CONTROLLER = """
import sys, time
from dataclasses import replace
from benchrunner.controller import this_controller
from benchrunner.host_lease import HostLease, HostLock
from benchrunner.transports.local import LocalTransport
supervisor, folder, stale_s, seen = sys.argv[1:]
owner = this_controller("store-1", "sweep --data postgresql://me:secret@db/x")
owner = owner if seen == "here" else replace(owner, process="")
HostLease.take(HostLock(LocalTransport(), supervisor, folder, float(stale_s)), owner)
print("holds", flush=True)
time.sleep(1000)
"""


def controller_process(host: Host, stale_s: float, seen: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, host.supervisor, str(host.path.parent), str(stale_s),
         seen],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "holds\n"
    process.stdout.close()
    return process


def test_a_controller_on_another_machine_is_dead_when_its_heartbeat_stops(host: Host) -> None:
    process = controller_process(host, STALE_S, "elsewhere")
    time.sleep(STALE_S * 1.5)
    with pytest.raises(HostBusyError, match="last sign of life"):
        HostLease.take(host.lock(), BOB, wait=False)  # its heart beats
    process.kill()
    process.wait()
    with HostLease.take(host.lock(STALE_S), BOB) as lease:
        assert lease.fence == 2
        assert lease.took_over is not None
        assert (lease.took_over.stale, lease.took_over.running) == (True, False)


def test_a_controller_on_this_machine_is_seen_dead_at_once(host: Host) -> None:
    process = controller_process(host, LONG_S, "here")
    with pytest.raises(HostBusyError) as caught:
        HostLease.take(host.lock(), BOB, wait=False)
    assert f"process {process.pid} on " in caught.value.message
    assert "sweep --data postgresql://db/x" in caught.value.message, "no login is shown"
    process.kill()
    process.wait()
    with HostLease.take(host.lock(), BOB, wait=False) as lease:
        assert lease.took_over is not None
        assert not lease.took_over.stale


def test_a_step_outlives_its_controller_and_only_its_store_may_go_on_with_it(host: Host) -> None:
    host.lock(0.01).take(ALICE)
    assert host.start(ALICE, 1).exit_code == 0
    time.sleep(0.02)
    with pytest.raises(HostBusyError) as caught:
        HostLease.take(host.lock(), BOB, wait=False)
    assert caught.value.message.endswith(f"{host.folder}/run runs")
    assert f"br-supervise stop --run-dir {host.folder}/run" in caught.value.hint

    with HostLease.take(host.lock(), CAROL, wait=False) as lease:
        assert lease.fence == 2
        assert lease.took_over is not None
        assert (lease.took_over.run_dir, lease.took_over.running) == (f"{host.folder}/run", True)
    assert host.lock().take(BOB)["why"] == "step-runs", "given back, but the step still runs"
    host.stop(f"{host.folder}/run")
    assert host.lock().take(BOB)["fence"] == 3
    assert host.content()["run_dir"] == ""


def test_of_several_steps_none_may_still_run(host: Host) -> None:
    host.lock().take(ALICE)
    service = f"{host.folder}/service"
    started = host.start(ALICE, 1, name="service")
    assert host.start(ALICE, 1, name="client").exit_code == 0
    host.stop(f"{host.folder}/client")
    shutil.rmtree(service)  # even one whose folder is gone
    assert host.lock().take(BOB, dead=ALICE.id)["why"] == "step-runs"
    os.kill(json.loads(started.stdout)["pid"], signal.SIGKILL)
    until(lambda: host.lock().take(BOB, dead=ALICE.id)["granted"])


def test_nothing_survives_a_reboot(host: Host) -> None:
    host.lock().take(ALICE)
    host.change(boot_id="0-0", heartbeat_ns=2**62)
    with HostLease.take(host.lock(), BOB, wait=False) as lease:
        assert lease.fence == 2
        assert lease.took_over is not None
        assert lease.took_over.seconds_since_heartbeat is None
        assert "sign of life" not in lease.took_over.describe()


def test_the_late_writer_is_stopped_on_the_host(host: Host) -> None:
    host.lock().take(ALICE)
    work = host.folder / "work"
    (work / "trial").mkdir(parents=True)
    for folder in (work, work / "trial"):
        (folder / ".benchrunner").write_text("{}")
    host.lock().take(BOB, dead=ALICE.id)

    late = host.start(ALICE, 1, "--in", str(work), "--fresh", str(work / "trial"))
    assert late.exit_code == 5
    assert late.stderr.decode() == (
        f"br-supervise: the lease of this host is lost (fence 1): {host.path} is held by "
        f'"{BOB.about}" (fence 2)\n'
    )
    assert (work / "trial" / ".benchrunner").read_text() == "{}", "and nothing was emptied"
    assert not (host.folder / "run").exists()
    with pytest.raises(LeaseLostError, match="this machine is lost: it is held by bob, process 2"):
        refuse_lost("this machine", late)
    refuse_lost("this machine", Completed(0, b"", b""))
    for verb in ("renew", "release"):
        assert host.ask(verb, ALICE, 1)["why"] == "lost"
    assert host.ask("renew", BOB, 2)["granted"]


def test_a_lost_lease_is_noticed_by_the_heartbeat(host: Host) -> None:
    lease = HostLease.take(host.lock(STALE_S), ALICE)
    host.lock().take(BOB, dead=ALICE.id)
    until(lambda: lease._loss)
    with pytest.raises(LeaseLostError, match="is held by bob") as caught:
        lease.check()
    assert "benchrunner resume goes on when the host is free" in caught.value.hint
    with pytest.raises(LeaseLostError):
        lease.release()
    assert host.ask("renew", BOB, 2)["granted"], "what is another's is not given back"


def test_losing_it_is_a_note_to_what_went_wrong_before(host: Host) -> None:
    def fail() -> None:
        with HostLease.take(host.lock(), ALICE):
            host.lock().take(BOB, dead=ALICE.id)
            host.ask("release", BOB, 2)
            raise ArithmeticError("something else")

    with pytest.raises(ArithmeticError, match="something else") as caught:
        fail()
    assert "it was given back by bob" in caught.value.__notes__[0]


def test_losing_it_unnoticed_is_said_at_the_end(host: Host) -> None:
    lease = HostLease.take(host.lock(), ALICE)
    host.path.unlink()
    with pytest.raises(LeaseLostError, match="is gone or empty: the host was rebooted"), lease:
        assert host.start(ALICE, 1).stderr.decode().endswith("or somebody deleted it\n")


class Cut(LocalTransport):
    """A host whose connection can be cut."""

    cut = False
    runs = 0

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        input: bytes | None = None,  # noqa: A002
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Completed:
        self.runs += 1
        if self.cut:
            raise ConnectionLostError("the connection to this machine broke")
        return super().run(argv, timeout_s=timeout_s, input=input, env=env, cwd=cwd)


def test_a_cut_connection_is_no_loss(host: Host) -> None:
    transport = Cut()
    lease = HostLease.take(replace(host.lock(STALE_S), transport=transport), ALICE)
    transport.cut = True
    until(lambda: lease.problem)
    assert lease.problem == "the connection to this machine broke"
    before = host.content()["heartbeat_ns"]
    transport.cut = False
    until(lambda: lease.problem is None)
    assert host.content()["heartbeat_ns"] > before
    lease.check()
    lease.release()


def test_who_waits_goes_on_waiting_when_the_connection_is_back(host: Host) -> None:
    transport = Cut()
    lock = replace(host.lock(STALE_S), transport=transport)
    host.lock().take(ALICE)
    transport.cut = True
    with pytest.raises(ConnectionLostError):
        HostLease.take(lock, BOB)

    def cut_and_mend() -> None:
        transport.cut, before = True, transport.runs
        until(lambda: transport.runs > before + 1)
        host.ask("release", ALICE, 1)
        transport.cut = False

    transport.cut = False
    mender = threading.Thread(target=cut_and_mend)
    HostLease.take(lock, BOB, on_wait=lambda _: mender.start()).release()
    mender.join()


# ---------------------------------------------------------------- the file


@pytest.mark.parametrize("content", ["garbage", "{}\n", "\0\n", '{"state":"held"', "x" * 9000])
def test_a_file_that_cannot_be_read_is_an_unknown_holder(host: Host, content: str) -> None:
    host.path.write_text(content)
    with pytest.raises(HostBusyError) as caught:
        HostLease.take(host.lock(), BOB, wait=False)
    assert "an unknown holder, for the lock file cannot be read; last changed" in str(caught.value)
    assert caught.value.hint.endswith(f"truncate -s 0 {host.path}")
    assert host.ask("renew", ALICE, 1)["why"] == "lost"
    os.utime(host.path, (0, 0))
    assert host.lock().take(BOB)["fence"] > 10**9, "greater than any that it may have held"
    assert host.content()["owner"] == BOB.id


def test_a_file_that_cannot_be_read_waits_for_running_steps(host: Host) -> None:
    host.lock().take(ALICE)
    assert host.start(ALICE, 1).exit_code == 0
    host.path.write_text("garbage")
    os.utime(host.path, (0, 0))
    for store in (ALICE, BOB):
        assert host.lock().take(store)["why"] == "step-runs", "nobody knows whose step it is"
    os.truncate(host.path, 0)
    assert host.lock().take(BOB)["why"] == "step-runs"
    host.stop(host.runs[0])
    assert host.lock().take(BOB)["fence"] == 1


def test_clock_jumps_do_no_harm(host: Host) -> None:
    before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    host.lock().take(ALICE)
    after = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    assert before < host.content()["heartbeat_ns"] < after
    for moment in (0, 2**32):
        os.utime(host.path, (moment, moment))
        host.change(since_unix_ns=moment)
        assert host.lock().take(BOB)["why"] == "alive"
    host.change(heartbeat_ns=after + 10**12)
    assert host.lock().take(BOB)["why"] == "unreadable", "no heart beats in the future"


def test_a_shorter_line_leaves_nothing_of_a_longer_one(host: Host) -> None:
    host.lock().take(replace(ALICE, about="a" * 300))
    host.ask("release", ALICE, 1)
    host.lock().take(replace(BOB, about="b"))
    assert host.content()["about"] == "b"


def test_texts_too_long_for_a_page(host: Host) -> None:
    host.lock().take(replace(ALICE, about="a" * 3000))
    folder = host.folder / "/".join(["d" * 200] * 5)
    folder.mkdir(parents=True)
    name = str(folder.relative_to(host.folder) / "run")
    assert host.start(ALICE, 1, name=name).exit_code == 0
    assert host.content()["run_dir"] == "", "it is for people only"
    with pytest.raises(ConfigurationError, match="its texts are too long"):
        host.lock().take(replace(ALICE, about="a" * 5000))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: path.symlink_to(path.parent / "other"), "it is a symbolic link"),
        (lambda path: path.mkdir(), "it is not a regular file"),
        (os.mkfifo, "it is not a regular file"),
        (lambda path: os.link(__file__, path), "the file has a second name"),
    ],
)
def test_anything_but_a_plain_file_is_refused(
    host: Host, make: Callable[[Path], None], why: str
) -> None:
    try:
        make(host.path)
    except OSError as error:
        pytest.skip(f"no link from one file system to another: {error}")
    with pytest.raises(ConfigurationError) as caught:
        HostLease.take(host.lock(), BOB)
    assert caught.value.message == (
        f"the lock file {host.path} cannot be used: {why} (on this machine)"
    )


@pytest.mark.parametrize("folder", ["/sys", "/nowhere/at-all"])
def test_a_folder_that_does_not_do_is_named(host: Host, folder: str) -> None:
    lock = replace(host.lock(), lock_dir=folder)
    with pytest.raises(ConfigurationError) as caught:
        HostLease.take(lock, BOB)
    assert caught.value.message.startswith(
        f"the lock file {folder}/benchrunner.lease cannot be used: "
    )
    assert "\n" not in caught.value.message
    assert caught.value.hint == (
        "set lock_dir of this host to a folder, the same for all, where everybody who benchmarks "
        f"there may write; or as root: install -m 666 /dev/null {folder}/benchrunner.lease"
    )


def test_other_users_share_it(host: Host) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    with tempfile.TemporaryDirectory() as name:
        program = Path(name) / "br-supervise"
        shutil.copy(host.supervisor, program)
        (Path(name) / "lock").mkdir()
        for path, mode in ((Path(name), 0o755), (program, 0o755), (Path(name) / "lock", 0o1777)):
            path.chmod(mode)
        shared = Host(Path(name), str(program))
        shared.lock().take(ALICE)

        def as_nobody(owner: Owner) -> Any:
            done = subprocess.run(
                [program, "lease", "take", "--lock", shared.path, "--owner", owner.id, "--store",
                 owner.store, "--about", owner.about, "--stale", "60"],
                user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, check=False,
            )  # fmt: skip
            return json.loads(done.stdout)

        assert as_nobody(BOB)["why"] == "alive"
        shared.ask("release", ALICE, 1)
        assert as_nobody(BOB)["fence"] == 2
        shared.path.unlink()
        assert as_nobody(BOB)["fence"] == 1
        assert shared.lock().take(ALICE, dead=BOB.id)["fence"] == 2


def test_a_frozen_process_that_has_it_locked_is_not_waited_for_for_ever(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.lock().take(ALICE)
    with host.path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        asked = subprocess.Popen(
            [host.supervisor, "lease", "show", "--lock", str(host.path)], stdout=subprocess.PIPE
        )
        with pytest.raises(subprocess.TimeoutExpired):
            asked.wait(0.2)
        fcntl.flock(file, fcntl.LOCK_UN)
        answer = json.loads(asked.communicate()[0])
    assert answer["holder"]["owner"] == ALICE.id

    path = "/run/lock/benchrunner.lease"
    why = f"br-supervise: the lock file {path} cannot be used: another process has had it locked"
    monkeypatch.setattr(
        LocalTransport,
        "run",
        lambda *_, **__: Completed(1, b"", f"{why} for 10 seconds\n".encode()),
    )
    with pytest.raises(ConfigurationError) as caught:
        host.lock().holder()
    assert caught.value.hint == f"fuser {path} names that process; it may be frozen"


def test_the_usual_place(host: Host) -> None:
    shown = json.loads(host.run("lease", "show").stdout)
    usual = "/run/lock" if Path("/run/lock").is_dir() else "/tmp"  # noqa: S108
    assert shown["lock"] == f"{usual}/benchrunner.lease"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lease"], "lease: needs one of take, renew, release, show"),
        (["lease", "steal"], "lease: 'steal' is none of take, renew, release, show"),
        (["lease", "take", "--owner", "a"], "lease take: needs --owner, --store, --about and"),
        (["lease", "renew", "--owner", "a"], "lease renew: needs --lock, --owner and --fence"),
        (["lease", "release", "--fence", "x"], "--fence: 'x' is not a number from 1 on"),
        (["lease", "show", "--lock"], "--lock needs a value"),
        (["lease", "show", "--stale", "1"], "lease show: unknown option --stale"),
        (["lease", "show", "more"], "lease show: unexpected argument 'more'"),
        (["lease", "take", "--stale", "0"], "--stale: 0 seconds is out of range"),
        (
            ["start", "--run-dir", "r", "--lease", "f", "--fence", "1", "--", "true"],
            "start: --lease, --owner and --fence go together",
        ),
    ],
)
def test_wrong_usage(host: Host, arguments: list[str], message: str) -> None:
    done = host.run(*arguments)
    assert done.exit_code == 2
    assert done.stderr.decode().startswith(f"br-supervise: {message}")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("code", "program", "message"),
    [
        ("exit 1", "sh", "the lease of this machine: no reason given"),
        ("echo hello", "sh", "the supervisor on this machine answered b'hello\\n'"),
    ],
)
def test_a_supervisor_that_is_none(tmp_path: Path, code: str, program: str, message: str) -> None:
    script = tmp_path / "br-supervise"
    script.write_text(f"#!/bin/{program}\n{code}\n")
    script.chmod(0o755)
    with pytest.raises(LaunchError) as caught:
        HostLock(LocalTransport(), str(script)).holder()
    assert caught.value.message == message


# ---------------------------------------------------------------- who


def test_a_store_has_a_name_of_its_own(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    first = store_id("sqlite:///store.db", one)
    assert store_id("sqlite:///store.db", one) == first
    shutil.copytree(one, other)
    assert store_id("sqlite:///store.db", other) != first, "a copy is another store"
    assert [path.name for path in one.iterdir()] == [".store-id"]

    server = store_id("postgresql+psycopg://me:secret@db1:5432/results", tmp_path)
    assert store_id("postgresql+psycopg://***@db1:5432/results", other) == server
    assert store_id("postgresql+psycopg://db1:5432/others", tmp_path) != server


def test_a_server_on_this_machine_is_another_than_on_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = store_id("postgresql+psycopg://localhost/results", tmp_path)
    monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
    assert store_id("postgresql+psycopg://localhost/results", tmp_path) != here


def test_who_comes_second_takes_the_first_ones_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = store_id("sqlite:///store.db", tmp_path)
    monkeypatch.setattr(Path, "exists", lambda _: False)  # as it was a moment before
    assert store_id("sqlite:///store.db", tmp_path) == first
    assert len(list(tmp_path.iterdir())) == 1


def test_this_process_is_alive_and_one_of_another_machine_cannot_be_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    me = this_controller("s", "sweep\nflash")
    assert me.about.endswith(f"process {os.getpid()} on {os.uname().nodename}: sweep flash")
    assert me.id != this_controller("s", "sweep").id
    pid, start, boot, namespace = me.process.split(" ")
    assert not controller.is_seen_dead(me.process)
    assert controller.is_seen_dead(f"{pid} {int(start) + 1} {boot} {namespace}"), "pid used again"
    for other in (f"{pid} 1 0-0 {namespace}", f"{pid} 1 {boot} pid:[1]", "", None):
        assert not controller.is_seen_dead(other)
    monkeypatch.setattr(Path, "readlink", lambda _: (_ for _ in ()).throw(OSError()))
    assert this_controller("s", "sweep").process == ""
