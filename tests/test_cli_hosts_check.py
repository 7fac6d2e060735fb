"""``benchrunner hosts check`` once the host is reached, and ``facts``."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hosts_support import Lab, held, lab, lines_of
from sshd_support import sshd

from benchrunner.cli.hosts_check import print_score
from benchrunner.definitions import Host
from benchrunner.inventory.checking import Pasting, ssh_command
from benchrunner.inventory.observing import fact_text, sections
from benchrunner.probes.check import Check
from benchrunner.store import open_store
from benchrunner.transports.ssh_config import Routes

__all__ = ["lab", "sshd"]
pytestmark = pytest.mark.ssh
SWAPPINESS = Path("/proc/sys/vm/swappiness")


# ---------------------------------------------------------------- check: the machine


def test_a_foreign_work_directory(lab: Lab) -> None:
    lab.trust()
    lab.work.mkdir()
    (lab.work / "thesis.tex").write_text("x")
    printed = lab.fails(2, "check", "nvme1")
    assert f"{lab.work} on {lab.where} is not a folder of benchrunner" in printed
    assert "mend: name a new or an empty folder" in printed


def test_a_work_directory_that_cannot_be_written(lab: Lab) -> None:
    lab.trust()
    lab.host(work_dir="/sys/benchrunner")
    printed = lab.fails(2, "check", "nvme1")
    assert lines_of(printed)["writable"][0].startswith("MISSING: ")
    (mend,) = [line for line in printed.splitlines() if "mkdir" in line]
    assert "mkdir -p /sys/benchrunner && " in mend, "the folder itself, not the one above it"
    key, port = lab.sshd.client_key, lab.sshd.port
    assert f"ssh -i {key} -p {port} {lab.sshd.user}@127.0.0.1 '" in mend.replace("ssh -t", "ssh")


def test_no_work_directory_and_a_setting_that_is_none(lab: Lab) -> None:
    lab.trust()
    lab.host(work_dir=None, tune={"govenor": "performance"})
    printed = lab.fails(2, "check", "nvme1")
    found = lines_of(printed)
    assert found["work-dir"][0].startswith("MISSING: host nvme1 is 127.0.0.1")
    assert 'work_dir = "/var/tmp/benchrunner"' in printed
    assert "did you mean 'governor'" in found["tune"][0]
    assert "cc" in found


def test_what_must_be_mounted_and_what_is_claimed(lab: Lab) -> None:
    lab.trust()
    lab.prepared()
    lab.host(data={str(lab.folder / "data"): "befs"})
    found = lines_of(lab.fails(2, "check", "nvme1"))
    assert f"ok: {lab.work} is benchrunner's" in found["ours"]
    assert f"ok: {lab.folder}/data will be made" in found["ours"]
    assert "and not on befs" in found["mounted"][0]


def test_a_poor_host_is_told_one_command_for_all(lab: Lab) -> None:
    lab.trust()
    poor = lab.folder / "bin"
    poor.mkdir()
    for program in Path("/usr/bin").iterdir():
        if program.name not in {"cc", "fio", "numactl"}:
            (poor / program.name).symlink_to(program)
    lab.host(env={"PATH": str(poor)})
    printed = lab.fails(2, "check", "nvme1")
    assert "MISSING  cc" in printed
    assert "gap      fio" in printed
    command = printed.rpartition("at once:\n  ")[2]
    assert command.startswith("ssh ")
    assert "apt-get install -y gcc libc6-dev" in command
    assert "fio" in command


def test_remedies_are_turned_into_what_can_be_pasted() -> None:
    user, root = Pasting("ssh nvme1", is_root=False), Pasting("ssh nvme1", is_root=True)
    assert root.command("sudo apt-get install -y fio") == "ssh nvme1 'apt-get install -y fio'"
    assert user.command("df -h /data") == "ssh nvme1 'df -h /data'"
    thp = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
    assert user.command(thp) == f"""ssh -t nvme1 'sudo sh -c '"'"'{thp}'"'"''"""
    assert user.command("swapoff -a") == "ssh -t nvme1 'sudo swapoff -a'"
    assert Pasting("", is_root=False).command("swapoff -a") == "sudo swapoff -a"
    assert Pasting("", is_root=True).command("sudo mount /d") == "mount /d"
    advice = Check("x", ok=False, evidence="", remedy_command="use a work directory on ext4")
    assert user.applied(advice) == advice
    assert user.applied(replace(advice, remedy_command="")).remedy_command == ""


def test_how_a_person_logs_in(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host box\n HostName 10.0.0.1\n")
    gate = Host(name="gate", address="me@gate:2222")

    def command(host: Host) -> str:
        return ssh_command(host, Routes({"gate": gate}, config, tmp_path / "known").to(host))

    assert command(Host(name="a", address="box")) == "ssh box"
    host = Host(name="a", address="bench@box:2200", jump="gate,you@two", key_files=["~/.ssh/k"])
    assert command(host) == "ssh -i '~/.ssh/k' -J me@gate:2222,you@two:22 -p 2200 bench@box"


@pytest.mark.slow
def test_noise_is_measured_kept_and_shown_again(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.trust()
    lab.prepared()
    assert "A/A score" not in lab.ok("show", "nvme1")
    open_store("results").close()
    found = json.loads(lab.ok("check", "nvme1", "--noise", "--rounds", "3", "--json"))
    score = found["aa_score"]
    assert score["kinds"]["cpu"]["samples"] == 6
    last = lab.ok("show", "nvme1").splitlines()[-1]
    assert last.startswith(f"A/A score of {time.strftime('%Y-%m-%d', time.gmtime())}: numbers rep")
    shown = json.loads(lab.ok("show", "nvme1", "--json"))
    assert shown["aa_score"]["kinds"] == score["kinds"]

    print_score(score | {"kept": False})
    printed = capsys.readouterr().out
    assert score["sentence"].startswith("numbers on this host repeat within")
    assert score["sentence"] in printed
    assert re.search(r"^cpu +\d+\.\d % +\d\.\d{3} +\d\.\d{3} - \d\.\d{3} ", printed, re.MULTILINE)
    assert "not kept: there is no store" in printed
    with held(lab):
        assert "is in use by" in lab.fails(1, "check", "nvme1", "--noise")
    lab.host(work_dir="/sys/benchrunner")
    assert "was not measured: mend what is MISSING" in lab.fails(2, "check", "nvme1", "--noise")


# ---------------------------------------------------------------- facts


def test_facts_are_printed_stored_and_compared(lab: Lab) -> None:
    lab.trust()
    out = lab.ok("facts", "nvme1")
    assert "\nmemory\n  total " in out
    assert "\nat the moment\n" in out
    assert "changes cannot be told: there is no store" in out
    open_store("results").close()
    assert "nobody has been there before" in lab.ok("facts", "nvme1")
    assert "nothing has changed since facts were last taken" in lab.ok("facts", "nvme1")

    document = json.loads(lab.ok("facts", "nvme1", "--json"))
    assert document["stored"]
    with open_store("results") as store:
        seen = store.facts(document["id"])
        assert seen is not None
        kernel = {**seen.facts["kernel"], "release": "2.6.32"}
        facts = {**seen.facts, "kernel": kernel}
        store.save_facts(replace(seen, id="older", facts=facts))
        store.save_setting("hosts/nvme1/facts", "older")
    out = lab.ok("facts", "nvme1")
    release = seen.facts["kernel"]["release"]
    assert f"changed since facts were last taken:\n  kernel version: 2.6.32 -> {release}" in out


def test_facts_have_units() -> None:
    assert fact_text("device.max_sectors_kib", 4096) == "4.0 MiB"
    assert fact_text("memory.swap_kib", 0) == "none"
    assert fact_text("now.uptime_s", 12.5) == "12.5 s"
    assert fact_text("cpu.threads", 8) == "8"
    assert fact_text("memory.damon", []) == "none"
    assert fact_text("device.model", None) == ""
    assert sections({"cpu": {"model": None}, "oddity": "yes", "os": {"name": "Debian"}}) == (
        ("oddity", (("oddity", "yes"),)),
        ("OS", (("operating system", "Debian"),)),
    )
