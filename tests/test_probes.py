"""Probes: pure functions over recorded output, and the real thing on this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrunner.errors import TransportError
from benchrunner.probes import facts, machine, preconditions, storage
from benchrunner.probes import text as probe_text
from benchrunner.probes.check import Check, taint_of
from benchrunner.probes.doctor import (
    Needs,
    Program,
    doctor,
    mending_command,
    read_installed,
    typed,
)
from benchrunner.probes.remedies import as_typed, is_command
from benchrunner.transports.local import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchrunner.transports import Completed

HOST = LocalTransport()
CASES = Path(__file__).parent / "cases" / "probes"
NOBODY = "65534"
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - looked at, not written to


def on_output(function: Callable[[probe_text.Output], Any]) -> Callable[[str], Any]:
    return lambda text: function(probe_text.read_output(text))


PROBES: Mapping[str, Callable[[str], Any]] = {
    "cpu": on_output(machine.cpu),
    "numa": on_output(machine.numa),
    "memory": on_output(machine.memory),
    "kernel": on_output(machine.kernel),
    "operating_system": on_output(machine.operating_system),
    "virtualisation": on_output(machine.virtualisation),
    "cgroup": on_output(machine.cgroup),
    "device": on_output(lambda output: storage.device(output, 0)),
    "file_system": on_output(lambda output: storage.file_system(output, 0)),
    "tools": on_output(storage.tools),
    "compiler": on_output(storage.compiler),
    "busy": lambda text: [asdict(share) for share in preconditions.cpu_shares(text)],
    "installed": lambda text: asdict(read_installed(text)),
}


class UnprivilegedTransport(LocalTransport):
    """This machine as somebody who may do nothing."""

    def run(self, argv: Sequence[str], **options: Any) -> Completed:
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        return super().run([*user, *argv] if os.getuid() == 0 else argv, **options)


class MuteTransport(LocalTransport):
    """A host where /proc and /sys show nothing: scripts run without any program on PATH."""

    def run(self, argv: Sequence[str], **options: Any) -> Completed:
        return super().run(["env", "-i", "PATH=/nowhere", "/bin/sh", *argv[1:]], **options)


# ---------------------------------------------------------------- recorded output


@pytest.mark.parametrize(
    "case", sorted(CASES.glob("*/*")), ids=lambda case: f"{case.parent.name}/{case.name}"
)
def test_recorded_output(case: Path) -> None:
    assert (case / "source.txt").read_text().strip()
    found = PROBES[case.parent.name]((case / "input.txt").read_text())
    assert json.loads(json.dumps(found)) == json.loads((case / "expected.json").read_text())


def test_every_probe_has_cases() -> None:
    assert {folder.name for folder in CASES.iterdir()} == set(PROBES)


@given(st.text())
def test_any_output_is_understood_as_far_as_it_goes(text: str) -> None:
    found = facts.facts_from(probe_text.read_output(text), ["/a", "/b"])
    assert json.dumps(found)
    preconditions.cpu_shares(text.replace("\n\n", "\n"))


# ---------------------------------------------------------------- facts of this machine


def test_facts_agree_with_what_python_sees(tmp_path: Path) -> None:
    found = facts.collect_facts(HOST, [str(tmp_path), SHARED_MEMORY, str(tmp_path / "no")], "local")
    assert found.host == "local"
    assert found.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert abs(found.taken_at - time.time()) < 3600
    what = found.facts
    assert what["cpu"]["threads"] == os.sysconf("SC_NPROCESSORS_ONLN")
    assert what["kernel"]["release"] == os.uname().release
    assert what["kernel"]["architecture"] == os.uname().machine
    size = os.statvfs(tmp_path)
    assert what["file_system"]["total_kib"] == size.f_blocks * size.f_frsize // 1024
    assert what["tools"].keys() >= ({"git"} if shutil.which("git") else set())
    assert what["other_directories"][SHARED_MEMORY]["device"] is None
    assert what["other_directories"][SHARED_MEMORY]["file_system"]["type"] == "tmpfs"
    assert what["other_directories"][str(tmp_path / "no")]["device"] == what["device"]
    assert what["now"]["free_kib"][0] > 0


def test_the_id_is_the_same_when_nothing_has_changed(tmp_path: Path) -> None:
    first = facts.collect_facts(HOST, [str(tmp_path)], "local")
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    second = facts.collect_facts(HOST, [str(tmp_path)], "local")
    assert first.id == second.id
    assert first.taken_at < second.taken_at


def test_the_id_changes_with_any_lasting_fact_and_with_no_other() -> None:
    text = (CASES / "cpu" / "two-sockets-mixed-governor" / "input.txt").read_text()
    before = facts.facts_from(probe_text.read_output(text), [])
    warmer = text.replace("3000.125", "1500.5")
    changed = text.replace("powersave", "performance")
    ids = [
        facts.facts_id(facts.facts_from(probe_text.read_output(t), []))
        for t in (text, warmer, changed)
    ]
    assert before["now"]["mhz"] == [3000.125 + n for n in range(8)]
    assert ids[0] == ids[1] != ids[2]


def test_a_host_that_shows_nothing_has_facts_that_are_none() -> None:
    found = facts.collect_facts(MuteTransport(), ["/"], "mute")
    assert found.facts["cpu"]["threads"] is None
    assert found.facts["device"] is None
    assert found.facts["now"]["clock_ahead_s"] is None
    assert found.boot_id == ""


# ---------------------------------------------------------------- preconditions


def test_a_writable_folder_stays_empty(tmp_path: Path) -> None:
    check = preconditions.check_writable(HOST, str(tmp_path))
    assert (check.ok, check.evidence) == (True, f"a file can be made in {tmp_path}")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_somebody_else_comes_with_the_command() -> None:
    check = preconditions.check_writable(UnprivilegedTransport(), "/usr/lib")
    assert check.ok is False
    assert "touch: cannot touch '/usr/lib/.benchrunner-probe-" in check.evidence
    assert check.remedy_command == 'sudo mkdir -p /usr/lib && sudo chown "$USER" /usr/lib'


def test_direct_io_is_tried(tmp_path: Path) -> None:
    try:
        os.close(os.open(tmp_path / "by-hand", os.O_CREAT | os.O_RDWR | os.O_DIRECT))
        expected = True
    except OSError:
        expected = False
    check = preconditions.check_direct_io(HOST, str(tmp_path))
    assert check.ok is expected
    assert not list(tmp_path.glob(".benchrunner*"))


def test_where_direct_io_fails_the_reason_is_kept() -> None:
    check = preconditions.check_direct_io(HOST, "/proc")
    assert check.ok is False
    assert check.evidence.startswith("no O_DIRECT in /proc: dd: failed to open")
    assert check.remedy_command == "use a work directory on ext4, xfs or btrfs"


@pytest.mark.parametrize(
    ("free", "needed", "ok", "evidence"),
    [
        (2**31, 2**30, True, "2.0 GiB are free in /d, 1.0 GiB are needed"),
        (2**30, 2**31, False, "1.0 GiB are free in /d, 2.0 GiB are needed"),
        (2**30, None, None, "1.0 GiB are free in /d"),
    ],
)
def test_free_space(free: int, needed: int | None, ok: bool | None, evidence: str) -> None:
    check = preconditions.check_free_space(free, needed, "/d")
    assert (check.ok, check.evidence) == (ok, evidence)


def test_io_uring_as_the_kernel_says() -> None:
    check = preconditions.check_io_uring(HOST)
    switch = Path("/proc/sys/kernel/io_uring_disabled")
    if switch.exists():
        assert check.ok is (switch.read_text().strip() == "0")
    assert check.evidence


class OldKernelTransport(LocalTransport):
    """A kernel without the switch for io_uring."""

    def size(self, remote: str) -> int | None:
        return None if "io_uring" in remote else super().size(remote)


def test_io_uring_of_a_kernel_without_the_switch() -> None:
    check = preconditions.check_io_uring(OldKernelTransport())
    has_it = "sys_io_uring_setup" in Path("/proc/kallsyms").read_text()
    assert check.ok is has_it
    assert check.evidence.startswith("the kernel ")


def test_settings_that_spoil_numbers_become_taints() -> None:
    bad = {
        "cpu": {"governor": "powersave"},
        "memory": {"swap_kib": 8388608, "transparent_huge_pages": "always"},
    }
    taints = [taint_of(check) for check in preconditions.facts_checks(bad)]
    assert [(t.name, t.evidence, t.remedy) for t in taints if t] == [
        ("cpu-governor", "the CPU governor is powersave",
         "cpupower frequency-set --governor performance"),
        ("swap-on", "swap space is 8.0 GiB", "swapoff -a"),
        ("transparent-huge-pages", "the setting of transparent huge pages is always",
         "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"),
    ]  # fmt: skip


def test_settings_that_are_good_or_unknown_do_not() -> None:
    good = {
        "cpu": {"governor": "performance"},
        "memory": {"swap_kib": 0, "transparent_huge_pages": "never"},
    }
    assert [check.ok for check in preconditions.facts_checks(good)] == [True] * 3
    unknown = preconditions.facts_checks({})
    assert [check.ok for check in unknown] == [None] * 3
    assert unknown[0].evidence == "the CPU governor is not known here"
    assert [taint_of(check) for check in unknown] == [None] * 3


def test_a_busy_process_is_seen_and_can_be_ignored() -> None:
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as spinner:
        try:
            check = preconditions.busy_processes(HOST, window_s=0.4, limit_pct=5)
            ignoring = preconditions.busy_processes(
                HOST, window_s=0.1, limit_pct=5, ignore=(spinner.pid,)
            )
        finally:
            spinner.kill()
    assert check.ok is False
    assert f"(pid {spinner.pid})" in check.evidence
    assert str(spinner.pid) in check.remedy_command
    assert f"(pid {spinner.pid})" not in ignoring.evidence


def test_an_idle_host_is_fine() -> None:
    check = preconditions.busy_processes(HOST, window_s=0.05, limit_pct=100_000)
    assert (check.ok, check.evidence) == (
        True,
        "no other process used more than 100000 % of a core",
    )


@pytest.mark.skipif(not os.access("/proc/sys/vm/drop_caches", os.W_OK), reason="wants root")
def test_dropped_caches_are_gone(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(os.urandom(1 << 20) * 96)
    result = preconditions.drop_caches(HOST)
    assert result.taint is None
    assert result.after_kib < result.before_kib
    assert preconditions.check_drop_caches(HOST).ok is True


@pytest.mark.skipif(shutil.which("sudo") is not None, reason="sudo could permit it")
def test_caches_that_may_not_be_dropped_are_a_taint() -> None:
    result = preconditions.drop_caches(UnprivilegedTransport())
    assert result.taint is not None
    assert result.taint.name == "page-cache-not-dropped"
    assert result.taint.evidence == (
        "the page cache was not dropped: it is not permitted: not root, and no sudo"
    )
    assert "sudoers" in result.taint.remedy
    check = preconditions.check_drop_caches(UnprivilegedTransport())
    assert (check.ok, check.evidence) == (False, "/proc/sys/vm/drop_caches cannot be written")


class PretendingTransport(LocalTransport):
    """A host that says it dropped its caches and did not, as some containers do."""

    meminfo = b"Cached: 900000 kB\nBuffers: 10 kB\nShmem: 100 kB\n"

    def run(self, argv: Sequence[str], **options: Any) -> Completed:
        return super().run(["true"], **options)

    def read(self, remote: str, offset: int = 0, limit: int | None = None) -> bytes:
        return self.meminfo


def test_success_without_effect_is_a_taint() -> None:
    result = preconditions.drop_caches(PretendingTransport())
    assert (result.before_kib, result.after_kib) == (899910, 899910)
    assert result.taint is not None
    assert result.taint.evidence.endswith("899910 KiB were cached before and 899910 KiB after")


def test_a_host_without_the_line_is_an_error() -> None:
    transport = PretendingTransport()
    transport.meminfo = b"Cached: 1 kB\n"
    with pytest.raises(TransportError, match="/proc/meminfo on this machine has no line Buffers"):
        preconditions.drop_caches(transport)


# ---------------------------------------------------------------- doctor


def by_name(checks: Sequence[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def test_the_doctor_sees_what_is_here(tmp_path: Path) -> None:
    checks = by_name(doctor(HOST, str(tmp_path / "not" / "made")))
    for name in ("cc", "make", "git", "fio", "db_bench"):
        assert checks[name].ok is (shutil.which(name) is not None)
    assert checks["cc"].required
    assert not checks["ccache"].required
    assert checks["python"].ok is True
    assert checks["writable"].ok is True
    assert {"libzstd-dev", "free-space", "direct-io", "io-uring", "drop-caches"} <= checks.keys()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="wants a Debian system")
def test_what_is_missing_comes_with_one_command(tmp_path: Path) -> None:
    needs = Needs(
        programs=[Program("no-such-program", "no-such-package extra", "a test", required=True)],
        packages={"no-such-library-dev": "another test"},
    )
    checks = doctor(HOST, str(tmp_path), needs)
    missing = [c for c in checks if c.name.startswith("no-such")]
    assert [(c.ok, c.required, c.purpose, c.evidence) for c in missing] == [
        (False, True, "a test", "no-such-program is not on PATH"),
        (False, False, "another test", "no-such-library-dev is not installed"),
    ]
    sudo = "" if os.getuid() == 0 else "sudo "
    assert missing[1].remedy_command == f"{sudo}apt-get install -y no-such-library-dev"
    command = f"{sudo}apt-get install -y no-such-package extra no-such-library-dev"
    assert mending_command(missing) == command


def test_remedies_of_this_machine_are_what_its_user_types() -> None:
    swap = Check("swap-on", ok=False, evidence="", remedy_command="swapoff -a")
    assert typed(swap, is_root=False).remedy_command == "sudo swapoff -a"
    assert typed(swap, is_root=True) == swap
    advice = replace(swap, remedy_command="use a work directory on ext4, xfs or btrfs")
    assert typed(advice, is_root=False) == advice
    thp = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
    assert as_typed(thp, is_root=False) == f"sudo sh -c '{thp}'"
    assert as_typed("sudo mkdir -p /d && sudo chown x /d", is_root=True) == (
        "mkdir -p /d && chown x /d"
    )
    assert as_typed("df -h /d", is_root=False) == "df -h /d"
    assert not is_command("")


def test_nothing_missing_wants_no_command() -> None:
    assert mending_command([Check("a", ok=True, evidence="")]) is None
    without_package = Check("direct-io", ok=False, evidence="no", remedy_command="move")
    assert mending_command([without_package]) is None


class BareTransport(LocalTransport):
    """A host that is no Debian system: the doctor's script finds no programs at all."""

    def run(self, argv: Sequence[str], **options: Any) -> Completed:
        if argv[:2] == ["sh", "-c"] and "dpkg-query" in argv[2]:
            script = argv[2].replace("PATH=$PATH:/usr/sbin:/sbin", "")
            return super().run(
                ["env", "-i", "PATH=/nowhere", "/bin/sh", "-c", script, *argv[3:]], **options
            )
        return super().run(argv, **options)


def test_without_apt_the_remedy_is_words(tmp_path: Path) -> None:
    checks = doctor(BareTransport(), str(tmp_path))
    named = by_name(checks)
    assert named["cc"].ok is False
    assert named["cc"].remedy_command == "install what Debian calls gcc libc6-dev"
    assert named["libzstd-dev"].ok is None
    assert named["libzstd-dev"].evidence == "cannot be told: this is not a Debian system"
    assert mending_command(checks) is None
