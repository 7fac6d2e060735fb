"""The frames of ``br-supervise serve`` themselves, as its README has them."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from serving_support import (
    MIB,
    Raw,
    begin,
    compile_once,
    end,
    eventually,
    mark,
    processes_with,
    sleeps,
    streams,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.native


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The supervisor in every build."""
    return compile_once(tmp_path_factory)


@pytest.fixture
def raw(programs: dict[str, str], tmp_path: Path) -> Iterator[Raw]:
    """A far end without a client."""
    process = begin(programs["sanitized"], tmp_path / "stderr")
    far_end = Raw(process)
    assert far_end.line()["serve"] == 1
    yield far_end
    end(process)
    assert (tmp_path / "stderr").read_text() == ""


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (b"hello\n", "a line is not a JSON object"),
        (b'{"id":1,"size":"/\0"}\n', "a line is not a JSON object"),
        (b"\n", "a line is not a JSON object"),
        (b"x" * (MIB + 2), "a line is longer than 1 MiB"),
        ({"size": "/"}, "a request has no id"),
        ({"id": 1}, "a request is none of run, read, size, wait, cancel"),
        ({"id": 1, "size": 3}, "a path is not a string"),
        ({"id": 1, "size": None}, "a path is not a string"),
        (b'{"id":1,"size":"/\\u0000"}\n', "a path is not a string"),
        ({"id": 1, "run": []}, "run is not a list of strings, at least one"),
        ({"id": 1, "run": "ls"}, "run is not a list of strings, at least one"),
        ({"id": 1, "run": ["ls", 1]}, "run is not a list of strings, at least one"),
        (b'{"id":1,"run":["a" "b"]}\n', "run is not a list of strings, at least one"),
        ({"id": 1, "run": ["ls"], "env": {"A": 1}}, "env is not an object of strings"),
        ({"id": 1, "run": ["ls"], "env": {"A=": "b"}}, "env is not an object of strings"),
        ({"id": 1, "run": ["ls"], "env": ["A"]}, "env is not an object of strings"),
        ({"id": 1, "run": ["ls"], "cwd": 1}, "cwd is not a string"),
        ({"id": 1, "run": ["ls"], "timeout_s": "x"}, "timeout_s is not a number of seconds"),
        ({"id": 1, "run": ["ls"], "input_bytes": -1}, "input_bytes is out of range"),
        ({"id": 1, "run": ["ls"], "input_bytes": 64 * MIB + 1}, "input_bytes is out of range"),
        ({"id": 1, "read": "/", "offset": -1}, "offset or limit is not a number of bytes"),
        ({"id": 1, "read": "/", "limit": "x"}, "offset or limit is not a number of bytes"),
    ],
)
def test_a_frame_that_makes_no_sense_ends_it(
    raw: Raw, frame: bytes | dict[str, Any], message: str
) -> None:
    raw.send({"id": 7, "run": ["sleep", "1000"], "env": {"MARK": mark("7")}}, frame)
    assert raw.line() == {"error": "protocol", "message": message}
    assert raw.process.wait(20) == 2
    eventually(lambda: processes_with(mark("7")) == [])


def test_an_id_is_used_for_one_request_at_a_time(raw: Raw) -> None:
    raw.send({"id": 1, "size": "/no"}, {"id": 1, "size": "/no"})
    assert [raw.line(), raw.line()] == [{"id": 1, "size": None}] * 2
    raw.send({"id": 1, "run": ["sleep", "1000"]}, {"id": 1, "size": "/no"})
    assert raw.line()["message"] == "two requests at once have the same id"


def test_frames_may_arrive_in_pieces(raw: Raw) -> None:
    whole = b'{"id":1, "run" : [ "cat" , "-" ] , "input_bytes":5 }\nhello{"id":2,"size":"/no"}\n'
    for begin_at in range(len(whole)):
        raw.send(whole[begin_at : begin_at + 1])
    answers = sorted((raw.line(), raw.line()), key=lambda answer: answer["id"])
    assert answers[0] == {"id": 1, "exit_code": 0, "stdout_bytes": 5, "stderr_bytes": 0}
    assert answers[1] == {"id": 2, "size": None}


def test_one_socket_can_be_both_streams(programs: dict[str, str]) -> None:
    """As some servers of SSH start it."""
    ours, its = socket.socketpair()
    with ours, its:
        process = subprocess.Popen(
            [programs["sanitized"], "serve"], stdin=its.fileno(), stdout=its.fileno()
        )
        its.close()
        ours.sendall(b'{"id":1,"run":["cat"],"input_bytes":3}\nabc')
        answers = b""
        while not answers.endswith(b"abc"):
            answers += ours.recv(65536)
    assert b'{"id":1,"exit_code":0,"stdout_bytes":3,"stderr_bytes":0}\nabc' in answers
    assert process.wait(20) == 0


def test_cancelled_requests_get_an_answer_too(raw: Raw, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(16 * MIB))
    raw.send({"id": 1, "run": ["sh", "-c", "sleep 1000 & wait"], "env": {"MARK": mark("8")}})
    eventually(sleeps(mark("8")))
    raw.send({"id": 2, "cancel": 1})
    assert raw.line() == {"id": 2, "cancelled": True}
    assert raw.line() == {"id": 1, "error": "cancelled"}
    assert processes_with(mark("8")) == []
    raw.send({"id": 3, "cancel": 1})
    assert raw.line() == {"id": 3, "cancelled": False}
    raw.send({"id": 4, "read": str(tmp_path / "large")}, {"id": 5, "cancel": 4})
    answers = [raw.line()]
    while "more" in answers[-1]:
        answers.append(raw.line())
    assert answers[-1] == {"id": 5, "cancelled": True}
    assert raw.line() == {"id": 4, "error": "cancelled"}


def test_a_cancelled_wait_is_forgotten(raw: Raw, programs: dict[str, str], tmp_path: Path) -> None:
    start = [programs["sanitized"], "start", "--run-dir", str(tmp_path / "run"), "--"]
    subprocess.run([*start, "sleep", "1000"], check=True, capture_output=True)
    raw.send({"id": 1, "wait": str(tmp_path / "run")}, {"id": 2, "cancel": 1})
    assert [raw.line(), raw.line()] == [
        {"id": 2, "cancelled": True},
        {"id": 1, "error": "cancelled"},
    ]
    stop = [programs["sanitized"], "stop", "--run-dir", str(tmp_path / "run"), "--grace", "0"]
    subprocess.run(stop, check=True, capture_output=True)


def test_requests_before_the_end_of_input_are_answered(programs: dict[str, str]) -> None:
    lines = b'{"id":1,"size":"/no"}\n{"id":2,"read":"/proc/self/comm"}\n{"id":3,"si'
    done = subprocess.run(
        [programs["sanitized"], "serve"], input=lines, capture_output=True, check=True
    )
    assert done.stdout.splitlines()[1:] == [
        b'{"id":1,"size":null}',
        b'{"id":2,"bytes":10}',
        b"sanitized",
    ]


def test_a_slow_reader_costs_no_memory_and_holds_up_nobody(
    programs: dict[str, str], tmp_path: Path
) -> None:
    """The command's output waits in its pipe; other answers overtake it."""
    process = begin(programs["without_pidfd"], tmp_path / "stderr")
    raw = Raw(process)
    raw.line()
    command = "head -c 60000000 /dev/zero & head -c 60000000 /dev/zero >&2 & wait"
    raw.send({"id": 1, "run": ["sh", "-c", command]})
    first = raw.line()
    raw.send({"id": 2, "size": "/no"}, {"id": 3, "read": "/proc/self/comm"})
    answers = [first]
    while "exit_code" not in answers[-1]:
        answers.append(raw.line())
    own = [answer for answer in answers if answer["id"] == 1]
    assert [answer["id"] for answer in answers if answer["id"] != 1] == [2, 3]
    totals = [sum(a[name] for a in own) for name in ("stdout_bytes", "stderr_bytes")]
    assert totals == [60_000_000, 60_000_000]
    status = Path(f"/proc/{process.pid}/status").read_text()
    peak_kib = int(status.partition("VmHWM:")[2].split()[0])
    assert peak_kib < 24 << 10
    assert end(process) == 0


def test_a_reader_that_never_reads_is_left(raw: Raw) -> None:
    """What it has asked for is killed at the end all the same."""
    raw.send({"id": 1, "run": ["sh", "-c", "yes"], "env": {"MARK": mark("9")}})
    raw.send(*({"id": number, "size": "/no"} for number in range(2, 3000)))
    eventually(lambda: bool(processes_with(mark("9"))))
    time.sleep(0.2)
    streams(raw.process)[0].close()
    assert raw.process.wait(20) == 0
    eventually(lambda: processes_with(mark("9")) == [])
