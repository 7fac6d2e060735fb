"""The way to a host: what an inventory and OpenSSH's configuration say, taken together."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchrunner.definitions import Host
from benchrunner.errors import TransportError
from benchrunner.transports.ssh_config import Hop, Routes, Written, parse_address

if TYPE_CHECKING:
    from collections.abc import Callable

    Find = Callable[..., tuple[Hop, ...]]

ME = getpass.getuser()


@pytest.fixture
def way(tmp_path: Path) -> Find:
    """Finds the way to a host, with the text of a configuration and other hosts."""

    def find(host: Host, text: str = "", *others: Host) -> tuple[Hop, ...]:
        config = tmp_path / "config"
        config.write_text(text)
        return Routes({other.name: other for other in others}, config, None).to(host)

    return find


def host(name: str = "db", address: str = "db1", **fields: Any) -> Host:
    return Host(name=name, address=address, **fields)


def labels(hops: tuple[Hop, ...]) -> list[str]:
    return [hop.label for hop in hops]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("db1", Written("db1")),
        ("me@db1:2222", Written("db1", "me", 2222)),
        ("a@b@db1", Written("db1", "a@b")),
        ("[::1]:2222", Written("::1", None, 2222)),
        ("me@::1", Written("::1", "me")),
    ],
)
def test_an_address_is_taken_apart(text: str, expected: Written) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize("text", ["db1:", "me@", "db1:0", "db1:x", "db1:65536", "-oProxy", "a b"])
def test_what_is_no_address_is_refused(text: str) -> None:
    if text == "db1:":
        assert parse_address(text) == Written("db1")
        return
    with pytest.raises(TransportError, match="is no address of a host") as caught:
        parse_address(text)
    assert caught.value.hint == "write [user@]host[:port]"


def test_without_any_configuration_openssh_defaults_hold(way: Find) -> None:
    (hop,) = way(host())
    assert (hop.label, hop.port, hop.known_as) == (f"{ME}@db1", 22, "db1")
    assert hop.key_files[0] == Path.home() / ".ssh" / "id_ed25519"
    assert hop.known_hosts[0] == Path.home() / ".ssh" / "known_hosts"
    assert not hop.named_keys
    assert not hop.hash_names


def test_openssh_configuration_is_honoured(way: Find) -> None:
    text = """
        Host db1
            HostName DB1.example.org
            User bench
            Port 2222
            IdentityFile ~/keys/one
            IdentityFile ~/keys/two
            IdentitiesOnly yes
            HashKnownHosts yes
            UserKnownHostsFile ~/mine %d/other-%h
            GlobalKnownHostsFile none
    """
    (hop,) = way(host(), text)
    assert hop.label == "bench@db1.example.org:2222"
    assert hop.known_as == "[db1.example.org]:2222"
    assert hop.key_files == (Path.home() / "keys/one", Path.home() / "keys/two")
    assert hop.known_hosts == (Path.home() / "mine", Path.home() / "other-db1.example.org")
    assert (hop.only_these_keys, hop.hash_names) == (True, True)


def test_the_inventory_wins(way: Find) -> None:
    text = "Host db1\n User a\n Port 1\n IdentityFile ~/a\n ProxyJump gate\n HostKeyAlias real\n"
    definition = host(user="b", port=2, key_files=["~/b"], jump="none", agent=False)
    (hop,) = way(definition, text)
    assert (hop.label, hop.key_files, hop.agent) == ("b@db1:2", (Path.home() / "b",), False)
    assert hop.known_as == "[real]:2"
    (hop,) = way(host(address="c@db1:3"), "Host db1\n User a\n Port 1\n")
    assert hop.label == "c@db1:3"


def test_one_file_of_known_hosts_replaces_all_others(tmp_path: Path) -> None:
    (hop,) = Routes({}, Path("/dev/null"), tmp_path).to(host())
    assert hop.known_hosts == (tmp_path,)


def test_an_ipv6_address_is_written_in_brackets(way: Find) -> None:
    (hop,) = way(host(address="me@[::1]:2222"))
    assert (hop.label, hop.known_as) == ("me@[::1]:2222", "[::1]:2222")


# ---------------------------------------------------------------- jumps


def test_jumps_are_addresses_aliases_or_hosts_of_the_inventory(way: Find) -> None:
    text = "Host gate\n HostName gate.example.org\n User guard\n"
    inner = host("inner", "inner.lab", user="bench", key_files=["/keys/inner"])
    hops = way(host(jump="me@first:2222, gate,inner"), text, inner)
    assert labels(hops) == [
        "me@first:2222", "guard@gate.example.org", "bench@inner.lab", f"{ME}@db1"
    ]  # fmt: skip
    assert hops[2].key_files == (Path("/keys/inner"),)


def test_a_jump_has_its_own_way(way: Find) -> None:
    text = "Host gate\n ProxyJump outer\n"
    assert labels(way(host(jump="gate"), text)) == [f"{ME}@outer", f"{ME}@gate", f"{ME}@db1"]
    a = host("a", "a.lab", jump="b")
    b = host("b", "b.lab", jump="c.lab")
    assert [hop.address for hop in way(host(jump="a"), "", a, b)] == [
        "c.lab", "b.lab", "a.lab", "db1"
    ]  # fmt: skip


def test_the_configuration_can_name_the_jump(way: Find) -> None:
    text = "Host db1\n ProxyJump gate\n"
    assert labels(way(host(), text)) == [f"{ME}@gate", f"{ME}@db1"]


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("Host gate\n ProxyJump gate\n", []),
        ("", [host("gate", "g", jump="other"), host("other", "o", jump="gate")]),
    ],
)
def test_a_way_in_a_circle_is_refused(way: Find, text: str, others: list[Host]) -> None:
    with pytest.raises(TransportError, match=r"leads in a circle: db -> .*gate\n"):
        way(host(jump="gate"), text, *others)


# ---------------------------------------------------------------- files


def test_included_files_are_read(way: Find, tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "a").write_text("Host db1\n Port 2222\n")
    (tmp_path / "conf.d" / "b").write_text("Host db2\n Port 3333\n")
    (tmp_path / "more").write_text("HostName inside\n")
    text = f"Include conf.d/* {tmp_path}/missing\nUser everyone\nHost db1\n Include more\n Port 1\n"
    (hop,) = way(host(), text)
    assert hop.label == "everyone@inside:2222"
    (hop,) = way(host(address="db3"), text)
    assert hop.label == "everyone@db3"


def test_files_that_include_each_other_are_refused(way: Find, tmp_path: Path) -> None:
    with pytest.raises(TransportError, match=r"config is included too deeply"):
        way(host(), "Include config\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense\n", "config cannot be read: Unparsable line nonsense"),
        ("Include 'half\n", "config cannot be read: Include 'half: No closing quotation"),
        ("Match host\n", "config cannot be read: Missing parameter"),
        ("Host *\n Port many\n", "Port 'many' for db1 is no port"),
        ("Host *\n ProxyCommand nc %h %p\n", "reached by a ProxyCommand, which is not supported"),
        ("CanonicalizeHostname yes\n", "configuration for db1 makes no sense"),
    ],
)
def test_what_cannot_be_understood_is_an_error(way: Find, text: str, message: str) -> None:
    with pytest.raises(TransportError, match=message):
        way(host(), text)


def test_a_configuration_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(TransportError, match=r"missing cannot be read: it is not there"):
        Routes({}, tmp_path / "missing", None)
    with pytest.raises(TransportError, match=r"cannot be read: Is a directory"):
        Routes({}, tmp_path, None)


def test_this_machine_is_no_remote_host(way: Find) -> None:
    with pytest.raises(TransportError, match="host here has no address: it is this machine"):
        way(Host(name="here"))


def test_the_users_own_configuration_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host db1\n User somebody\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    (hop,) = Routes({}, None, None).to(host())
    assert hop.label == "somebody@db1"
