"""Commands, files and supervised runs through ``br-supervise serve``, over real pipes."""

from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from serving_support import (
    BUILDS,
    MIB,
    NO_LIMIT_S,
    Far,
    compile_once,
    eventually,
    mark,
    opened,
    processes_with,
)

from benchrunner.errors import TransportError
from benchrunner.transports import Completed, MissingFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.native


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The supervisor in every build."""
    return compile_once(tmp_path_factory)


@pytest.fixture
def far(programs: dict[str, str], tmp_path: Path) -> Iterator[Far]:
    """A far end that must end well, whatever the test does with it."""
    yield from opened(programs["sanitized"], tmp_path)


@pytest.fixture(params=BUILDS)
def each_far(
    request: pytest.FixtureRequest, programs: dict[str, str], tmp_path: Path
) -> Iterator[Far]:
    """The same of each build."""
    yield from opened(programs[request.param], tmp_path)


# ---------------------------------------------------------------- run


def test_output_exit_code_and_environment_come_back(far: Far) -> None:
    done = far.shell('echo "$ODD"; echo err >&2; exit 7', env={"ODD": "a b'\"$\n\udcff€"})
    assert done == Completed(7, b"a b'\"$\n\xff\xe2\x82\xac\n", b"err\n")


def test_the_environment_is_that_of_the_far_end_with_additions(far: Far) -> None:
    path = os.environ["PATH"]
    assert far.shell('echo "$PATH"').stdout.decode() == f"{path}\n"
    assert far.shell('echo "$PATH"', env={"PATH": f"{path}:/x"}).stdout.decode() == f"{path}:/x\n"
    assert far.shell('printf "$EMPTY"; env', env={"EMPTY": ""}).stdout.count(b"EMPTY=\n") == 1


@pytest.mark.parametrize(("script", "code"), [("kill -TERM $$", -15), ("kill -KILL $$", -9)])
def test_a_signal_is_a_negative_exit_code(far: Far, script: str, code: int) -> None:
    assert far.shell(script).exit_code == code


def test_commands_have_default_signals_and_nothing_else_open(far: Far) -> None:
    done = far.shell("grep -E '^Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd")
    names = done.stdout.decode().split()
    assert names[:4] == ["SigBlk:", "0" * 16, "SigIgn:", "0" * 16]
    assert names[4:] == ["0", "1", "2", "3"]  # 3 is the folder that ls reads


def test_bytes_that_are_no_text_go_through_both_ways(far: Far) -> None:
    data = bytes(range(256)) * 20_000
    done = far.shell("tee /dev/stderr", input=data)
    assert (done.stdout, done.stderr) == (data, data)
    assert far.shell("cat").stdout == b""


def test_input_that_nobody_reads_is_no_error(far: Far) -> None:
    assert far.shell("exec <&-; sleep 0.05", input=b"x" * 3_000_000).exit_code == 0


def test_many_commands_run_at_the_same_time(far: Far, tmp_path: Path) -> None:
    """Each of them waits until all twenty are there."""
    here = tmp_path / "here"
    here.mkdir()
    script = f"touch {here}/$N; until [ $(ls {here} | wc -l) -eq 20 ]; do sleep 0.02; done"
    with ThreadPoolExecutor(20) as threads:
        numbers = [str(number) for number in range(20)]
        done = list(threads.map(lambda n: far.shell(f"{script}; echo $N", env={"N": n}), numbers))
    assert [d.stdout.decode().strip() for d in done] == numbers


def test_many_threads_get_their_own_answers(far: Far, tmp_path: Path) -> None:
    def ask(number: int) -> bool:
        path = tmp_path / f"file{number}"
        path.write_bytes(b"x" * number)
        words = far.serving.run(["printf", "%s", str(number)], timeout_s=NO_LIMIT_S).stdout
        content = far.serving.read(str(path))
        return (int(words), len(content), far.serving.size(str(path))) == (number,) * 3

    with ThreadPoolExecutor(16) as threads:
        assert all(threads.map(ask, range(1, 200)))


def test_large_output_does_not_hold_up_the_others(far: Far) -> None:
    with ThreadPoolExecutor(2) as threads:
        large = threads.submit(far.shell, "head -c 50000000 /dev/zero; printf end >&2")
        sizes = []
        while not large.done():
            sizes.append(far.serving.size("/proc/meminfo"))
    assert set(sizes) == {0}
    done = large.result()
    assert (len(done.stdout), done.stdout.count(0), done.stderr) == (50_000_000,) * 2 + (b"end",)


def test_what_goes_wrong_is_said_as_on_this_machine(far: Far, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("not a program")
    run = far.serving.run
    with pytest.raises(TransportError, match=r"^no-such was not found on the far end\n") as caught:
        run(["no-such", "x"], timeout_s=NO_LIMIT_S)
    assert caught.value.hint == "benchrunner doctor"
    with pytest.raises(
        MissingFileError, match=r"^pwd cannot run in /no/such on the far end: no such folder$"
    ):
        run(["pwd"], cwd="/no/such", timeout_s=NO_LIMIT_S)
    with pytest.raises(TransportError, match=r"^pwd cannot run on .*: not a directory$"):
        run(["pwd"], cwd=str(plain), timeout_s=NO_LIMIT_S)
    with pytest.raises(TransportError, match=r"plain cannot run on .*: permission denied$"):
        run([str(plain)], timeout_s=NO_LIMIT_S)
    with pytest.raises(TransportError, match=r"cannot run on .*: argument list too long$"):
        run(["echo", "x" * 200_000], timeout_s=NO_LIMIT_S)
    assert run(["pwd"], cwd=str(tmp_path), timeout_s=NO_LIMIT_S).stdout == b"%s\n" % bytes(tmp_path)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"argv": []}, "an empty argument list cannot be run"),
        ({"argv": ["a\0b"]}, "cannot run on the far end: embedded null byte"),
        ({"argv": ["\ud800"]}, "cannot run on the far end: 'utf-8' codec can't encode"),
        ({"argv": ["x"], "env": {"A=B": "c"}}, "illegal environment variable name"),
        ({"argv": ["x"] * 400_000}, "cannot run on the far end: argument list too long"),
        ({"argv": ["x"], "input": bytes(64 * MIB + 1)}, "its input of 67108865 bytes is over"),
    ],
)
def test_what_cannot_arrive_is_not_sent(far: Far, how: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TransportError, match=sentence):
        far.serving.run(timeout_s=NO_LIMIT_S, **how)
    assert far.shell("echo on").stdout == b"on\n"


def test_the_time_limit_kills_the_whole_group(far: Far) -> None:
    with pytest.raises(
        TransportError, match=r"^sh -c .* did not end within 0\.3 s on the far end\n"
    ):
        far.shell("sleep 1000 & (sleep 1000; true) & wait", env={"MARK": mark("1")}, timeout_s=0.3)
    assert processes_with(mark("1")) == []


def test_the_group_belongs_to_the_command_when_its_leader_has_ended(far: Far) -> None:
    done = far.shell("(sleep 1.3; echo late) & echo soon")
    assert done.stdout == b"soon\nlate\n"
    with pytest.raises(TransportError, match=r"did not end within 0\.2 s"):
        far.shell("sleep 1000 & true", env={"MARK": mark("2")}, timeout_s=0.2)
    assert processes_with(mark("2")) == []


def test_who_left_the_group_is_not_waited_for(far: Far, tmp_path: Path) -> None:
    leaver = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 1000' & "
    wait = f"until [ -s {tmp_path}/pid ]; do sleep 0.01; done"
    assert far.shell(f"{leaver} {wait}; echo out; exit 3") == Completed(3, b"out\n", b"")
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    (tmp_path / "pid").unlink()
    with pytest.raises(TransportError, match="did not end within"):
        far.shell(f"{leaver} {wait}; wait", timeout_s=0.5)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_an_interrupt_ends_the_command(far: Far) -> None:
    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            far.shell("sleep 1000", env={"MARK": mark("3")})
    finally:
        signal.signal(signal.SIGALRM, before)
    assert processes_with(mark("3")) == []
    assert far.shell("echo on").stdout == b"on\n"


def test_too_many_requests_at_once_are_refused(far: Far, tmp_path: Path) -> None:
    far.supervise(tmp_path / "run", f"until [ -e {tmp_path}/go ]; do sleep 0.05; done")

    def wait() -> str:
        try:
            return far.serving.wait(str(tmp_path / "run"), NO_LIMIT_S).state
        except TransportError as error:
            (tmp_path / "go").touch()
            return error.message

    with ThreadPoolExecutor(201) as threads:
        states = [future.result() for future in [threads.submit(wait) for _ in range(201)]]
    refusal = f"{tmp_path}/run cannot be looked at on the far end: too many requests at once"
    assert (states.count("finished"), states.count(refusal)) == (200, 1)


# ---------------------------------------------------------------- files


def test_read_returns_the_part_asked_for(far: Far, tmp_path: Path) -> None:
    path = tmp_path / "ünï \n\udcff"
    path.write_bytes(b"0123456789")
    read = far.serving.read
    parts = [read(str(path), *part) for part in [(), (4,), (4, 3), (8, 100), (100, 5), (0, 0)]]
    assert parts == [b"0123456789", b"456789", b"456", b"89", b"", b""]
    assert read(str(path), 0, -1) == b"0123456789"


def test_large_files_come_in_order(far: Far, tmp_path: Path) -> None:
    path = tmp_path / "large"
    data = os.urandom(5 * MIB + 17)
    path.write_bytes(data)
    assert far.serving.read(str(path)) == data
    assert far.serving.read(str(path), MIB + 1, 2 * MIB + 3) == data[MIB + 1 : 3 * MIB + 4]
    assert far.serving.read(str(path), 1, 512 << 10) == data[1 : 1 + (512 << 10)]


def test_files_of_proc_can_be_read(far: Far) -> None:
    assert b"MemTotal" in far.serving.read("/proc/meminfo")
    assert far.serving.read("/proc/kallsyms").count(b"\n") > 1000
    assert far.serving.size("/proc/meminfo") == 0


def test_sizes(far: Far, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nowhere")
    names = ["file", "link", "dangling", "missing", "file/below", "."]
    sizes = [far.serving.size(f"{tmp_path}/{name}") for name in names]
    assert sizes == [5, 5, None, None, None, tmp_path.stat().st_size]


def test_what_cannot_be_read_is_said_as_on_this_machine(far: Far, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    read, size = far.serving.read, far.serving.size
    with pytest.raises(
        MissingFileError, match=r"^/no/file cannot be read on the far end: /no/file is not there$"
    ):
        read("/no/file")
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: read(str(tmp_path)), r"cannot be read on the far end: is a directory$"),
        (lambda: read("/etc/passwd/x"), r"cannot be read on the far end: not a directory$"),
        (lambda: read(str(tmp_path / "fifo"), 3), r"cannot be read on .*: illegal seek$"),
        (lambda: read("/etc/passwd", -1), r"cannot be read on .*: offset -1 is negative$"),
        (lambda: size("/" + "n" * 300), r"cannot be looked at on .*: file name too long$"),
        (lambda: size("~/x"), r"^'~/x' is not an absolute path on the far end$"),
        (lambda: size("/a\0b"), r"cannot be looked at on the far end: embedded null byte$"),
    ]
    for attempt, sentence in cases:
        with pytest.raises(TransportError, match=sentence):
            attempt()


# ---------------------------------------------------------------- supervised runs


def test_the_end_of_a_run_is_told(each_far: Far, tmp_path: Path) -> None:
    run = tmp_path / "run"
    each_far.supervise(run, f"echo out; until [ -e {tmp_path}/go ]; do sleep 0.02; done; exit 4")
    eventually(lambda: (run / "stdout").stat().st_size == 4)
    running = each_far.serving.wait(str(run), 0.05)
    with ThreadPoolExecutor(2) as threads:
        waits = [threads.submit(each_far.serving.wait, str(run), None) for _ in range(2)]
        assert each_far.shell("echo meanwhile").stdout == b"meanwhile\n"
        (tmp_path / "go").touch()
        finished = {wait.result() for wait in waits}.pop()
    assert (running.state, running.status_bytes) == ("running", None)
    assert (running.stdout_bytes, running.stderr_bytes) == (4, 0)
    assert finished.state == "finished"
    assert finished.status_bytes == (run / "status.json").read_bytes()
    assert json.loads(finished.status_bytes)["exit_code"] == 4
    assert each_far.serving.wait(str(run), 0) == finished


def test_a_run_whose_supervisor_is_killed_is_lost(each_far: Far, tmp_path: Path) -> None:
    run = tmp_path / "run"
    pid = each_far.supervise(run, "exec sleep 1000")
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(each_far.serving.wait, str(run), None)
        os.kill(pid, signal.SIGKILL)
        lost = waiting.result()
    assert (lost.state, lost.status_bytes, lost.stdout_bytes) == ("lost", None, 0)
    assert lost.reason == "the supervisor is gone and has left no status.json"


def test_where_nothing_was_started_there_is_no_run(far: Far, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for name in ("empty", "missing", "file/below"):
        waited = far.serving.wait(f"{tmp_path}/{name}", None)
        assert (waited.state, waited.stdout_bytes, waited.stderr_bytes) == ("absent", None, None)
    with pytest.raises(TransportError, match="cannot be looked at on the far end: file name too"):
        far.serving.wait("/" + "n" * 300, None)


def test_a_long_wait_asks_again_and_again(
    far: Far, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchrunner.transports.serving._WAIT_SLICE_S", 0.05)
    far.supervise(tmp_path / "run", "sleep 0.4")
    assert far.serving.wait(str(tmp_path / "run"), None).state == "finished"
