"""``benchrunner hosts list``, ``show`` and ``trust``, and the way that ``check`` walks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hosts_support import ROOT, Lab, lab, lines_of
from sshd_support import fingerprint_of, free_port, make_key, public, running_sshd, sshd

from benchrunner.catalog import Catalog
from benchrunner.definitions import Host
from benchrunner.errors import ConfigurationError
from benchrunner.host_files import HostFiles
from benchrunner.inventory.showing import settings, shown_environment

__all__ = ["lab", "sshd"]
pytestmark = pytest.mark.ssh
SWAPPINESS = Path("/proc/sys/vm/swappiness")


# ---------------------------------------------------------------- list, show


def test_help_is_instant_and_lists_the_verbs(lab: Lab) -> None:
    out = lab.ok("--help")
    for name in ("list", "show", "check", "facts", "trust", "restore", "clean"):
        assert f"\n  {name} " in out
    code = (
        "import sys; sys.argv = ['benchrunner', 'hosts', '--help']\n"
        "from benchrunner.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert not {'paramiko', 'pydantic', 'sqlalchemy'} & set(sys.modules)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=env)


@pytest.mark.parametrize("name", ["list", "show", "check", "facts", "trust", "restore", "clean"])
def test_every_verb_has_help_with_an_example(lab: Lab, name: str) -> None:
    out = lab.ok(name, "--help")
    assert f"Examples:\n    benchrunner hosts {name}" in out
    assert "--catalog DIR" in out


def test_names_that_are_not_there_are_answered_with_the_nearest(lab: Lab) -> None:
    assert "no verb 'hosts chek'; did you mean 'check'?" in lab.fails(2, "chek")
    for name in ("show", "check", "facts", "trust", "restore", "clean"):
        printed = lab.fails(2, name, "nvme11")
        assert "error: there is no host 'nvme11'; did you mean 'nvme1'?\n" in printed


def test_list_names_every_host_and_connects_to_none(lab: Lab) -> None:
    lab.sshd.stop()
    lab.host("archive", tags=["slow", "big"], roles=["server"], address="bench@archive")
    rows = [line.split() for line in lab.ok("list").splitlines()]
    assert rows[0] == ["name", "address", "work_dir", "tags", "roles", "file"]
    file = str(lab.folder / "hosts" / "archive.toml")
    assert rows[1] == ["archive", "bench@archive", str(lab.work), "slow,big", "server", file]
    assert rows[2][:3] == ["local", "this", "machine"]
    listed = json.loads(lab.ok("list", "--json"))
    assert [one["name"] for one in listed] == ["archive", "local", "nvme1"]
    assert listed[0]["tags"] == ["slow", "big"]


def test_a_file_that_cannot_be_used_hides_no_other(lab: Lab) -> None:
    (lab.folder / "hosts" / "broken.toml").write_text('name = "broken"\nadress = "x"\n')
    printed = lab.fails(2, "list")
    assert "broken  cannot be used" in printed
    assert "nvme1   127.0.0.1" in printed
    assert "adress" in printed.rpartition("error: ")[2]


def test_a_file_that_cannot_be_used_bars_the_way_to_no_other(lab: Lab) -> None:
    (lab.folder / "hosts" / "broken.toml").write_text('name = "broken"\nadress = "x"\n')
    lab.host("gate")
    lab.host("inner", address="10.0.0.9", jump="gate")
    assert f"1. {lab.where}  (jump host)" in lab.ok("show", "inner")
    assert "is known now" in lab.ok("trust", "nvme1", "--yes")
    lab.host("inner", address="10.0.0.9", jump="broken")
    assert "adress" in lab.fails(2, "show", "inner")


def test_hosts_are_read_when_they_are_asked_for(lab: Lab) -> None:
    (lab.folder / "hosts" / "broken.toml").write_text("name = ")
    lab.host("gate")
    files = HostFiles(Catalog(working_directory=lab.folder))
    assert {"broken", "gate"} <= set(files)
    assert len(files) == len(list(files))
    assert files["gate"].name == "gate"
    assert files.get("me@gate:22") is None
    with pytest.raises(ConfigurationError, match=r"broken\.toml"):
        files["broken"]


def test_show_has_defaults_the_way_and_nothing_secret(lab: Lab) -> None:
    config = lab.folder / "home" / ".ssh" / "config"
    config.parent.mkdir()
    config.write_text("Host inner\n HostName 10.0.0.9\n Port 2200\n ProxyJump me@outer:2222\n")
    lab.host(address="inner", env={"API_TOKEN": "hush", "http_proxy": "http://me:hush@p"})
    out = lab.ok("show", "nvme1")
    assert out.startswith(f"# {lab.folder}/hosts/nvme1.toml\n")
    assert "hush" not in out
    assert '"API_TOKEN" = "(not shown)"' in out
    assert "limits.connect_s = 20.0 " in out
    assert "# default" in out
    assert 'address = "inner"\n' in out
    way = out.partition("the way there:\n")[2]
    assert "  1. me@outer:2222  (jump host)\n" in way
    assert f"  2. {lab.sshd.user}@10.0.0.9:2200\n" in way
    assert f"known_hosts: {lab.known_hosts}," in way
    document = json.loads(lab.ok("show", "nvme1", "--json"))
    assert [hop["address"] for hop in document["route"]] == ["outer", "10.0.0.9"]
    assert "hush" not in json.dumps(document)
    assert "address" in document["given"]
    assert "limits.connect_s" not in document["given"]
    assert lab.ok("show", "local").count("the way there") == 0


def test_what_is_shown_of_an_environment() -> None:
    assert shown_environment({"DB_PASSWORD": "x", "LANG": "C"}) == {
        "DB_PASSWORD": "(not shown)", "LANG": "C",
    }  # fmt: skip
    shown = {one.key: one for one in settings(Host(name="a", env={"MY_SECRET": "x"}))}
    assert shown["env"].value == {"MY_SECRET": "(not shown)"}


# ---------------------------------------------------------------- check: the way


def test_a_port_that_nobody_listens_on(lab: Lab) -> None:
    port = free_port()
    lab.host(address=f"127.0.0.1:{port}")
    printed = lab.fails(2, "check", "nvme1")
    found = lines_of(printed)
    where = f"{lab.sshd.user}@127.0.0.1:{port}"
    assert found["reach"] == [f"MISSING: {where} cannot be reached: connection refused"]
    assert f"mend: ssh -p {port} {lab.sshd.user}@127.0.0.1 shows whether it is up" in printed
    for later in ("host-key", "login", "file-transfer"):
        assert found[later] == ["-: not checked"]
    assert "space, compiler, libraries, tools, clock, devices, settings  not checked" in printed
    states = json.loads(lab.fails(2, "check", "nvme1", "--json"))["checks"]
    assert [one["state"] for one in states] == ["missing", *["not checked"] * 4]


def test_a_way_that_makes_no_sense(lab: Lab) -> None:
    lab.host(jump="nvme1")
    printed = lab.fails(2, "check", "nvme1")
    assert "MISSING  reach" in printed
    assert "leads in a circle" in printed


def test_an_unknown_key_is_trusted_and_then_everything_is_looked_at(lab: Lab) -> None:
    printed = lab.fails(2, "check", "nvme1")
    found = lines_of(printed)
    assert found["reach"] == [f"ok: {lab.where} answers"]
    mark = fingerprint_of(lab.sshd.host_keys["ed25519"])
    assert found["host-key"] == [f"MISSING: the ed25519 key of {lab.where} is not known: {mark}"]
    assert "mend: benchrunner hosts trust nvme1\n" in printed
    assert found["login"] == ["-: not checked"]

    printed = lab.fails(2, "trust", "nvme1")
    assert f"fingerprint  {mark}" in printed
    assert f"whether the key of {lab.where} is right" in printed
    assert "then add --yes" in printed
    assert not lab.known_hosts.exists()
    out = lab.ok("trust", "nvme1", "--yes")
    assert "next: benchrunner hosts check nvme1\n" in out
    assert public(lab.sshd.host_keys["ed25519"]) in lab.known_hosts.read_text()
    assert lab.ok("trust", "nvme1") == f"every key on the way to nvme1 is known already: {mark}\n"

    found = lines_of(lab.ok("check", "nvme1"))
    assert found["host-key"] == [f"ok: it is the known one: {lab.known_hosts}:1"]
    assert found["login"] == [f"ok: logged in as {lab.sshd.user}"]
    assert found["ours"] == [f"ok: {lab.work} will be made"]
    for name in (
        "cc",
        "libzstd-dev",
        "free-space",
        "direct-io",
        "io-uring",
        "clock",
        "perf-events",
    ):
        assert name in found
    assert not lab.work.exists(), "check changes nothing"


def test_a_changed_key_is_only_replaced_on_purpose(lab: Lab) -> None:
    lab.trust()
    old = fingerprint_of(lab.sshd.host_keys["ed25519"])
    lab.sshd.change_host_key()
    new = fingerprint_of(lab.sshd.host_keys["ed25519"])
    printed = lab.fails(2, "check", "nvme1", "--catalog", str(lab.folder))
    assert "MISSING  host-key" in printed
    assert f"mend: benchrunner hosts trust nvme1 --catalog {lab.folder}\n" in printed

    printed = lab.fails(2, "trust", "nvme1", "--yes")
    assert f"THE KEY OF {lab.where} HAS CHANGED" in printed
    assert f"known    ed25519 {old}  ({lab.known_hosts}:1)" in printed
    assert f"offered  ed25519 {new}" in printed
    assert "then add --replace" in printed
    code, out = lab.attended("Type yes: ", "y", "trust", "nvme1")
    assert code == 2
    assert f"the key of {lab.where} was not added" in out
    assert "replacing" not in out
    code, out = lab.attended("Type yes: ", "yes", "trust", "nvme1", "--yes")
    assert code == 0, out
    assert f"replacing it in {lab.known_hosts}" in out
    assert lab.known_hosts.read_text().count("\n") == 1
    lab.sshd.change_host_key()
    assert "is known now" in lab.ok("trust", "nvme1", "--replace")


def test_a_person_is_asked_about_an_unknown_key(lab: Lab) -> None:
    code, out = lab.attended("[y/N]: ", "", "trust", "nvme1")
    assert code == 2
    assert f"Add it to {lab.known_hosts}? [y/N]" in out
    assert not lab.known_hosts.exists()
    code, out = lab.attended("[y/N]: ", "y", "trust", "nvme1")
    assert code == 0, out
    assert lab.known_hosts.exists()


def test_a_revoked_key_is_never_trusted(lab: Lab) -> None:
    lab.trust()
    lab.known_hosts.write_text(f"@revoked {lab.known_hosts.read_text()}")
    before = lab.known_hosts.read_text()
    assert "is revoked by" in lab.fails(1, "trust", "nvme1", "--yes", "--replace")
    printed = lab.fails(2, "check", "nvme1")
    assert "mend: do not use this host before its keys are replaced" in printed
    assert lab.known_hosts.read_text() == before


def test_jump_hosts_come_first(lab: Lab, tmp_path: Path) -> None:
    for behind in running_sshd(tmp_path / "behind"):
        lab.host("gate")
        lab.host(
            "inner", address=f"127.0.0.1:{behind.port}", key_files=[str(behind.client_key)],
            jump="gate",
        )  # fmt: skip
        printed = lab.fails(2, "check", "inner")
        inner = f"{behind.user}@127.0.0.1:{behind.port}"
        reach = f"unknown: {inner} is seen once all hosts before it let us through"
        assert lines_of(printed)["reach"] == [reach]
        assert f"the ed25519 key of {lab.where} is not known" in printed
        out = lab.ok("trust", "inner", "--yes")
        assert out.index(f"key of {lab.where} is") < out.index(f"key of {inner} is")
        found = lines_of(lab.ok("check", "inner"))
        assert found["reach"] == [f"ok: {inner} answers, by way of {lab.where}"]


def test_no_key_that_lets_us_in(lab: Lab) -> None:
    lab.trust()
    wrong = make_key(lab.folder / "wrong")
    lab.host(key_files=[str(wrong)])
    printed = lab.fails(2, "check", "nvme1")
    found = lines_of(printed)
    assert found["host-key"][0].startswith("ok: ")
    assert found["login"] == [f"MISSING: {lab.where} accepts no key that was tried: {wrong}"]
    port, user = lab.sshd.port, lab.sshd.user
    assert f"mend: ssh-copy-id -i {wrong}.pub -p {port} {user}@127.0.0.1\n" in printed


def test_a_host_without_file_transfer(lab: Lab) -> None:
    lab.trust()
    lab.sshd.settings["Subsystem"] = ""
    lab.sshd.restart()
    printed = lab.fails(2, "check", "nvme1")
    assert lines_of(printed)["file-transfer"][0].startswith("MISSING: ")
    assert "apt-get install -y openssh-sftp-server" in printed


def test_a_passphrase_is_asked_for(lab: Lab) -> None:
    lab.trust()
    words = "open sesame"
    locked = make_key(lab.folder / "locked", passphrase=words)
    lab.sshd.authorize(locked)
    lab.host(key_files=[str(locked)])
    printed = lab.fails(2, "check", "nvme1")
    assert f"{locked} needs its passphrase" in printed
    assert f"mend: ssh-add {locked}\n" in printed
    code, out = lab.attended("locked: ", words, "check", "nvme1")
    assert f"Passphrase for {locked}: " in out
    assert "sesame" not in out
    assert code == 0, out
