"""What the SSH transport does when hosts and networks fail; with a real sshd and a bad network."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sshd_support import DelayProxy, Sshd, proxy, sshd, until

from benchrunner.definitions import HostLimits
from benchrunner.errors import TransportError
from benchrunner.transports import (
    ConnectionLostError,
    OutcomeUnknownError,
    UnreachableError,
    ssh_folders,
)
from benchrunner.transports.ssh import SshTransport
from benchrunner.transports.ssh_config import Routes
from benchrunner.transports.ssh_link import Patience
from benchrunner.transports.ssh_login import Keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchrunner.definitions import Host
    from benchrunner.transports.sftp import Sftp

__all__ = ["proxy", "sshd"]
pytestmark = pytest.mark.ssh

LARGE = 24 << 20
IMPATIENT = Patience(connect_s=1.0, ask_s=0.2, silent_s=0.8, back_off_s=(0.05, 0.1, 0.2, 0.4))


def impatient(sshd: Sshd, host: Host, patience: Patience = IMPATIENT) -> SshTransport:
    """A transport that finds out soon."""
    route = Routes({}, sshd.config, sshd.known_hosts).to(host)
    return SshTransport(host.name, route, Keys(None), patience, {})


@pytest.fixture
def transport(sshd: Sshd, proxy: DelayProxy) -> Iterator[SshTransport]:
    """A transport through the bad network."""
    opened = impatient(sshd, sshd.host(address=f"127.0.0.1:{proxy.port}"))
    yield opened
    opened.close()


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file that is worth resuming."""
    path = tmp_path / "large"
    path.write_bytes(os.urandom(LARGE))
    return path


def in_the_background(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


# ---------------------------------------------------------------- commands


def test_a_cut_connection_leaves_it_open_whether_a_command_ran(
    transport: SshTransport, proxy: DelayProxy, tmp_path: Path
) -> None:
    began = tmp_path / "began"

    def cut() -> None:
        until(began.exists)
        proxy.cut()

    thread = in_the_background(cut)
    with pytest.raises(OutcomeUnknownError) as caught:
        transport.run(["sh", "-c", f"echo x >> {began}; sleep 0.4; exit"], timeout_s=30)
    thread.join()
    assert caught.value.message.startswith(
        f"the connection to {transport.host} was lost while sh -c echo x >> "
    )
    assert caught.value.message.endswith(" ran: it is unknown whether it did its work")
    assert caught.value.hint == "look there before doing it again"
    assert transport.read(str(began)) == b"x\n"


def test_a_cut_between_commands_is_not_noticed(
    transport: SshTransport, proxy: DelayProxy, sshd: Sshd
) -> None:
    for fault in (proxy.cut, sshd.kill_sessions, sshd.restart):
        assert transport.run(["echo", "x"], timeout_s=10).stdout == b"x\n"
        fault()
    assert transport.run(["echo", "x"], timeout_s=10).stdout == b"x\n"


def test_an_sshd_that_is_away_for_a_moment_is_waited_for(
    transport: SshTransport, sshd: Sshd
) -> None:
    transport.open()
    sshd.stop()
    restart = threading.Timer(0.3, sshd.start)
    restart.start()
    assert b"MemTotal" in transport.read("/proc/meminfo")
    restart.join()


def test_an_sshd_that_stays_away_is_said(sshd: Sshd) -> None:
    opened = impatient(sshd, sshd.host())
    opened.open()
    sshd.stop()
    until(lambda: not opened._link or not opened._link.alive)
    for attempt in (
        lambda: opened.run(["true"], timeout_s=5),
        lambda: opened.read("/proc/meminfo"),
    ):
        with pytest.raises(UnreachableError, match=r"cannot be reached: connection refused"):
            attempt()
    opened.close()


def test_closing_ends_the_waiting_for_a_host(sshd: Sshd) -> None:
    patience = Patience(connect_s=1.0, back_off_s=(60.0,))
    opened = impatient(sshd, sshd.host(), patience)
    opened.open()
    sshd.stop()
    until(lambda: not opened._link or not opened._link.alive)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(opened.read, "/proc/meminfo")
        opened.close()
        with pytest.raises(TransportError, match=r"the connection to .* was closed"):
            waiting.result()


def test_a_host_that_freezes_during_a_command_is_given_up(
    transport: SshTransport, sshd: Sshd, tmp_path: Path
) -> None:
    began = tmp_path / "began"

    def freeze() -> None:
        until(lambda: began.exists() and began.read_text())
        sshd.freeze()

    thread = in_the_background(freeze)
    with pytest.raises(OutcomeUnknownError, match=r"was lost while sh -c"):
        transport.run(["sh", "-c", f"echo $$ > {began}; exec sleep 1000"], timeout_s=600)
    thread.join()
    sshd.thaw()
    os.kill(int(began.read_text()), 9)


def test_the_time_limit_holds_on_a_frozen_host(sshd: Sshd, proxy: DelayProxy) -> None:
    host = sshd.host(limits=HostLimits(connect_s=0.5))
    opened = impatient(sshd, host, Patience(connect_s=0.5, back_off_s=(0.05,)))
    sshd.trust()
    assert opened.run(["true"], timeout_s=5).exit_code == 0
    assert opened.size("/") is not None
    sshd.freeze()
    with pytest.raises(UnreachableError, match=r"does not answer within 0\.\d+ s"):
        opened.run(["true"], timeout_s=1)
    sshd.thaw()
    assert opened.run(["true"], timeout_s=5).exit_code == 0
    opened.close()


def test_a_command_that_cannot_be_ended_is_said(
    sshd: Sshd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("benchrunner.transports.ssh_command._KILL_S", 0.3)
    opened = impatient(sshd, sshd.host(), Patience(connect_s=2.0))
    began = tmp_path / "began"

    def freeze() -> None:
        until(began.exists)
        sshd.freeze()

    thread = in_the_background(freeze)
    script = f"echo $$ > {began}.pid; mv {began}.pid {began}; exec sleep 1000"
    with pytest.raises(TransportError, match=r"did not end within 2 s on .*; process group \d+ co"):
        opened.run(["sh", "-c", script], timeout_s=2)
    thread.join()
    sshd.thaw()
    os.kill(int(began.read_text()), 9)
    opened.close()


def test_the_time_limit_ends_the_whole_tree(transport: SshTransport, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    inner = f"echo $$ >> {pids}; sleep 1000 & echo $! >> {pids}; wait"
    with pytest.raises(TransportError, match=r"did not end within 0\.5 s"):
        transport.run(["sh", "-c", f"sh -c '{inner}' & sh -c '{inner}' & wait"], timeout_s=0.5)
    found = pids.read_text().split()
    assert len(found) == 4
    for pid in found:
        state = Path(f"/proc/{pid}/stat")
        assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("verb", ["put", "get"])
def test_a_cut_copy_goes_on_where_it_was(
    transport: SshTransport, proxy: DelayProxy, tmp_path: Path, large: Path, verb: str
) -> None:
    far = tmp_path / "copy"
    transport.size("/")
    before = proxy.up_bytes + proxy.down_bytes
    proxy.cut_after(LARGE // 2)
    if verb == "put":
        transport.put(large, str(far))
    else:
        transport.get(str(large), far)
    assert far.read_bytes() == large.read_bytes()
    passed = proxy.up_bytes + proxy.down_bytes - before
    assert LARGE < passed < LARGE * 1.5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "large", "sshd"]


@pytest.mark.parametrize("verb", ["put", "get"])
def test_another_process_goes_on_with_a_copy(
    sshd: Sshd, proxy: DelayProxy, tmp_path: Path, large: Path, verb: str
) -> None:
    far = tmp_path / "copy"
    host = sshd.host(address=f"127.0.0.1:{proxy.port}")

    def copy(patience: Patience) -> None:
        opened = impatient(sshd, host, patience)
        try:
            opened.put(large, str(far)) if verb == "put" else opened.get(str(large), far)
        finally:
            opened.close()

    def cut() -> None:
        until(lambda: proxy.up_bytes + proxy.down_bytes > LARGE // 2)
        sshd.stop()

    thread = in_the_background(cut)
    with pytest.raises(TransportError):
        copy(Patience(connect_s=1.0, back_off_s=()))
    thread.join()
    assert not far.exists()
    sshd.start()
    before = proxy.up_bytes + proxy.down_bytes
    copy(IMPATIENT)
    assert far.read_bytes() == large.read_bytes()
    assert proxy.up_bytes + proxy.down_bytes - before < LARGE * 0.9


@pytest.mark.parametrize("verb", ["put", "get"])
def test_what_is_there_of_a_copy_is_not_believed(
    transport: SshTransport, proxy: DelayProxy, tmp_path: Path, large: Path, verb: str
) -> None:
    far = tmp_path / "copy"

    def copy() -> None:
        transport.put(large, str(far)) if verb == "put" else transport.get(str(large), far)

    def spoil() -> None:
        until(lambda: list(tmp_path.glob(".copy.*.part")))
        part = next(iter(tmp_path.glob(".copy.*.part")))
        until(lambda: part.stat().st_size > 1 << 20)
        with part.open("r+b") as file:
            file.write(b"spoiled")
        proxy.cut()

    proxy.delay_s = 0.02
    thread = in_the_background(spoil)
    copy()
    thread.join()
    assert far.read_bytes() == large.read_bytes()


def test_a_folder_that_was_cut_off_keeps_its_large_files(
    transport: SshTransport, proxy: DelayProxy, tmp_path: Path, large: Path
) -> None:
    tree = tmp_path / "tree"
    (tree / "deep").mkdir(parents=True)
    for name in ("one", "two"):
        (tree / "deep" / name).write_bytes(large.read_bytes())
    (tree / "small").write_text("x")
    before = proxy.down_bytes
    proxy.cut_after(LARGE * 3 // 2)
    transport.get(str(tree), tmp_path / "back")
    for name in ("deep/one", "deep/two", "small"):
        assert (tmp_path / "back" / name).read_bytes() == (tree / name).read_bytes()
    assert proxy.down_bytes - before < LARGE * 2.4
    assert sorted(p.name for p in tmp_path.iterdir()) == ["back", "large", "sshd", "tree"]


@pytest.mark.parametrize("verb", ["put", "get"])
def test_a_folder_that_was_cut_off_is_copied_again(
    transport: SshTransport, proxy: DelayProxy, tmp_path: Path, verb: str
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(6):
        (tree / f"{number}").write_bytes(os.urandom(1 << 20))
    transport.size("/")
    proxy.cut_after(3 << 20)
    if verb == "put":
        transport.put(tree, str(tmp_path / "copy"))
    else:
        transport.get(str(tree), tmp_path / "copy")
    assert {path.name: path.read_bytes() for path in (tmp_path / "copy").iterdir()} == {
        path.name: path.read_bytes() for path in tree.iterdir()
    }


@pytest.mark.parametrize("renamed", [True, False])
def test_a_folder_whose_last_answer_was_lost_is_there(
    transport: SshTransport, proxy: DelayProxy, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, *, renamed: bool,
) -> None:  # fmt: skip
    """Cut right behind the renaming, or right before it: then somebody else takes the name."""
    tree, copy = tmp_path / "tree", tmp_path / "copy"
    tree.mkdir()
    (tree / "file").write_text("content")
    take_place, attempts = ssh_folders._take_place, []

    def cut_once(sftp: Sftp, part: str, target: str) -> None:
        attempts.append(part)
        if len(attempts) > 1:
            take_place(sftp, part, target)
            return
        if renamed:
            take_place(sftp, part, target)
        else:
            copy.mkdir()
            (copy / "theirs").touch()
        proxy.cut()
        raise ConnectionLostError("the connection is lost")

    monkeypatch.setattr(ssh_folders, "_take_place", cut_once)
    if renamed:
        transport.put(tree, str(copy))
        assert [path.name for path in copy.iterdir()] == ["file"]
        assert len(attempts) == 1
    else:
        with pytest.raises(TransportError, match="something is there already"):
            transport.put(tree, str(copy))
        assert [path.name for path in copy.iterdir()] == ["theirs"]


def test_a_stalled_line_is_given_up_and_then_works_again(
    transport: SshTransport, proxy: DelayProxy, sshd: Sshd, tmp_path: Path, large: Path
) -> None:
    proxy.delay_s = 0.01

    def stall() -> None:
        until(lambda: proxy.up_bytes > LARGE // 4)
        proxy.stall()

    thread = in_the_background(stall)
    with pytest.raises(TransportError, match=r"does not answer within|is lost"):
        transport.put(large, str(tmp_path / "copy"))
    thread.join()
    proxy.cut()
    proxy.resume()
    transport.put(large, str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == large.read_bytes()


def test_a_read_on_a_frozen_host_fails_in_time(sshd: Sshd, proxy: DelayProxy) -> None:
    opened = impatient(sshd, sshd.host(address=f"127.0.0.1:{proxy.port}"))
    assert opened.size("/") is not None
    sshd.freeze()
    with pytest.raises((UnreachableError, ConnectionLostError)):
        opened.read("/proc/meminfo")
    sshd.thaw()
    assert b"MemTotal" in opened.read("/proc/meminfo")
    opened.close()
