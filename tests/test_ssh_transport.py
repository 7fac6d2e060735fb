"""Commands over SSH beyond the contract; with a real sshd."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sshd_support import Sshd, sshd

from benchrunner.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchrunner.transports.ssh import SshTransport

__all__ = ["sshd"]
pytestmark = pytest.mark.ssh


@pytest.fixture
def transport(sshd: Sshd) -> Iterator[SshTransport]:
    opened = sshd.connect()
    yield opened
    opened.close()


# ---------------------------------------------------------------- running


def test_the_host_s_own_environment_is_in_every_command(sshd: Sshd) -> None:
    opened = sshd.connect(sshd.host(env={"A": "host", "B": "host"}))
    done = opened.run(["sh", "-c", "echo $A $B"], env={"B": "call"}, timeout_s=10)
    assert done.stdout == b"host call\n"
    opened.close()


def test_an_odd_name_in_the_environment_is_refused(transport: SshTransport) -> None:
    with pytest.raises(TransportError, match=r"'A-B' is no name of an environment variable"):
        transport.run(["true"], env={"A-B": "x"}, timeout_s=10)


def test_a_command_too_long_for_one_word_is_refused(transport: SshTransport) -> None:
    with pytest.raises(TransportError, match=r"\d+ bytes are too long for one command"):
        transport.run(["true", "x" * 200_000], timeout_s=10)


def test_what_a_login_shell_prints_is_not_output(
    transport: SshTransport, sshd: Sshd, tmp_path: Path
) -> None:
    shell = Path("/bin/sh")
    if not shutil.which("bash"):
        pytest.skip("bash reads ~/.bashrc over SSH; there is none here")
    (tmp_path / ".bashrc").write_text("echo out; echo err >&2\n")
    sshd.settings |= {"SetEnv": f"HOME={tmp_path}", "ForceCommand": _noisy(tmp_path, shell)}
    sshd.restart()
    done = transport.run(["sh", "-c", "echo a; echo b >&2"], timeout_s=10)
    assert (done.stdout, done.stderr) == (b"a\n", b"b\n")


def _noisy(folder: Path, shell: Path) -> str:
    script = folder / "noisy"
    script.write_text(f'#!{shell}\necho out; echo err >&2; eval "$SSH_ORIGINAL_COMMAND"\n')
    script.chmod(0o755)
    return str(script)


def test_a_working_folder_that_may_not_be_entered_is_named(
    transport: SshTransport, tmp_path: Path
) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may enter every folder")
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(TransportError, match=r"cannot run in .*closed on .*: permission denied"):
        transport.run(["true"], cwd=str(tmp_path / "closed"), timeout_s=10)


def test_many_threads_share_one_connection(
    sshd: Sshd, transport: SshTransport, tmp_path: Path
) -> None:
    sshd.settings |= {"MaxSessions": "10"}  # OpenSSH's default
    sshd.restart()
    transport.size("/")
    sessions = len(sshd.sessions())

    def work(number: int) -> int:
        source, back = tmp_path / f"s{number}", tmp_path / f"b{number}"
        source.write_bytes(bytes([number]) * 300_000)
        for turn in range(4):
            far = str(tmp_path / f"far{number}-{turn}")
            transport.put(source, far)
            assert transport.size(far) == 300_000
            done = transport.run(["cat"], input=source.read_bytes(), timeout_s=30)
            assert done.stdout == source.read_bytes()
            transport.get(far, back)
            assert back.read_bytes() == source.read_bytes()
            assert transport.read(far, 299_999) == bytes([number])
        return number

    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(work, range(12))) == list(range(12))
    assert len(sshd.sessions()) == sessions


def test_after_closing_nothing_works(transport: SshTransport) -> None:
    transport.close()
    with pytest.raises(TransportError, match=r"^the connection to .* was closed"):
        transport.run(["true"], timeout_s=10)


def test_few_sessions_allowed_is_said(sshd: Sshd) -> None:
    sshd.settings |= {"MaxSessions": "0"}
    sshd.restart()
    opened = sshd.connect()
    with pytest.raises(TransportError, match=r"opens no further session") as caught:
        opened.run(["true"], timeout_s=10)
    assert caught.value.hint == "raise MaxSessions in /etc/ssh/sshd_config there"
    opened.close()


def test_a_command_to_talk_to(transport: SshTransport) -> None:
    with transport.stream(["cat"]) as running:
        for word in (b"one", b"two"):
            running.write(word)
            assert running.read(100) == word
        running.feed(b"")
        assert running.read(100) == b""
        assert running.completed().exit_code == 0
