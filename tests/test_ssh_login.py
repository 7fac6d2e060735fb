"""Reaching a host over SSH, logging in, and jumping; with a real sshd."""

from __future__ import annotations

import socket
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sshd_support import Sshd, free_port, make_key, running_sshd, sshd, until

from benchrunner.definitions import Host, HostLimits
from benchrunner.errors import TransportError
from benchrunner.transports import (
    LoginRefusedError,
    UnknownHostKeyError,
    UnreachableError,
)
from benchrunner.transports.ssh import connect, offered_key
from benchrunner.transports.ssh_login import Keys

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from benchrunner.transports.ssh import SshTransport

__all__ = ["sshd"]
pytestmark = pytest.mark.ssh

SECRET = "secret words"  # noqa: S105


@pytest.fixture
def transport(sshd: Sshd) -> Iterator[SshTransport]:
    opened = sshd.connect()
    yield opened
    opened.close()


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Sshd]:
    """A second sshd, to jump through."""
    yield from running_sshd(tmp_path / "gate")


def works(opened: SshTransport) -> bool:
    """Whether a command runs; the connection is closed."""
    try:
        return opened.run(["echo", "ok"], timeout_s=10).stdout == b"ok\n"
    finally:
        opened.close()


# ---------------------------------------------------------------- reaching


def test_messages_call_the_host_as_one_would_log_in(sshd: Sshd, transport: SshTransport) -> None:
    assert transport.host == f"{sshd.user}@127.0.0.1:{sshd.port}"


def test_a_refused_port_is_said(sshd: Sshd) -> None:
    port = free_port()
    with pytest.raises(UnreachableError) as caught:
        sshd.connect(sshd.host(address=f"127.0.0.1:{port}"))
    where = f"{sshd.user}@127.0.0.1:{port}"
    assert caught.value.message == f"{where} cannot be reached: connection refused"
    assert caught.value.hint.startswith(f"ssh -p {port} {sshd.user}@127.0.0.1 shows")


def test_a_name_that_nobody_knows_is_said(sshd: Sshd) -> None:
    with pytest.raises(UnreachableError, match=r"there is no host no-such.invalid\n") as caught:
        sshd.connect(sshd.host(address="no-such.invalid"))
    assert caught.value.hint == "correct the address in the host's file, or ~/.ssh/config"


def test_what_is_no_ssh_server_is_said(sshd: Sshd) -> None:
    def answer() -> None:
        client, _ = listener.accept()
        with client:
            client.sendall(b"HTTP/1.1 400 Bad Request\r\n" * 200)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer)
        thread.start()
        port = listener.getsockname()[1]
        with pytest.raises(UnreachableError, match=rf"at {sshd.user}@.*:{port} is no SSH server"):
            sshd.connect(sshd.host(address=f"127.0.0.1:{port}"))
        thread.join()


def test_a_host_that_does_not_answer_is_given_up_in_time(sshd: Sshd) -> None:
    host = sshd.host(limits=HostLimits(connect_s=0.5))
    sshd.freeze()
    with pytest.raises(UnreachableError, match=r"it does not answer within 0\.\d+ s"):
        sshd.connect(host)


def test_a_host_without_an_address_is_refused() -> None:
    with pytest.raises(TransportError, match="host here has no address: it is this machine"):
        connect(Host(name="here"))


def test_aliases_of_openssh_are_known(sshd: Sshd) -> None:
    sshd.config.write_text(
        f"Host box\n HostName 127.0.0.1\n Port {sshd.port}\n User {sshd.user}\n"
        f" IdentityFile {sshd.client_key}\n UserKnownHostsFile {sshd.known_hosts}\n"
    )
    host = Host(name="db", address="box", agent=False)
    assert works(connect(host, config=sshd.config))


# ---------------------------------------------------------------- logging in


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_keys_of_every_kind_log_in(sshd: Sshd, kind: str) -> None:
    key = make_key(sshd.folder / kind, kind)
    sshd.authorize(key)
    assert works(sshd.connect(sshd.host(key_files=[str(key)])))


def test_a_key_that_is_not_accepted_is_named(sshd: Sshd) -> None:
    key = make_key(sshd.folder / "wrong")
    with pytest.raises(LoginRefusedError) as caught:
        sshd.connect(sshd.host(key_files=[str(key)]))
    where = f"{sshd.user}@127.0.0.1:{sshd.port}"
    assert caught.value.message == f"{where} accepts no key that was tried: {key}"
    assert caught.value.hint == f"ssh-copy-id -i {key}.pub -p {sshd.port} {sshd.user}@127.0.0.1"


def test_too_many_wrong_keys_are_told_from_a_broken_connection(sshd: Sshd) -> None:
    keys = [str(make_key(sshd.folder / f"wrong{number}")) for number in range(8)]
    with pytest.raises(LoginRefusedError, match=r"ended the connection after \d wrong keys"):
        sshd.connect(sshd.host(key_files=keys))


def test_a_key_file_that_is_missing_or_no_key_is_named(sshd: Sshd, tmp_path: Path) -> None:
    with pytest.raises(TransportError, match=r"^the key file /no/such for .* is not there"):
        sshd.connect(sshd.host(key_files=["/no/such"]))
    (tmp_path / "text").write_text("hello")
    with pytest.raises(TransportError, match=r"text holds no private key of a kind that can be"):
        sshd.connect(sshd.host(key_files=[str(tmp_path / "text")]))
    with pytest.raises(TransportError, match=r"cannot be read: Is a directory"):
        sshd.connect(sshd.host(key_files=[str(tmp_path)]))


def test_without_any_key_the_way_to_one_is_told(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(LoginRefusedError, match=r"^there is no key to log in to .* with") as caught:
        sshd.connect(sshd.host(key_files=[]))
    assert caught.value.hint == "ssh-keygen -t ed25519 makes one; ssh-copy-id takes it there"


def test_a_host_that_takes_no_keys_is_said(sshd: Sshd) -> None:
    sshd.settings |= {"PubkeyAuthentication": "no", "PasswordAuthentication": "yes"}
    sshd.restart()
    with pytest.raises(LoginRefusedError, match=r"nobody in by key, only by password") as caught:
        sshd.connect()
    assert "PubkeyAuthentication yes" in caught.value.hint


def test_a_host_that_wants_more_than_a_key_is_said(sshd: Sshd) -> None:
    sshd.settings |= {
        "AuthenticationMethods": "publickey,password",
        "PasswordAuthentication": "yes",
    }
    sshd.restart()
    with pytest.raises(LoginRefusedError, match=r"takes the key and wants password as well"):
        sshd.connect()


@pytest.mark.parametrize("kind", ["ed25519", "rsa"])
def test_a_passphrase_is_asked_for_and_remembered(sshd: Sshd, kind: str) -> None:
    key = make_key(sshd.folder / "locked", kind, SECRET)
    sshd.authorize(key)
    answers = ["wrong", SECRET]
    prompts = []

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        return answers.pop(0)

    keys = Keys(ask)
    opened = sshd.connect(sshd.host(key_files=[str(key)]), keys=keys)
    sshd.restart()
    assert works(opened)
    assert works(sshd.connect(sshd.host(key_files=[str(key)]), keys=keys))
    prompt = f"Passphrase for {key}: "
    assert prompts == [prompt, f"That was not it. {prompt}"]
    assert "secret" not in repr(vars(opened)) + repr(vars(keys))


def test_hosts_that_are_reached_at_once_ask_for_one_passphrase_once(sshd: Sshd) -> None:
    key = make_key(sshd.folder / "locked", passphrase=SECRET)
    sshd.authorize(key)
    both, asked = threading.Barrier(3), []

    def ask(prompt: str) -> str:
        asked.append(prompt)
        # Nobody answers before all have reached their host and want to know.
        until(lambda: (sshd.folder / "log").read_text().count("Connection from") >= 3)
        return SECRET

    def reach() -> None:
        both.wait()
        worked.append(works(sshd.connect(sshd.host(key_files=[str(key)]), keys=keys)))

    sshd.settings["LogLevel"] = "VERBOSE"
    sshd.restart()
    (sshd.folder / "log").write_text("")
    keys, worked = Keys(ask), list[bool]()
    threads = [threading.Thread(target=reach) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert worked == [True] * 3
    assert len(asked) == 1


@pytest.mark.parametrize(("answer", "times"), [("wrong", 3), ("", 1)])
def test_a_passphrase_is_asked_for_three_times(sshd: Sshd, answer: str, times: int) -> None:
    key = make_key(sshd.folder / "locked", passphrase=SECRET)
    sshd.authorize(key)
    asked: list[str] = []

    def ask(prompt: str) -> str:
        asked.append(prompt)
        return answer

    with pytest.raises(LoginRefusedError, match=rf"and {key} needs its passphrase") as caught:
        sshd.connect(sshd.host(key_files=[str(key)]), keys=Keys(ask))
    assert len(asked) == times
    assert "secret" not in str(caught.value)


def test_without_anybody_to_ask_the_agent_is_the_way(sshd: Sshd) -> None:
    key = make_key(sshd.folder / "locked", passphrase=SECRET)
    sshd.authorize(key)
    with pytest.raises(LoginRefusedError, match=rf"{key} needs its passphrase") as caught:
        sshd.connect(sshd.host(key_files=[str(key)]))
    assert caught.value.hint == f"ssh-add {key}"


def test_keys_of_an_agent_log_in(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    address = str(tmp_path / "agent")
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", address], stdout=subprocess.DEVNULL)
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", address)
        while not Path(address).exists():
            assert agent.poll() is None
        locked = make_key(sshd.folder / "locked", passphrase=SECRET)
        for key in (make_key(sshd.folder / "other"), sshd.client_key):
            subprocess.run(["ssh-add", "-q", str(key)], check=True, capture_output=True)
        assert works(sshd.connect(sshd.host(agent=True, key_files=[])))
        assert works(sshd.connect(sshd.host(agent=True)))
        # The file is locked; the agent has other keys, and is asked after it.
        assert works(sshd.connect(sshd.host(agent=True, key_files=[str(locked)])))
        sshd.config.write_text("IdentitiesOnly yes\n")
        with pytest.raises(LoginRefusedError, match="needs its passphrase"):
            sshd.connect(sshd.host(agent=True, key_files=[str(locked)]))
    finally:
        agent.terminate()
        agent.wait()


# ---------------------------------------------------------------- jumping


def test_a_host_behind_another_one(sshd: Sshd, gate: Sshd) -> None:
    inventory = {"gate": gate.host("gate")}
    both = sshd.known_hosts.read_text() + gate.known_hosts.read_text()
    sshd.known_hosts.write_text(both)
    opened = sshd.connect(sshd.host(jump="gate"), hosts=inventory)
    opened.put(Path(__file__), str(sshd.folder / "copy"))
    assert opened.read(str(sshd.folder / "copy")) == Path(__file__).read_bytes()
    gate.kill_sessions()
    assert works(opened)


def test_the_key_of_a_jump_host_is_checked_first(sshd: Sshd, gate: Sshd) -> None:
    host = sshd.host(jump="gate")
    options: dict[str, Any] = {
        "hosts": {"gate": gate.host("gate")},
        "known_hosts": sshd.known_hosts,
        "config": sshd.config,
    }
    with pytest.raises(UnknownHostKeyError, match=rf"key of .*:{gate.port} is not known") as caught:
        connect(host, **options)
    assert caught.value.hint.endswith("benchrunner hosts trust nvme1")
    found = offered_key(host, **options)
    assert (found.name_in_known_hosts, found.known) == (f"[127.0.0.1]:{gate.port}", "unknown")
    sshd.known_hosts.write_text(gate.known_hosts.read_text())
    found = offered_key(host, **options)
    assert (found.name_in_known_hosts, found.known) == (f"[127.0.0.1]:{sshd.port}", "unknown")


def test_a_host_that_the_jump_host_cannot_reach_is_said(sshd: Sshd) -> None:
    port = free_port()
    host = sshd.host(address=f"127.0.0.1:{port}", jump="gate")
    with pytest.raises(
        UnreachableError, match=rf":{port} cannot be reached through .*:{sshd.port}: "
    ):
        sshd.connect(host, hosts={"gate": sshd.host("gate")})
