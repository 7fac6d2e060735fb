"""Known hosts: who is known, by which key, and how one becomes so; OpenSSH's own programs judge."""

from __future__ import annotations

import base64
import stat
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sshd_support import Sshd, fingerprint_of, make_key, public, running_sshd, sshd

from benchrunner.errors import TransportError
from benchrunner.transports import ChangedHostKeyError, UnknownHostKeyError
from benchrunner.transports.host_keys import (
    KnownKey,
    OfferedKey,
    algorithms_for,
    fingerprint,
    hashed,
    judge,
    read_known,
    trust,
)
from benchrunner.transports.ssh import offered_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["sshd"]

KEY, OTHER = b"key", b"other"


def line(names: str, key: bytes = KEY, kind: str = "ssh-ed25519", marker: str = "") -> str:
    return f"{marker} {names} {kind} {base64.b64encode(key).decode()} comment\n".lstrip()


def known(tmp_path: Path, *lines: str) -> list[KnownKey]:
    file = tmp_path / "known_hosts"
    file.write_text("".join(lines))
    return read_known([file])


def offered(key: bytes = KEY, name: str = "db1", *, hash_names: bool = False) -> OfferedKey:
    return OfferedKey("me@db1", name, "ssh-ed25519", key, "unknown", None, hash_names)


# ---------------------------------------------------------------- reading


def test_fingerprints_are_those_of_openssh(tmp_path: Path) -> None:
    for kind in ("ed25519", "ecdsa", "rsa"):
        key = make_key(tmp_path / kind, kind)
        content = base64.b64decode(public(key).split()[1])
        assert fingerprint(content) == fingerprint_of(key)


@pytest.mark.parametrize(
    ("names", "name", "matches"),
    [
        ("db1", "db1", True),
        ("DB1,other", "db1", True),
        ("db1", "db10", False),
        ("[db1]:2222", "[db1]:2222", True),
        ("[db1]:2222", "[db1]:2223", False),
        ("[*]:2222", "[db1]:2222", True),
        ("db?.lab,!db2.lab", "db1.lab", True),
        ("db?.lab,!db2.lab", "db2.lab", False),
        ("::1", "::1", True),
        (hashed("db1", b"s" * 20), "db1", True),
        (hashed("db1", b"s" * 20), "db2", False),
        ("|1|no|base64!", "db1", False),
    ],
)
def test_names_match_as_in_openssh(tmp_path: Path, names: str, name: str, matches: bool) -> None:
    (entry,) = known(tmp_path, line(names))
    assert entry.is_for(name) is matches


def test_a_file_that_openssh_hashed_is_understood(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    key = make_key(tmp_path / "key")
    file.write_text(f"[127.0.0.1]:2222,db1 {public(key)}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    assert "db1" not in file.read_text()
    content = base64.b64decode(public(key).split()[1])
    for name in ("[127.0.0.1]:2222", "db1"):
        assert judge(read_known([file]), [name], content)[0] == "same"


def test_lines_that_say_nothing_are_passed_over(tmp_path: Path) -> None:
    lines = ("# db1 ssh-ed25519 AAAA\n", "\n", "db1 ssh-ed25519\n", "db1 ssh-ed25519 %%%\n")
    (entry,) = known(tmp_path, *lines, line("db1"))
    assert entry.line == 5


def test_several_files_are_read_and_missing_ones_are_none(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a", "missing", "b")]
    files[0].write_text(line("db1"))
    files[2].write_text(line("db2"))
    assert [(entry.file.name, entry.names) for entry in read_known(files)] == [
        ("a", ("db1",)),
        ("b", ("db2",)),
    ]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(TransportError, match=rf"^{tmp_path} cannot be read: Is a directory"):
        read_known([tmp_path])


# ---------------------------------------------------------------- judging


def test_known_unknown_changed_revoked(tmp_path: Path) -> None:
    entries = known(
        tmp_path,
        line("db1"),
        line("db2", OTHER),
        line("db2,db3", KEY),
        line("*", b"stolen", marker="@revoked"),
        line("db5", OTHER, marker="@cert-authority"),
        line("db6", b"x", "sk-ssh-ed25519@openssh.com"),
        line("db7", b"x", "ssh-rsa"),
    )
    verdicts = {name: judge(entries, [name], KEY)[0] for name in ("db1", "db2", "db4", "db5")}
    assert verdicts == {"db1": "same", "db2": "same", "db4": "unknown", "db5": "unknown"}
    verdict, entry = judge(entries, ["db1"], OTHER)
    assert (verdict, entry and entry.line) == ("changed", 1)
    assert judge(entries, ["db1"], b"stolen")[0] == "revoked"
    # A kind of key that cannot be asked for says nothing; one that was not offered does.
    assert judge(entries, ["db6"], KEY)[0] == "unknown"
    assert judge(entries, ["db7"], KEY)[0] == "changed"


def test_the_name_without_a_port_can_confirm_and_not_contradict(tmp_path: Path) -> None:
    entries = known(tmp_path, line("db1"))
    names = ["[db1]:2222", "db1"]
    assert judge(entries, names, KEY)[0] == "same"
    assert judge(entries, names, OTHER)[0] == "unknown"


def test_kinds_that_are_known_are_asked_for_first(tmp_path: Path) -> None:
    entries = known(tmp_path, line("db1", KEY, "ssh-rsa"))
    assert algorithms_for(entries, "db1")[:2] == ["rsa-sha2-512", "rsa-sha2-256"]
    assert algorithms_for(entries, "db2")[0] == "ssh-ed25519"


# ---------------------------------------------------------------- trusting


def test_trusting_makes_file_and_folder_private(tmp_path: Path) -> None:
    file = tmp_path / "ssh" / "known_hosts"
    trust(offered(), file)
    assert file.read_text() == "db1 ssh-ed25519 a2V5\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_hashed_name_is_one_for_openssh(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    key = base64.b64decode(public(make_key(tmp_path / "key")).split()[1])
    trust(offered(key, "[db1]:2222", hash_names=True), file)
    assert "db1" not in file.read_text()
    argv = ["ssh-keygen", "-F", "[db1]:2222", "-f", str(file)]
    assert subprocess.run(argv, capture_output=True, check=False).returncode == 0


def test_a_changed_key_replaces_all_of_that_name(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    others = ["# db1\n", line("db2", OTHER), line("db*", OTHER), line("x", KEY, marker="@revoked")]
    mine = [
        line("db1", OTHER),
        line("db1", b"y", "ssh-rsa"),
        line(hashed("db1", b"1" * 20), OTHER),
        line("db1,db9", OTHER),
    ]
    file.write_text("".join([others[0], mine[0], others[1], *mine[1:], others[2], others[3]]))
    trust(offered(), file)
    shorter = line("db9", OTHER)
    expected = [others[0], others[1], shorter, others[2], others[3], "db1 ssh-ed25519 a2V5\n"]
    assert file.read_text() == "".join(expected)
    assert judge(read_known([file]), ["db1"], KEY)[0] == "same"


def test_a_link_to_the_file_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "known_hosts"
    real.write_text("db2 ssh-ed25519 a2V5")
    link.symlink_to(real)
    trust(offered(), link)
    assert link.is_symlink()
    assert real.read_text() == "db2 ssh-ed25519 a2V5\ndb1 ssh-ed25519 a2V5\n"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TransportError, match=r"file/known_hosts cannot be written: "):
        trust(offered(), tmp_path / "file" / "known_hosts")


@given(
    lines=st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"") + b"\n"), max_size=5),
    hash_names=st.booleans(),
)
def test_other_lines_stay_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], hash_names: bool
) -> None:
    file = tmp_path_factory.mktemp("known") / "known_hosts"
    file.write_bytes(b"".join(lines))
    name = "host-that-no-other-line-names.example"
    for key in (KEY, OTHER, OTHER):
        trust(offered(key, name, hash_names=hash_names), file)
        assert judge(read_known([file]), [name], key)[0] == "same"
        content, others = file.read_bytes(), b"".join(lines)
        assert content.startswith(others)
        mine = content[len(others) :]
        assert mine.split()[1:] == [b"ssh-ed25519", base64.b64encode(key)]


# ---------------------------------------------------------------- with a real host

pytestmark = pytest.mark.ssh


@pytest.fixture
def three_keys(tmp_path: Path) -> Iterator[Sshd]:
    yield from running_sshd(tmp_path / "three", host_key_kinds=("ed25519", "ecdsa", "rsa"))


def test_an_unknown_host_is_refused_with_its_fingerprint(sshd: Sshd) -> None:
    sshd.known_hosts.write_text("")
    with pytest.raises(UnknownHostKeyError) as caught:
        sshd.connect()
    assert caught.value.message == (
        f"the ed25519 key of {sshd.user}@127.0.0.1:{sshd.port} is not known: "
        + fingerprint_of(sshd.host_keys["ed25519"])
    )
    assert caught.value.hint == (
        "compare it with ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub there,"
        " then benchrunner hosts trust nvme1"
    )
    assert sshd.known_hosts.read_text() == ""


def test_a_changed_key_is_refused_with_both_fingerprints(sshd: Sshd) -> None:
    before = fingerprint_of(sshd.host_keys["ed25519"])
    sshd.change_host_key()
    with pytest.raises(ChangedHostKeyError) as caught:
        sshd.connect()
    assert caught.value.message == (
        f"the key of {sshd.user}@127.0.0.1:{sshd.port} has changed: {sshd.known_hosts}:1 knows"
        f" {before}, the host offers {fingerprint_of(sshd.host_keys['ed25519'])}:"
        " it was installed anew, or somebody is in between"
    )
    assert "benchrunner hosts trust nvme1" in caught.value.hint


def test_a_revoked_key_is_refused(sshd: Sshd) -> None:
    with sshd.known_hosts.open("a") as file:
        file.write(f"@revoked * {public(sshd.host_keys['ed25519'])}\n")
    with pytest.raises(ChangedHostKeyError, match=r"is revoked by .*known_hosts:2"):
        sshd.connect()


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_host_is_known_by_any_of_its_keys(three_keys: Sshd, kind: str) -> None:
    three_keys.trust(kind=kind)
    transport = three_keys.connect()
    assert transport.run(["true"], timeout_s=10).exit_code == 0
    transport.close()


def test_offered_trusted_and_then_the_same(sshd: Sshd, tmp_path: Path) -> None:
    file = tmp_path / "known"
    options: dict[str, Any] = {"known_hosts": file, "config": sshd.config}
    found = offered_key(sshd.host(), **options)
    assert (found.known, found.line, found.key_type) == ("unknown", None, "ssh-ed25519")
    assert found.fingerprint == fingerprint_of(sshd.host_keys["ed25519"])
    assert found.name_in_known_hosts == f"[127.0.0.1]:{sshd.port}"
    trust(found, file)
    assert offered_key(sshd.host(), **options).known == "same"
    sshd.change_host_key()
    changed = offered_key(sshd.host(), **options)
    assert (changed.known, changed.line) == ("changed", 1)
    trust(changed, file)
    sshd.connect(known_hosts=file).close()
    assert len(file.read_text().splitlines()) == 1


def test_a_revoked_key_cannot_be_trusted(sshd: Sshd) -> None:
    sshd.known_hosts.write_text(f"@revoked * {public(sshd.host_keys['ed25519'])}\n")
    found = offered_key(sshd.host(), known_hosts=sshd.known_hosts, config=sshd.config)
    with pytest.raises(TransportError, match=r"^the key SHA256:.* is revoked"):
        trust(found, sshd.known_hosts)
