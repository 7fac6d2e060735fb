"""What every transport must do; see ``conftest.TRANSPORTS``."""

from __future__ import annotations

import os
import signal
import socket
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchrunner.errors import TransportError
from benchrunner.transports import MissingFileError

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchrunner.transports import Transport

ODD_NAMES = [
    "two words",
    "-rf",
    "$(touch x)",
    "quote'and\"quote",
    "semi;colon&amp|pipe",
    "new\nline",
    "glob*?[a]",
    "~",
    "ünï-çødé",
    "back\\slash",
    os.fsdecode(b"not-utf-8-\xff"),
    "n" * 255,
]
NO_LIMIT_S = 60


def names_in(folder: Path) -> list[str]:
    """Names of everything in a folder."""
    return [path.name for path in folder.iterdir()]


def processes_with(mark: str) -> list[str]:
    """Pids of the processes whose environment has the mark."""
    found = []
    for pid in filter(str.isdigit, names_in(Path("/proc"))):
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in environment:
            found.append(pid)
    return found


# ---------------------------------------------------------------- run


def test_output_and_exit_code_come_back(transport: Transport) -> None:
    done = transport.run(["sh", "-c", "echo out; echo err >&2; exit 7"], timeout_s=NO_LIMIT_S)
    assert (done.exit_code, done.stdout, done.stderr) == (7, b"out\n", b"err\n")


def test_a_signal_is_a_negative_exit_code(transport: Transport) -> None:
    done = transport.run(["sh", "-c", "kill -TERM $$"], timeout_s=NO_LIMIT_S)
    assert done.exit_code == -15


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=5)
)
def test_arguments_arrive_as_they_are(transport: Transport, arguments: list[str]) -> None:
    done = transport.run(["printf", "%s\\0", "x", *arguments], timeout_s=NO_LIMIT_S)
    assert done.stdout == b"".join(a.encode() + b"\0" for a in ["x", *arguments])


def test_bytes_that_are_no_text_pass_through_stdin_and_stdout(transport: Transport) -> None:
    data = bytes(range(256)) * 10
    assert transport.run(["cat"], input=data, timeout_s=NO_LIMIT_S).stdout == data


def test_without_input_stdin_is_empty(transport: Transport) -> None:
    assert transport.run(["cat"], timeout_s=NO_LIMIT_S).stdout == b""


def test_a_command_that_ignores_its_input_is_no_error(transport: Transport) -> None:
    done = transport.run(["true"], input=b"x" * 1_000_000, timeout_s=NO_LIMIT_S)
    assert done.exit_code == 0


def test_much_output_on_both_streams_and_much_input_do_not_deadlock(transport: Transport) -> None:
    data = b"y" * 3_000_000
    done = transport.run(["sh", "-c", "tee /dev/stderr"], input=data, timeout_s=NO_LIMIT_S)
    assert (done.stdout, done.stderr) == (data, data)


def test_environment_is_added_to_that_of_the_host(transport: Transport) -> None:
    done = transport.run(
        ["sh", "-c", 'echo "$ODD"; command -v sh'], env={"ODD": "a b'\"$"}, timeout_s=NO_LIMIT_S
    )
    first, second = done.stdout.decode().splitlines()
    assert first == "a b'\"$"
    assert second.endswith("/sh")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_the_working_folder_can_have_any_name(
    transport: Transport, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    transport.run(["touch", "here"], cwd=str(folder), timeout_s=NO_LIMIT_S)
    assert (folder / "here").exists()


def test_a_missing_program_is_named(transport: Transport) -> None:
    with pytest.raises(TransportError, match=r"^no-such-program was not found on ") as caught:
        transport.run(["no-such-program", "x"], timeout_s=NO_LIMIT_S)
    assert caught.value.hint == "benchrunner doctor"


def test_a_program_that_may_not_run_says_so(transport: Transport, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("not a program")
    with pytest.raises(TransportError, match=r"plain cannot run on .*: permission denied"):
        transport.run([str(plain)], timeout_s=NO_LIMIT_S)


def test_a_missing_working_folder_is_named(transport: Transport) -> None:
    with pytest.raises(MissingFileError, match=r"pwd cannot run in /no/such on .*: no such folder"):
        transport.run(["pwd"], cwd="/no/such", timeout_s=NO_LIMIT_S)


def test_an_empty_argument_list_is_refused(transport: Transport) -> None:
    with pytest.raises(TransportError, match="an empty argument list cannot be run"):
        transport.run([], timeout_s=NO_LIMIT_S)


def test_a_null_byte_in_an_argument_is_refused(transport: Transport) -> None:
    with pytest.raises(TransportError, match=r"cannot run on .*null byte"):
        transport.run(["echo", "a\0b"], timeout_s=NO_LIMIT_S)


def test_the_time_limit_ends_the_whole_process_group(transport: Transport) -> None:
    script = "sleep 1000 & sleep 1000 & wait"
    with pytest.raises(TransportError, match=r"^sh -c .* did not end within 0\.2 s on "):
        transport.run(["sh", "-c", script], env={"MARK": "br-group-limit"}, timeout_s=0.2)
    assert processes_with("MARK=br-group-limit") == []


def test_the_time_limit_holds_though_a_process_left_the_group(
    transport: Transport, tmp_path: Path
) -> None:
    script = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 1000' & wait"
    with pytest.raises(TransportError, match=r"did not end within 0\.5 s"):
        transport.run(["sh", "-c", script], timeout_s=0.5)
    os.kill(int((tmp_path / "pid").read_text()), 9)


def test_a_long_command_is_shortened_in_messages(transport: Transport) -> None:
    with pytest.raises(TransportError) as caught:
        transport.run(["sleep", "9", *["0" * 50] * 9], timeout_s=0.1)
    assert len(caught.value.message) < 150


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("name", ODD_NAMES)
def test_files_with_any_name_go_and_come(transport: Transport, tmp_path: Path, name: str) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(range(256)))
    far = tmp_path / "far" / name
    transport.put(source, str(far))
    transport.get(str(far), tmp_path / "back" / name)
    assert (tmp_path / "back" / name).read_bytes() == bytes(range(256))
    assert names_in(tmp_path / "far") == [name]


def test_mode_bits_are_those_of_the_source_or_as_asked(
    transport: Transport, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x")
    source.chmod(0o640)
    transport.put(source, str(tmp_path / "kept"))
    transport.put(source, str(tmp_path / "asked"), 0o755)
    transport.get(str(tmp_path / "asked"), tmp_path / "fetched")
    modes = [stat.S_IMODE((tmp_path / n).stat().st_mode) for n in ("kept", "asked", "fetched")]
    assert modes == [0o640, 0o755, 0o755]


def test_a_folder_goes_and_comes_whole(transport: Transport, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "deep" / "empty").mkdir(parents=True)
    (tree / "deep" / "data").write_bytes(b"\0\xff")
    (tree / "deep" / "data").chmod(0o700)
    (tree / "link").symlink_to("deep/data")
    (tree / "dangling").symlink_to("nowhere")
    transport.put(tree, str(tmp_path / "far"))
    transport.get(str(tmp_path / "far"), tmp_path / "back")
    back = tmp_path / "back"
    assert sorted(str(p.relative_to(back)) for p in back.rglob("*")) == [
        "dangling", "deep", "deep/data", "deep/empty", "link",
    ]  # fmt: skip
    assert (back / "deep" / "data").read_bytes() == b"\0\xff"
    assert stat.S_IMODE((back / "deep" / "data").stat().st_mode) == 0o700
    assert (back / "link").readlink() == Path("deep/data")
    assert (back / "dangling").readlink() == Path("nowhere")


def test_a_file_replaces_a_file_at_once(transport: Transport, tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    new.write_bytes(b"new")
    old.write_bytes(b"old")
    with old.open("rb") as reader:
        transport.put(new, str(old))
        assert reader.read() == b"old"
    assert old.read_bytes() == b"new"


def test_a_folder_replaces_nothing(transport: Transport, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "taken").mkdir()
    with pytest.raises(TransportError, match=r"cannot be copied to .*something is there already"):
        transport.put(tmp_path / "tree", str(tmp_path / "taken"))
    with pytest.raises(TransportError, match=r"cannot be fetched to .*something is there already"):
        transport.get(str(tmp_path / "tree"), tmp_path / "taken")


def test_a_file_does_not_replace_a_folder(transport: Transport, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(TransportError, match="a folder is in the way"):
        transport.put(tmp_path / "file", str(tmp_path / "folder"))


def test_a_failed_copy_leaves_nothing(transport: Transport, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a").write_bytes(b"x")
    (tree / "b").symlink_to("a")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tree / "socket"))
        with pytest.raises(TransportError, match="tree/socket: "):
            transport.put(tree, str(tmp_path / "far" / "tree"))
    assert names_in(tmp_path / "far") == []


def test_read_returns_the_part_asked_for(transport: Transport, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert transport.read(str(path)) == b"0123456789"
    assert transport.read(str(path), 4) == b"456789"
    assert transport.read(str(path), 4, 3) == b"456"
    assert transport.read(str(path), 8, 100) == b"89"
    assert transport.read(str(path), 100, 5) == b""
    assert transport.read(str(path), 0, 0) == b""


def test_files_of_proc_can_be_read(transport: Transport) -> None:
    assert b"MemTotal" in transport.read("/proc/meminfo")
    assert transport.size("/proc/meminfo") == 0


def test_size(transport: Transport, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert transport.size(str(path)) == 5
    assert transport.size(str(tmp_path / "missing")) is None
    assert transport.size(str(path / "below a file")) is None
    with pytest.raises(TransportError, match=r"cannot be looked at on .*: file name too long"):
        transport.size("/" + "n" * 300)


@pytest.mark.parametrize("verb", ["get", "put", "read"])
def test_a_missing_file_is_named(transport: Transport, tmp_path: Path, verb: str) -> None:
    missing, other = tmp_path / "missing", tmp_path / "x"
    verbs: dict[str, Callable[[], object]] = {
        "get": lambda: transport.get(str(missing), other),
        "put": lambda: transport.put(missing, str(other)),
        "read": lambda: transport.read(str(missing)),
    }
    with pytest.raises(MissingFileError, match=f"{missing} is not there"):
        verbs[verb]()
    assert names_in(tmp_path) == []


def test_reading_a_folder_is_refused(transport: Transport, tmp_path: Path) -> None:
    with pytest.raises(TransportError, match=r"cannot be read on .*: is a directory"):
        transport.read(str(tmp_path))


@pytest.mark.parametrize("path", ["relative", "", "~/x"])
def test_paths_on_the_host_are_absolute(transport: Transport, tmp_path: Path, path: str) -> None:
    for attempt in (transport.read, transport.size, lambda p: transport.get(p, tmp_path / "x")):
        with pytest.raises(TransportError, match="is not an absolute path on "):
            attempt(path)


def test_an_interrupt_ends_the_command(transport: Transport) -> None:
    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            transport.run(["sleep", "1000"], env={"MARK": "br-interrupt"}, timeout_s=NO_LIMIT_S)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert processes_with("MARK=br-interrupt") == []
