from __future__ import annotations

import json
import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from benchrunner.errors import ConfigurationError, TransportError
from benchrunner.probes import settings
from benchrunner.probes.settings import SETTINGS, BlockDevices, block_devices, check_settings
from benchrunner.probes.tuning import (
    JOURNAL,
    HostSettings,
    Tuned,
    changed,
    pending,
    put_back,
    restore,
    tune,
)
from benchrunner.transports.local import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchrunner.transports import Completed

HOST = LocalTransport()
NOBODY = 65534
DISK = BlockDevices(("sdz",), ("sdz1", "sdz"))
CPU = "sys/devices/system/cpu"
QUEUE = "sys/class/block/sdz/queue"
FILES = {
    "proc/sys/kernel/random/boot_id": "boot-1",
    "proc/sys/vm/swappiness": "60",
    "proc/sys/kernel/randomize_va_space": "2",
    "proc/sys/kernel/numa_balancing": "1",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "sys/kernel/mm/transparent_hugepage/defrag": "always defer defer+madvise [madvise] never",
    "sys/module/damon_reclaim/parameters/enabled": "Y",
    "sys/kernel/mm/damon/admin/kdamonds/0/state": "on",
    f"{CPU}/intel_pstate/no_turbo": "0",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave",
    f"{CPU}/cpu1/cpufreq/scaling_governor": "schedutil",
    f"{CPU}/cpu0/cpufreq/energy_performance_preference": "balance_power",
    f"{QUEUE}/scheduler": "none [mq-deadline] bfq",
    f"{QUEUE}/nr_requests": "100",
    f"{QUEUE}/wbt_lat_usec": "2000",
    f"{QUEUE}/read_ahead_kb": "8192",
    f"{QUEUE}/max_sectors_kb": "1280",
}
WANTED = {
    "governor": "performance",
    "turbo": "off",
    "aslr": "0",
    "transparent_huge_pages": "never",
    "damon": "off",
    "nr_requests": "64",
    "scheduler": "none",
    "read_ahead_kib": "128",
}
KERNEL = r"""#!/bin/sh
# Stands for the kernel: what writing to a file of the tree does beyond storing the text.
read -r text
case $1 in
  */scheduler)
    case $text in none | mq-deadline) ;; *) echo "tee: $1: Invalid argument" >&2; exit 1 ;; esac
    echo 256 >"${1%/*}/nr_requests" ;;
  */nr_requests) [ "$text" -le 2000 ] || { echo "tee: $1: Invalid argument" >&2; exit 1; } ;;
  */read_ahead_kb) text=$((text / 4 * 4)) ;;
  */scaling_governor)
    [ "$text" != performance ] || echo performance >"${1%/*}/energy_performance_preference" ;;
esac
echo "$text" >"$1"
"""


class Kernel(LocalTransport):
    """This machine, with a fake kernel behind ``tee``."""

    def __init__(self, bin_dir: Path) -> None:
        self._bin_dir = bin_dir
        self.calls = 0

    def run(self, argv: Sequence[str], **options: Any) -> Completed:
        self.calls += 1
        path = f"{self._bin_dir}:{os.environ['PATH']}"
        return super().run(argv, **{**options, "env": {"PATH": path}})


class Dying(Kernel):
    """Its connection breaks at the n-th call: before it, within it or before the answer."""

    def __init__(self, bin_dir: Path, at: int, when: str) -> None:
        super().__init__(bin_dir)
        self._at, self._when = at, when

    def run(self, argv: Sequence[str], **options: Any) -> Completed:
        if self.calls + 1 != self._at:
            return super().run(argv, **options)
        given = options.get("input")
        if self._when == "in the middle" and given is not None:
            super().run(argv, **{**options, "input": given[: len(given) // 2]})
        if self._when == "before the answer":
            super().run(argv, **options)
        self.calls = self._at
        raise TransportError("the connection broke")


class Host:
    """A tree of settings with a work directory."""

    def __init__(self, folder: Path) -> None:
        self.root, self.work, self.bin = folder / "root", folder / "work", folder / "bin"
        self.work.mkdir()
        self.bin.mkdir()
        for path, text in FILES.items():
            self.write(path, text)
        (self.bin / "tee").write_text(KERNEL)
        (self.bin / "tee").chmod(0o755)
        self.kernel = Kernel(self.bin)
        self.where = HostSettings(self.kernel, str(self.work), "ada (process 7)", str(self.root))

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(f"{text}\n")

    def read(self, path: str) -> str:
        text = (self.root / path).read_text().strip()
        match = re.search(r"\[(\S+)\]", text)
        return match[1] if match else text

    def values(self) -> dict[str, str]:
        return {path: self.read(path) for path in FILES}

    @property
    def journal(self) -> Path:
        return self.work / JOURNAL

    def tune(self, **wanted: str) -> Tuned:
        return tune(self.where, wanted or WANTED, DISK)

    def dying(self, at: int, when: str) -> HostSettings:
        return replace(self.where, transport=Dying(self.bin, at, when))


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


ORIGINAL = {path: m[1] if (m := re.search(r"\[(\S+)\]", t)) else t for path, t in FILES.items()}


# ---------------------------------------------------------------- changing and putting back


def test_settings_come_in_force_and_go_back(host: Host) -> None:
    tuned = host.tune()
    assert tuned.taints == ()
    assert tuned.in_force == WANTED
    changed = {path: text for path, text in host.values().items() if text != ORIGINAL[path]}
    assert changed == {
        f"{CPU}/cpu0/cpufreq/scaling_governor": "performance",
        f"{CPU}/cpu1/cpufreq/scaling_governor": "performance",
        f"{CPU}/cpu0/cpufreq/energy_performance_preference": "performance",
        f"{CPU}/intel_pstate/no_turbo": "1",
        "proc/sys/kernel/randomize_va_space": "0",
        "sys/kernel/mm/transparent_hugepage/enabled": "never",
        "sys/module/damon_reclaim/parameters/enabled": "N",
        "sys/kernel/mm/damon/admin/kdamonds/0/state": "off",
        f"{QUEUE}/scheduler": "none",
        f"{QUEUE}/nr_requests": "64",
        f"{QUEUE}/read_ahead_kb": "128",
    }
    restored = restore(host.where)
    assert host.values() == ORIGINAL
    assert (restored.failed, restored.forgotten) == ((), ())
    assert not host.journal.exists()
    assert {entry.path for entry in restored.restored} == {f"/{path}" for path in changed}


def test_the_journal_says_what_was_there_and_who_changed_it(host: Host) -> None:
    tuned = host.tune(swappiness="1")
    (entry,) = json.loads(host.journal.read_text())["entries"]
    assert entry.pop("at") == tuned.changed[0].at
    assert entry == {
        "setting": "swappiness", "path": "/proc/sys/vm/swappiness", "old": "60", "new": "1",
        "by": "ada (process 7)", "boot_id": "boot-1",
    }  # fmt: skip
    assert pending(host.where) == tuned.changed
    assert changed(tuned.changed) == (
        "swappiness: /proc/sys/vm/swappiness was 60, and was set to 1",
    )
    assert put_back(tuned.changed) == (
        "swappiness: /proc/sys/vm/swappiness is 60 again, and was 1",
    )


def test_what_the_kernel_resets_along_the_way_goes_back_too(host: Host) -> None:
    tuned = host.tune(scheduler="none")
    assert host.read(f"{QUEUE}/nr_requests") == "256"
    assert [entry.setting for entry in tuned.changed] == ["scheduler"]
    restore(host.where)
    assert host.values() == ORIGINAL


def test_a_setting_that_was_so_already_survives_what_resets_it(host: Host) -> None:
    tuned = host.tune(nr_requests="100", scheduler="none")
    assert tuned.in_force == {"nr_requests": "100", "scheduler": "none"}
    assert host.read(f"{QUEUE}/nr_requests") == "100"
    restore(host.where)
    assert host.values() == ORIGINAL


def test_what_is_so_already_costs_one_round_trip_and_no_journal(host: Host) -> None:
    tuned = host.tune(swappiness="60", turbo="on")
    assert tuned == Tuned((), (), {"swappiness": "60", "turbo": "on"}, tuned.left_over)
    assert host.kernel.calls == 1
    assert not host.journal.exists()


def test_tuning_takes_three_round_trips(host: Host) -> None:
    host.tune()
    assert host.kernel.calls == 3


def test_tuning_again_keeps_the_first_old_values(host: Host) -> None:
    host.tune()
    again = host.tune(swappiness="1")
    assert len(again.left_over.restored) == 11
    assert host.read(f"{QUEUE}/scheduler") == "mq-deadline"
    restore(host.where)
    assert host.values() == ORIGINAL
    assert restore(host.where).restored == ()


@limits(max_examples=6, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(sorted(WANTED)), st.none()), max_size=3))
def test_any_series_of_tunings_is_undone_by_one_restore(
    tmp_path_factory: pytest.TempPathFactory, series: list[dict[str, None]]
) -> None:
    host = Host(tmp_path_factory.mktemp("host"))
    for names in series:
        host.tune(**{"swappiness": "1", **{name: WANTED[name] for name in names}})
    restore(host.where)
    assert host.values() == ORIGINAL
    assert not host.journal.exists()


# ---------------------------------------------------------------- crashes

MOMENTS = ("before", "in the middle", "before the answer")


@pytest.mark.parametrize("when", MOMENTS)
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_tuning_that_was_cut_off_is_undone(host: Host, at: int, when: str) -> None:
    with pytest.raises(TransportError, match="the connection broke"):
        tune(host.dying(at, when), WANTED, DISK)
    restore(host.where)
    assert host.values() == ORIGINAL
    assert not host.journal.exists()


@pytest.mark.parametrize("when", MOMENTS)
@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_restore_that_was_cut_off_is_finished_by_the_next(host: Host, at: int, when: str) -> None:
    host.tune()
    with pytest.raises(TransportError, match="the connection broke"):
        restore(host.dying(at, when))
    restore(host.where)
    assert host.values() == ORIGINAL
    assert not host.journal.exists()


@pytest.mark.parametrize("when", MOMENTS)
@pytest.mark.parametrize("at", [1, 2, 3, 4, 5, 6, 7])
def test_a_second_tuning_that_was_cut_off_is_undone(host: Host, at: int, when: str) -> None:
    host.tune()
    with pytest.raises(TransportError, match="the connection broke"):
        tune(host.dying(at, when), {"swappiness": "1", "scheduler": "none"}, DISK)
    restore(host.where)
    assert host.values() == ORIGINAL
    assert not host.journal.exists()


@pytest.mark.parametrize("files", range(11))
def test_a_host_that_dies_between_two_files_is_put_right(host: Host, files: int) -> None:
    """The script itself is killed, with all that it started, when it has written some files."""
    kernel, count = (host.bin / "tee").read_text(), host.bin / "count"
    head, _, rest = kernel.partition("\n")
    stop = f'echo x >>{count}\n[ "$(wc -l <{count})" -le {files} ] || kill -9 0\n'
    (host.bin / "tee").write_text(f"{head}\n{stop}{rest}")
    with pytest.raises(TransportError, match="exit code -9"):
        host.tune()
    (host.bin / "tee").write_text(kernel)
    restore(host.where)
    assert host.values() == ORIGINAL
    assert not host.journal.exists()


# ---------------------------------------------------------------- what is left alone


def test_what_somebody_else_has_changed_since_is_left_alone_and_said(host: Host) -> None:
    host.tune(swappiness="1", aslr="0")
    host.write("proc/sys/vm/swappiness", "33")
    restored = restore(host.where)
    assert [entry.setting for entry in restored.restored] == ["aslr"]
    assert [(e.setting, why) for e, why in restored.forgotten] == [
        ("swappiness", "somebody else has set it to 33: it is left so")
    ]
    assert host.read("proc/sys/vm/swappiness") == "33"
    assert not host.journal.exists()


def test_a_reboot_has_put_everything_back(host: Host) -> None:
    host.tune(swappiness="1")
    host.write("proc/sys/kernel/random/boot_id", "boot-2")
    restored = restore(host.where)
    assert [why for _, why in restored.forgotten] == [
        "the host was rebooted since, which put it back"
    ]
    assert host.read("proc/sys/vm/swappiness") == "1"
    assert not host.journal.exists()


def test_a_file_that_went_away_is_forgotten(host: Host) -> None:
    host.tune(read_ahead_kib="128")
    (host.root / QUEUE / "read_ahead_kb").unlink()
    assert [why for _, why in restore(host.where).forgotten] == ["it is not there any more"]
    assert not host.journal.exists()


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/proc/sys/vm/overcommit_memory", "/proc/sys/vm/../vm/swappiness"]
)
def test_a_journal_cannot_make_us_write_elsewhere(host: Host, path: str) -> None:
    host.tune(swappiness="1")
    for other in ("etc/passwd", "proc/sys/vm/overcommit_memory"):
        host.write(other, "as it was")
    host.journal.write_text(host.journal.read_text().replace("/proc/sys/vm/swappiness", path))
    restored = restore(host.where)
    assert [why for _, why in restored.forgotten] == [
        "it is no setting that benchrunner changes: somebody else wrote it"
    ]
    assert host.read("etc/passwd") == host.read("proc/sys/vm/overcommit_memory") == "as it was"


@pytest.mark.parametrize(
    "text",
    ["[]", "{", '{"version": 2, "entries": []}', '{"version": 1, "entries": [{"path": "/x"}]}'],
)
def test_a_journal_that_cannot_be_read_is_an_error(host: Host, text: str) -> None:
    host.journal.write_text(text)
    with pytest.raises(ConfigurationError, match="is no journal of settings that can") as caught:
        restore(host.where)
    assert caught.value.message.startswith(f"{host.journal} on this machine")
    assert caught.value.hint == "look at it, put the settings back by hand, then delete it"
    assert host.journal.exists()


def test_a_value_with_two_lines_is_no_entry(host: Host) -> None:
    host.tune(swappiness="1")
    host.journal.write_text(host.journal.read_text().replace('"60"', '"60\\n/etc\\t\\tx"'))
    with pytest.raises(ConfigurationError, match="no journal of settings"):
        restore(host.where)


def test_what_cannot_be_put_back_stays_in_the_journal(host: Host) -> None:
    host.tune(scheduler="none", swappiness="1")
    text = host.journal.read_text()
    host.journal.write_text(text.replace('"mq-deadline"', '"gone"'))
    restored = restore(host.where)
    ((entry, why),) = restored.failed
    assert entry.path == f"/{QUEUE}/scheduler"
    assert why.endswith("/scheduler: Invalid argument")
    assert pending(host.where) == (entry,)
    assert host.read("proc/sys/vm/swappiness") == "60"


def test_a_value_that_could_not_be_put_back_is_still_the_one_to_come_back(host: Host) -> None:
    host.tune(scheduler="none")
    kernel = (host.bin / "tee").read_text()
    (host.bin / "tee").write_text("#!/bin/sh\necho 'tee: Input/output error' >&2\nexit 1\n")
    assert [entry.setting for entry, _ in restore(host.where).failed] == ["scheduler", "scheduler"]
    (host.bin / "tee").write_text(kernel.replace("mq-deadline)", "bfq)"))
    again = host.tune(scheduler="bfq")
    assert again.in_force == {"scheduler": "bfq"}
    assert [entry.path for entry, _ in again.left_over.failed] == [f"/{QUEUE}/scheduler"]
    (host.bin / "tee").write_text(kernel)
    assert restore(host.where).failed == ()
    assert host.values() == ORIGINAL
    assert not host.journal.exists()


def test_files_with_the_same_change_are_told_together(host: Host) -> None:
    host.write(f"{CPU}/cpu1/cpufreq/scaling_governor", "powersave")
    assert changed(host.tune(governor="performance").changed) == (
        "governor: /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor and 1 more was powersave, "
        "and was set to performance",
    )


# ---------------------------------------------------------------- what the host does not permit


def test_a_value_that_the_kernel_refuses_is_a_taint(host: Host) -> None:
    tuned = host.tune(nr_requests="5000", swappiness="1")
    (taint,) = tuned.taints
    assert taint.name == "untuned-nr-requests"
    assert taint.evidence.startswith(
        f"nr_requests = 5000 was asked for, and /{QUEUE}/nr_requests is 100: tee: "
    )
    assert taint.remedy == (
        f"echo 5000 | sudo tee /{QUEUE}/nr_requests; or run as root, or allow "
        f"`tee /{QUEUE}/nr_requests` in sudoers"
    )
    assert tuned.in_force == {"swappiness": "1"}
    assert [entry.setting for entry in tuned.changed] == ["swappiness"]


def test_a_value_that_the_kernel_rounds_is_undone_at_once(host: Host) -> None:
    tuned = host.tune(read_ahead_kib="130")
    assert [taint.name for taint in tuned.taints] == ["untuned-read-ahead-kib"]
    assert "read_ahead_kb is 128" in tuned.taints[0].evidence
    assert host.values() == ORIGINAL
    restore(host.where)
    assert host.values() == ORIGINAL


def test_what_the_host_does_not_have_is_a_taint_unless_that_is_as_good(host: Host) -> None:
    for path in ("intel_pstate/no_turbo", "cpu0/cpufreq/scaling_governor"):
        (host.root / CPU / path).unlink()
    (host.root / CPU / "cpu1/cpufreq/scaling_governor").unlink()
    (host.root / "proc/sys/kernel/numa_balancing").unlink()
    tuned = host.tune(turbo="off", numa_balancing="off", governor="performance")
    assert tuned.in_force == {"numa_balancing": "off"}
    assert [(taint.name, taint.remedy) for taint in tuned.taints] == [
        ("untuned-turbo", "take turbo out of the host's tune table"),
        ("untuned-governor", "take governor out of the host's tune table"),
    ]
    assert tuned.taints[0].evidence == (
        "turbo = off was asked for, and the host has no "
        "/sys/devices/system/cpu/intel_pstate/no_turbo or /sys/devices/system/cpu/cpufreq/boost"
    )


@pytest.mark.skipif(os.getuid() != 0, reason="wants root, to become somebody else")
def test_without_permission_nothing_is_pretended(host: Host) -> None:
    class Nobody(Kernel):
        def run(self, argv: Sequence[str], **options: Any) -> Completed:
            user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
            return super().run([*user, *argv], **options)

    for folder in host.work.parents:  # as many as the suite's processes have folders of their own
        if folder == Path(tempfile.gettempdir()):
            break
        folder.chmod(folder.stat().st_mode | 0o055)
    host.work.chmod(0o777)
    (host.root / "proc/sys/kernel/randomize_va_space").chmod(0o600)
    (host.bin / "sudo").write_text("#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
    (host.bin / "sudo").chmod(0o755)
    where = replace(host.where, transport=Nobody(host.bin))
    tuned = tune(where, {"governor": "performance", "aslr": "0"}, DISK)
    assert [taint.evidence for taint in tuned.taints] == [
        f"governor = performance was asked for, and /{CPU}/cpu0/cpufreq/scaling_governor is "
        "powersave: sudo: a password is required (and 1 more)",
        "aslr = 0 was asked for, and /proc/sys/kernel/randomize_va_space is not readable",
    ]
    assert tuned.changed == ()
    restore(where)
    assert host.values() == ORIGINAL
    assert not host.journal.exists()


def test_sudo_is_used_where_a_file_is_not_ours(host: Host) -> None:
    if os.getuid() == 0:
        (host.bin / "id").write_text("#!/bin/sh\necho 1000\n")
        (host.bin / "id").chmod(0o755)
        script = '#!/bin/sh\n[ "$1" = -n ] && shift\necho "$*" >>"$0.log"\nexec "$@"\n'
        (host.bin / "sudo").write_text(script)
        (host.bin / "sudo").chmod(0o755)
        (host.bin / "systemctl").write_text(SYSTEMCTL.format(state=host.bin / "state"))
        (host.bin / "systemctl").chmod(0o755)
        (host.bin / "state").write_text("active\n")
        host.tune(irq_balance="off")
        assert (host.bin / "sudo.log").read_text() == "systemctl stop irqbalance\n"


SYSTEMCTL = """#!/bin/sh
case $1 in
  show) echo loaded ;;
  is-active) cat {state} ;;
  stop) echo inactive >{state} ;;
  start) echo active >{state} ;;
esac
"""


def test_a_service_is_stopped_and_started_again(host: Host) -> None:
    (host.bin / "systemctl").write_text(SYSTEMCTL.format(state=host.bin / "state"))
    (host.bin / "systemctl").chmod(0o755)
    (host.bin / "state").write_text("active\n")
    tuned = host.tune(irq_balance="off")
    assert tuned.in_force == {"irq_balance": "off"}
    assert (host.bin / "state").read_text() == "inactive\n"
    restore(host.where)
    assert (host.bin / "state").read_text() == "active\n"


def test_a_service_that_systemd_does_not_know_of_is_a_taint_when_it_runs(host: Host) -> None:
    (host.bin / "systemctl").write_text("#!/bin/sh\nexit 1\n")
    (host.bin / "systemctl").chmod(0o755)
    assert host.tune(irq_balance="off").in_force == {"irq_balance": "off"}
    host.write("proc/4711/comm", "irqbalance")
    (taint,) = host.tune(irq_balance="off").taints
    assert taint.evidence.endswith("and service:irqbalance is unmanaged")
    assert taint.remedy == "sudo systemctl stop irqbalance"


def test_a_journal_that_cannot_be_written_stops_everything(host: Host) -> None:
    where = replace(host.where, work_dir=str(host.work / "not" / "there"))
    with pytest.raises(TransportError, match=r"settings of this machine: journal with .*/there"):
        tune(where, WANTED, DISK)
    assert host.values() == ORIGINAL


# ---------------------------------------------------------------- names, values, devices


@pytest.mark.parametrize(
    ("wanted", "message", "hint"),
    [
        ({"govenor": "performance"},
         "hosts/a.toml: tune: there is no setting 'govenor'; did you mean 'governor'?", "one of "),
        ({"turbo": "0"}, "hosts/a.toml: tune.turbo: '0' is not one of its values", "on, off"),
        ({"swappiness": "201"},
         "hosts/a.toml: tune.swappiness: '201' is not one of its values", "0 to 200"),
        ({"governor": "a\nb"},
         "hosts/a.toml: tune.governor: 'a\\nb' is not one of its values", "performance"),
    ],
)  # fmt: skip
def test_bad_names_and_values(wanted: dict[str, str], message: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_settings(wanted, "hosts/a.toml: tune")
    assert caught.value.message == message
    assert caught.value.hint.startswith(hint)


def test_nothing_is_touched_when_a_name_is_wrong(host: Host) -> None:
    with pytest.raises(ConfigurationError, match="there is no setting 'bogus'"):
        host.tune(bogus="1")
    assert host.kernel.calls == 0


def test_devices_below_a_directory() -> None:
    raid = {"device": {"name": "md0", "stack": ["md0", "a", "b"], "disks": ["a", "b"], "disk": "a"}}
    assert block_devices(raid) == BlockDevices(("a", "b"), ("md0", "a", "b"))
    plain = {"device": {"name": "vda", "stack": None, "disks": None, "disk": "vda"}}
    assert block_devices(plain) == BlockDevices(("vda",), ("vda",))
    assert block_devices({"device": None}) == BlockDevices()


def test_only_the_named_devices_are_touched(host: Host) -> None:
    other = "sys/class/block/sdy/queue/read_ahead_kb"
    host.write(other, "4096")
    host.tune(read_ahead_kib="128")
    assert host.read(other) == "4096"
    evil = BlockDevices(("../../../etc",), ("*",))
    (taint,) = tune(host.where, {"read_ahead_kib": "128"}, evil).taints
    assert taint.name == "untuned-read-ahead-kib"


@given(st.text(), st.sampled_from(sorted(SETTINGS)))
def test_no_path_outside_the_table_is_a_place(path: str, name: str) -> None:
    assert not settings.is_place_of(name, path)
    assert not settings.is_place_of(path, "/proc/sys/vm/swappiness")


# ---------------------------------------------------------------- this machine

SWAPPINESS = Path("/proc/sys/vm/swappiness")


def test_what_is_read_is_what_is_there(tmp_path: Path) -> None:
    """The shell's own ``read`` sees only the first digit of some files of /proc/sys."""
    now = SWAPPINESS.read_text().strip()
    tuned = tune(HostSettings(HOST, str(tmp_path)), {"swappiness": now}, BlockDevices())
    assert tuned.in_force == {"swappiness": now}
    assert tuned.changed == ()


@pytest.mark.skipif(not os.access(SWAPPINESS, os.W_OK), reason="wants to write /proc/sys: root")
def test_a_setting_of_this_machine(tmp_path: Path) -> None:
    before = SWAPPINESS.read_text().strip()
    other = str(int(before) + 1 if int(before) < 100 else int(before) - 1)
    where = HostSettings(HOST, str(tmp_path))
    try:
        tuned = tune(where, {"swappiness": other}, BlockDevices())
        assert SWAPPINESS.read_text().strip() == other
        assert [(entry.old, entry.new) for entry in tuned.changed] == [(before, other)]
        assert len(restore(where).restored) == 1
        assert SWAPPINESS.read_text().strip() == before
    finally:
        SWAPPINESS.write_text(before)
    assert list(tmp_path.iterdir()) == []
