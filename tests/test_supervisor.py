"""The supervisor, `native/supervisor`: real processes, real signals, real files."""

import ctypes
import json
import os
import platform
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parents[1] / "native" / "supervisor"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion"]
BUILDS = {
    "plain": ["-O2"],
    "sanitized": ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "without_children_files": ["-O0", "-DBR_TEST_WITHOUT_CHILDREN_FILES"],
}
PATIENCE_S = 20.0
RT_SIGACTION = 13 if platform.machine() == "x86_64" else 134
"""Number of the system call: x86-64 has its own, newer architectures share one."""
ODD = "a b'c\"d\\e\n\té\u20ac\U0001f600\udcff$(x)"


def words(text: str) -> list[str]:
    return text.split()


STATUS_KEYS = words("""
    state exit_code signal signal_name error wall_s started_at ended_at user_s sys_s maxrss_kib
    faults_minor faults_major in_blocks out_blocks ctx_voluntary ctx_involuntary read_bytes
    write_bytes rchar wchar du_before_kib du_peak_kib du_after_kib leftover_processes oom_killed
    supervisor steal_s boot_id
""")
NEVER_FALLING = words("""
    utime_s stime_s ctx_voluntary ctx_involuntary rchar wchar syscr syscw read_bytes write_bytes
    cancelled_write_bytes faults_minor faults_major
""")

# A shell that ignores SIGTERM and never ends; writes its pid to the file in $1.
STUBBORN = "trap '' TERM; echo $$ > \"$1\"; while :; do sleep 0.05; done"


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The binary in every build, compiled side by side."""
    folder = tmp_path_factory.mktemp("build")
    compiler = os.environ.get("CC", "cc")
    sources = sorted(str(path) for path in SOURCE.glob("*.c"))
    running = {
        name: subprocess.Popen(
            [compiler, "-std=c17", *WARNINGS, *flags, "-o", str(folder / name), *sources],
            stderr=subprocess.PIPE,
            text=True,
        )
        for name, flags in BUILDS.items()
    }
    for name, process in running.items():
        _, messages = process.communicate()
        (folder / f"{name}.messages").write_text(messages)
        assert process.returncode == 0, f"{name}: {messages}"
    return {name: folder / name for name in BUILDS}


@dataclass
class Supervisor:
    """One build of the binary, and the runs that a test starts with it."""

    binary: Path
    reports: Path  # where the sanitizers write
    runs: list[Path] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        log = f"log_path={self.reports}/report"
        return {**os.environ, "ASAN_OPTIONS": f"{log}:detect_leaks=1", "UBSAN_OPTIONS": log}

    def command(self, verb: str, run: Path, *options: str) -> list[str]:
        return [str(self.binary), verb, "--run-dir", str(run), *options]

    def call(self, *arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
        how = {"env": self.environment, "timeout": PATIENCE_S, **how}
        return subprocess.run(
            [str(self.binary), *arguments],
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
            **how,
        )

    def start(
        self, run: Path, argv: list[str], *options: str, **how: Any
    ) -> subprocess.CompletedProcess[str]:
        self.runs.append(run)
        return self.call(*self.command("start", run, *options)[1:], "--", *argv, **how)

    def state(self, run: Path) -> dict[str, Any]:
        return self._line(self.call("state", "--run-dir", str(run)))

    def stop(self, run: Path, *options: str) -> dict[str, Any]:
        return self._line(self.call("stop", "--run-dir", str(run), *options))

    def run(self, run: Path, argv: list[str], *options: str, **how: Any) -> dict[str, Any]:
        """Starts a command and returns the status of its end."""
        started = self.start(run, argv, *options, **how)
        assert (started.returncode, started.stderr) == (0, "")
        return self.end(run)

    def end(self, run: Path) -> dict[str, Any]:
        wait_until(lambda: (run / "status.json").exists())
        return read_json(run / "status.json")

    @staticmethod
    def _line(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("\n") == 1
        line: dict[str, Any] = json.loads(done.stdout)
        return line

    def leave(self) -> None:
        """Ends what a test has left, and fails it for what a sanitizer has found."""
        for run in self.runs:
            self.call("stop", "--run-dir", str(run), "--grace", "0")
        reports = [path.read_text() for path in self.reports.glob("report*")]
        assert reports == []


def prepare(builds: dict[str, Path], name: str, tmp_path: Path) -> Iterator[Supervisor]:
    reports = tmp_path / "reports"
    reports.mkdir()
    supervisor = Supervisor(builds[name], reports)
    yield supervisor
    supervisor.leave()


@pytest.fixture
def supervisor(builds: dict[str, Path], tmp_path: Path) -> Iterator[Supervisor]:
    """The build that people use."""
    yield from prepare(builds, "plain", tmp_path)


@pytest.fixture(params=list(BUILDS))
def any_supervisor(
    builds: dict[str, Path], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Supervisor]:
    """Every build in turn."""
    yield from prepare(builds, request.param, tmp_path)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def read_json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_bytes())
    return content


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def marked_processes(run: Path) -> list[int]:
    """All processes of a run, wherever they are, by their environment."""
    mark = b"BENCHRUNNER_RUN_DIR=" + os.fsencode(run.resolve())
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if mark in environment and is_alive(int(folder.name)):
            found.append(int(folder.name))
    return found


def read_samples(run: Path) -> list[dict[str, str]]:
    content = (run / "samples").read_text()
    assert content.endswith("\n")
    header, *lines = [line.split("\t") for line in content.splitlines()]
    return [dict(zip(header, line, strict=True)) for line in lines]


def numbers(samples: list[dict[str, str]], column: str) -> list[float]:
    return [float(sample[column]) for sample in samples if sample[column] != ""]


def shell(script: str, *arguments: str) -> list[str]:
    return ["sh", "-c", script, "sh", *arguments]


def python(script: str, *arguments: str) -> list[str]:
    return [sys.executable, "-S", "-c", script, *arguments]


def burn(cpu_s: float) -> str:
    return f"import time\nwhile time.process_time() < {cpu_s}: pass\n"


@pytest.mark.parametrize("name", BUILDS)
def test_it_compiles_without_warnings(builds: dict[str, Path], name: str) -> None:
    assert builds[name].with_suffix(".messages").read_text() == ""


# --- How a command ends. ---


def test_a_normal_run_leaves_its_output_and_a_status(
    any_supervisor: Supervisor, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    before = time.time()
    status = any_supervisor.run(run, shell("echo out; echo err >&2; echo more"))
    assert (run / "stdout").read_text() == "out\nmore\n"
    assert (run / "stderr").read_text() == "err\n"
    assert (status["state"], status["exit_code"], status["signal"]) == ("exited", 0, None)
    assert status["error"] is None
    assert before - 1 <= status["started_at"] <= status["ended_at"] <= time.time() + 1
    assert status["wall_s"] > 0
    assert status["boot_id"] == read_json(run / "command.json")["boot_id"]
    names = sorted(path.name for path in run.iterdir())
    assert names == sorted(
        words("child.json command.json samples status.json stderr stdout supervisor.log")
    )


def test_start_and_state_name_the_processes(any_supervisor: Supervisor, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert any_supervisor.state(run) == {"state": "absent"}
    run.mkdir()
    assert any_supervisor.state(run) == {"state": "absent"}
    started = json.loads(any_supervisor.start(run, ["sleep", "60"]).stdout)
    stat = Path(f"/proc/{started['pid']}/stat").read_text().rpartition(")")[2].split()
    assert int(stat[19]) == started["start_time"]
    child = read_json(run / "child.json")
    state = any_supervisor.state(run)
    assert state["state"] == "running"
    assert (state["pid"], state["start_time"]) == (started["pid"], started["start_time"])
    assert state["child_pid"] == child["pid"]
    assert Path(f"/proc/{child['pid']}/cmdline").read_bytes() == b"sleep\x0060\x00"
    assert os.getsid(child["pid"]) == child["pid"]
    assert (state["stdout_bytes"], state["stderr_bytes"]) == (0, 0)
    assert state["samples_bytes"] == (run / "samples").stat().st_size
    assert "status" not in state
    any_supervisor.stop(run)
    state = any_supervisor.state(run)
    assert state["state"] == "finished"
    assert state["status"] == read_json(run / "status.json")


def test_the_exit_code_is_recorded(supervisor: Supervisor, tmp_path: Path) -> None:
    status = supervisor.run(tmp_path / "run", shell("exit 37"))
    assert (status["state"], status["exit_code"], status["signal"]) == ("exited", 37, None)


def test_a_death_by_signal_is_recorded(supervisor: Supervisor, tmp_path: Path) -> None:
    status = supervisor.run(tmp_path / "run", shell("ulimit -c 0; kill -SEGV $$"))
    assert (status["state"], status["exit_code"]) == ("exited", None)
    assert (status["signal"], status["signal_name"]) == (11, "SIGSEGV")
    status = supervisor.run(tmp_path / "killed", shell("kill -KILL $$"))
    assert (status["state"], status["signal_name"]) == ("exited", "SIGKILL")
    assert status["oom_killed"] is False


def test_a_command_that_cannot_be_executed_has_failed(
    any_supervisor: Supervisor, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    status = any_supervisor.run(run, ["/no/such"])
    assert status["state"] == "failed"
    assert status["error"] == "cannot execute /no/such: No such file or directory"
    assert (status["exit_code"], status["signal"], status["wall_s"]) == (None, None, None)
    assert any_supervisor.state(run)["state"] == "finished"
    status = any_supervisor.run(tmp_path / "2", ["true"], "--cwd", "/no/such")
    assert status["error"] == "cannot change to directory /no/such: No such file or directory"
    plain_file = tmp_path / "file"
    plain_file.touch()
    status = any_supervisor.run(tmp_path / "3", [str(plain_file)])
    assert status["error"] == f"cannot execute {plain_file}: Permission denied"


def test_the_status_of_a_failure_is_there_when_start_returns(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert supervisor.start(run, ["/no/such"]).returncode == 0
    assert (run / "status.json").exists()


# --- Starting once. ---


def test_a_step_is_never_started_twice(any_supervisor: Supervisor, tmp_path: Path) -> None:
    run = tmp_path / "run"
    any_supervisor.run(run, shell("echo first"))
    files = {path: path.read_bytes() for path in run.iterdir()}
    again = any_supervisor.start(run, shell("echo second"))
    assert (again.returncode, again.stdout) == (3, "")
    assert again.stderr == (
        f"br-supervise: {run} already holds a command.json: a step is started only once\n"
    )
    assert {path: path.read_bytes() for path in run.iterdir()} == files


def test_of_many_starts_at_once_one_wins(supervisor: Supervisor, tmp_path: Path) -> None:
    run, ran = tmp_path / "run", tmp_path / "ran"
    command = [*supervisor.command("start", run), "--", *shell('echo ran >> "$1"', str(ran))]
    starts = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(8)
    ]
    assert sorted(start.wait(PATIENCE_S) for start in starts) == [0] + 7 * [3]
    assert supervisor.end(run)["state"] == "exited"
    assert ran.read_text() == "ran\n"
    assert not list(run.glob("command.json.*"))


def test_the_parent_of_the_run_folder_must_exist(supervisor: Supervisor, tmp_path: Path) -> None:
    run = tmp_path / "no" / "run"
    refused = supervisor.start(run, ["true"])
    assert refused.returncode == 1
    assert refused.stderr == (
        f"br-supervise: cannot create directory {run}: No such file or directory\n"
    )


# --- Ending a tree. ---


def test_the_time_limit_ends_the_whole_tree(any_supervisor: Supervisor, tmp_path: Path) -> None:
    run, inner, outer = tmp_path / "run", tmp_path / "inner", tmp_path / "outer"
    script = f'setsid sh -c "$3" sh "$2" & {STUBBORN}'
    argv = shell(script, str(outer), str(inner), STUBBORN)
    status = any_supervisor.run(run, argv, "--timeout", "0.4", "--grace", "0.2")
    assert (status["state"], status["signal_name"]) == ("timeout", "SIGKILL")
    assert status["wall_s"] >= 0.6
    assert not is_alive(int(outer.read_text()))
    assert not is_alive(int(inner.read_text()))
    assert marked_processes(run) == []


def test_a_command_may_end_itself_within_the_grace(supervisor: Supervisor, tmp_path: Path) -> None:
    argv = shell("trap 'echo bye; exit 5' TERM; while :; do sleep 0.02; done")
    status = supervisor.run(tmp_path / "run", argv, "--timeout", "0.2", "--grace", "60")
    assert (status["state"], status["exit_code"], status["signal"]) == ("timeout", 5, None)
    assert (tmp_path / "run" / "stdout").read_text() == "bye\n"


def test_leftovers_are_ended_and_counted(any_supervisor: Supervisor, tmp_path: Path) -> None:
    run = tmp_path / "run"
    argv = shell('setsid sh -c "$1" sh "$2" & (sleep 60 &) ; exit 4', STUBBORN, str(tmp_path / "p"))
    status = any_supervisor.run(run, argv, "--grace", "0.2")
    assert (status["state"], status["exit_code"]) == ("exited", 4)
    assert status["leftover_processes"] >= 2  # the sleep of the stubborn shell comes and goes
    assert status["wall_s"] < status["ended_at"] - status["started_at"] + 0.1
    assert marked_processes(run) == []


def test_a_helper_that_ends_right_after_the_command_is_no_leftover(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    status = supervisor.run(tmp_path / "run", shell("sleep 0.05 & exit 0"))
    assert status["leftover_processes"] == 0


def test_stop_ends_a_running_tree(any_supervisor: Supervisor, tmp_path: Path) -> None:
    run, pid_file = tmp_path / "run", tmp_path / "pid"
    argv = shell('setsid sh -c "$1" sh "$2" & sleep 60', STUBBORN, str(pid_file))
    any_supervisor.start(run, argv, "--grace", "60")
    wait_until(pid_file.exists)
    stopped = any_supervisor.stop(run, "--grace", "0.1")  # not the 60 s of the run
    assert stopped["state"] == "finished"
    assert stopped["status"]["state"] == "killed"
    assert stopped["status"]["signal_name"] == "SIGTERM"
    assert marked_processes(run) == []
    assert any_supervisor.stop(run) == stopped
    assert any_supervisor.stop(tmp_path / "never") == {"state": "absent"}


def test_stop_reaches_a_stopped_process(supervisor: Supervisor, tmp_path: Path) -> None:
    run = tmp_path / "run"
    supervisor.start(run, shell("kill -STOP $$"), "--grace", "60")
    child = read_json(run / "child.json")["pid"]
    wait_until(lambda: ") T " in Path(f"/proc/{child}/stat").read_text())
    assert supervisor.stop(run)["status"]["signal_name"] == "SIGTERM"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_supervisor_stops_the_run(
    supervisor: Supervisor, tmp_path: Path, number: signal.Signals
) -> None:
    run = tmp_path / "run"
    pid = json.loads(supervisor.start(run, ["sleep", "60"]).stdout)["pid"]
    os.kill(pid, signal.SIGHUP)  # ignored
    os.kill(pid, number)
    assert supervisor.end(run)["state"] == "killed"


# --- What dies around a run. ---


def test_a_run_outlives_its_controller(supervisor: Supervisor, tmp_path: Path) -> None:
    run, go = tmp_path / "run", tmp_path / "go"
    supervisor.runs.append(run)
    argv = shell('while [ ! -e "$1" ]; do sleep 0.02; done; echo done; exit 6', str(go))
    controller = python(
        "import os, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
        "os.kill(os.getpid(), 9)\n",
        *supervisor.command("start", run),
        "--",
        *argv,
    )
    killed = subprocess.run(controller, check=False, start_new_session=True)
    assert killed.returncode == -signal.SIGKILL
    assert supervisor.state(run)["state"] == "running"
    go.touch()
    assert supervisor.end(run)["exit_code"] == 6
    assert (run / "stdout").read_text() == "done\n"


def lose_supervisor(supervisor: Supervisor, run: Path, *options: str) -> int:
    """Kills the supervisor of a run that has an orphan then; returns its pid."""
    pid_file = run.parent / "orphan"
    argv = shell('setsid sh -c "$1" sh "$2" & sleep 60', STUBBORN, str(pid_file))
    pid = json.loads(supervisor.start(run, argv, *options).stdout)["pid"]
    wait_until(lambda: pid_file.exists() and pid_file.read_text() != "")
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid))
    return int(pid_file.read_text())


def test_a_killed_supervisor_is_a_lost_run_and_stop_ends_the_orphans(
    any_supervisor: Supervisor, tmp_path: Path
) -> None:
    run = tmp_path / ODD
    other = tmp_path / "other"  # has the same id, but is another run
    any_supervisor.start(other, ["sleep", "60"], "--run-id", "same id")
    orphan = lose_supervisor(any_supervisor, run, "--run-id", "same id", "--grace", "0.1")
    child = read_json(run / "child.json")["pid"]
    wait_until(lambda: not is_alive(child))  # it dies with its supervisor
    state = any_supervisor.state(run)
    assert state["state"] == "lost"
    assert state["reason"] == "the supervisor is gone and has left no status.json"
    assert is_alive(orphan)
    stopped = any_supervisor.stop(run)
    assert stopped["state"] == "finished"
    assert stopped["status"]["state"] == "lost"
    assert stopped["status"]["error"] == state["reason"]
    assert stopped["status"]["leftover_processes"] >= 1
    assert stopped["status"]["exit_code"] is None
    assert list(stopped["status"]) == STATUS_KEYS
    assert not is_alive(orphan)
    assert marked_processes(run) == []
    assert any_supervisor.stop(run) == stopped
    assert any_supervisor.state(other)["state"] == "running"


def test_a_reboot_loses_the_run(supervisor: Supervisor, tmp_path: Path) -> None:
    run = tmp_path / "run"
    supervisor.start(run, ["sleep", "60"])
    command = read_json(run / "command.json")
    (run / "command.json").write_text(json.dumps({**command, "boot_id": "0-0"}, indent=2))
    state = supervisor.state(run)
    assert (state["state"], state["reason"]) == ("lost", "the host was rebooted")
    assert is_alive(state["pid"])  # whatever has this pid now is not the supervisor

    moved = {**command, "boot_id": "0-0", "hostname": "elsewhere"}
    (run / "command.json").write_text(json.dumps(moved))
    assert supervisor.state(run)["reason"] == "the run was started on another host"
    refused = supervisor.call("stop", "--run-dir", str(run))
    assert refused.returncode == 1
    assert refused.stderr == (
        "br-supervise: the run was started on another host: run stop on elsewhere\n"
    )
    (run / "command.json").write_text(json.dumps(command))
    assert supervisor.stop(run)["status"]["state"] == "killed"


def test_stop_records_a_run_lost_by_a_reboot(supervisor: Supervisor, tmp_path: Path) -> None:
    run = tmp_path / "run"
    orphan = lose_supervisor(supervisor, run)
    command = read_json(run / "command.json")
    (run / "command.json").write_text(json.dumps({**command, "boot_id": "0-0"}))
    stopped = supervisor.stop(run)
    assert stopped["status"]["error"] == "the host was rebooted"
    assert stopped["status"]["boot_id"] == "0-0"
    assert stopped["status"]["started_at"] == pytest.approx(time.time(), abs=60)
    assert is_alive(orphan)  # nothing of the run can be left, so nothing is looked for
    os.kill(orphan, signal.SIGKILL)


def test_a_damaged_command_file_is_a_lost_run(any_supervisor: Supervisor, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for content in ['{"supervisor": {"pid": 1', "", "[]", '{"supervisor": "\\', '{"a":{}}}', "{,}"]:
        (run / "command.json").write_text(content)
        state = any_supervisor.state(run)
        assert (state["state"], state["reason"]) == ("lost", "command.json cannot be read")
    assert any_supervisor.stop(run)["status"]["state"] == "lost"


# --- What is measured. ---


def test_samples_are_complete_and_plausible(any_supervisor: Supervisor, tmp_path: Path) -> None:
    run, size = tmp_path / "run", 3_000_000
    script = (
        "import os, sys, threading, time\n"
        "memory = bytearray(40_000_000)\n"
        f"with open(sys.argv[1], 'wb') as f: f.write(memory[:{size}]); os.fsync(f.fileno())\n"
        f"with open(sys.argv[1], 'rb') as f: f.read()\n"
        "for _ in range(20): time.sleep(0.001)\n"
        "threading.Thread(target=time.sleep, args=(0.2,)).start()\n" + burn(0.3)
    )
    argv = python(script, str(tmp_path / "data"))
    status = any_supervisor.run(run, argv, "--interval", "0.05", "--du", str(tmp_path))
    samples = read_samples(run)
    last = samples[-1]

    times = numbers(samples, "t_s")
    assert len(times) == len(samples) == status["supervisor"]["samples"]
    assert len(samples) >= 4
    slots = [int(t / 0.05 + 0.01) for t in times[:-1]]
    assert slots == sorted(set(slots))  # at most one per interval, none before its time
    assert times == sorted(times)
    assert times[-1] == pytest.approx(status["wall_s"], abs=0.5)

    cpu = float(last["utime_s"]) + float(last["stime_s"])
    assert 0.28 <= cpu <= status["wall_s"] + 0.02
    assert cpu == pytest.approx(status["user_s"] + status["sys_s"], abs=0.05)
    assert max(numbers(samples, "rss_kib")) >= 40_000
    assert max(numbers(samples, "threads")) == 2
    assert max(numbers(samples, "procs")) == 1
    assert (last["procs"], last["rss_kib"]) == ("0", "")
    assert int(last["ctx_voluntary"]) >= 20
    assert int(last["rchar"]) >= size
    assert int(last["wchar"]) >= size
    assert int(last["syscr"]) > 0
    assert int(last["syscw"]) > 0
    assert int(last["faults_minor"]) >= 9_000
    for column in NEVER_FALLING:
        assert numbers(samples, column) == sorted(numbers(samples, column)), column
    assert {key: status[key] for key in ("rchar", "wchar", "read_bytes", "write_bytes")} == {
        key: int(last[key]) for key in ("rchar", "wchar", "read_bytes", "write_bytes")
    }
    assert all(sample["dev_reads"] == "" for sample in samples)  # no --device-of


def test_machine_columns_say_what_proc_says(supervisor: Supervisor, tmp_path: Path) -> None:
    run = tmp_path / "run"
    supervisor.run(run, ["true"])
    (first, *_, last) = read_samples(run)
    meminfo = dict(re.findall(r"(\w+):\s+(\d+)", Path("/proc/meminfo").read_text()))
    assert int(last["mem_free_kib"]) <= int(meminfo["MemTotal"])
    assert int(last["mem_available_kib"]) <= int(meminfo["MemTotal"])
    assert int(last["swap_free_kib"]) <= int(meminfo["SwapTotal"])
    ticks = [int(word) for word in Path("/proc/stat").read_text().split()[1:9]]
    for name, now in zip(
        words("user nice system idle iowait irq softirq steal"), ticks, strict=True
    ):
        assert int(first[f"cpu_{name}_ticks"]) <= int(last[f"cpu_{name}_ticks"]) <= now + 1
    assert int(last["procs_running"]) >= 1
    assert re.fullmatch(r"\d+\.\d\d", last["load1"])
    try:
        pressure = Path("/proc/pressure/io").read_text()
    except OSError:  # compiled out, or switched off
        pressure = ""
    for name in ("cpu_some", "mem_some", "mem_full", "io_some", "io_full"):
        assert (last[f"psi_{name}_us"] == "") is (pressure == "")


def test_device_columns_are_of_the_device_or_empty(supervisor: Supervisor, tmp_path: Path) -> None:
    run = tmp_path / "run"
    supervisor.run(run, ["true"], "--device-of", str(tmp_path / "not" / "yet"))
    device = tmp_path.stat().st_dev
    number = [str(os.major(device)), str(os.minor(device))]
    lines = [line.split() for line in Path("/proc/diskstats").read_text().splitlines()]
    known = [line for line in lines if line[:2] == number]
    recorded = read_json(run / "command.json")["device"]
    assert recorded["directory"] == str(tmp_path / "not" / "yet")
    assert [str(recorded["major"]), str(recorded["minor"])] == number
    last = read_samples(run)[-1]
    columns = [name for name in last if name.startswith("dev_")]
    if known:
        assert recorded["name"] == known[0][2]
        for column, field_number in (("dev_reads", 3), ("dev_read_sectors", 5), ("dev_writes", 7)):
            assert 0 <= int(last[column]) <= int(known[0][field_number])
        assert int(last["dev_write_sectors"]) <= int(known[0][9])
        assert "" not in [last[column] for column in columns]
    else:
        assert {last[column] for column in columns} == {""}

    supervisor.run(tmp_path / "2", ["true"], "--device-of", "/proc")
    last = read_samples(tmp_path / "2")[-1]
    assert {last[column] for column in columns} == {""}
    assert read_json(tmp_path / "2" / "command.json")["device"]["name"] is None


def test_counters_of_a_changing_tree_never_fall(any_supervisor: Supervisor, tmp_path: Path) -> None:
    run = tmp_path / "run"
    script = "for i in 1 2 3 4 5 6 7 8; do head -c 400000 /dev/zero | wc -c; (sleep 0.03 &) ; done"
    status = any_supervisor.run(run, shell(script), "--interval", "0.01")
    samples = read_samples(run)
    for column in NEVER_FALLING:
        assert numbers(samples, column) == sorted(numbers(samples, column)), column
    assert status["rchar"] >= 8 * 2 * 400_000
    assert int(samples[-1]["rchar"]) >= 8 * 2 * 400_000
    assert status["leftover_processes"] == 0


def test_usage_sums_the_whole_tree(any_supervisor: Supervisor, tmp_path: Path) -> None:
    work = burn(0.15)
    adopted = f"import os\nif os.fork() == 0:\n  os.setsid()\n  {work!r}\n  exec({work!r})\n"
    large = "memory = bytearray(60_000_000)\n" + work
    script = '"$0" -S -c "$1"; "$0" -S -c "$2"; (exec "$0" -S -c "$3" &); sleep 0.1; wait'
    argv = ["sh", "-c", script, sys.executable, work, large, adopted]
    status = any_supervisor.run(tmp_path / "run", argv)
    cpu = status["user_s"] + status["sys_s"]
    assert cpu >= 0.3  # of the two that were waited for
    assert status["maxrss_kib"] >= 60_000
    assert status["faults_minor"] >= 14_000
    assert status["ctx_voluntary"] >= 3
    assert status["out_blocks"] >= 0
    assert status["steal_s"] is None or status["steal_s"] >= 0


def test_bytes_and_calls_are_counted_exactly(any_supervisor: Supervisor, tmp_path: Path) -> None:
    data, times = tmp_path / "data", 50
    data.write_bytes(bytes(1000))
    script = (
        "import os, sys, time\n"
        "def work(times):\n"
        "    for _ in range(times):\n"
        "        os.lseek(f, 0, 0); os.read(f, 1000); os.write(1, b'x' * 700)\n"
        "        time.sleep(0.0005)\n"
        "f = os.open(sys.argv[1], os.O_RDONLY)\n"
        "work(int(sys.argv[2]))\n"
        "if os.fork() == 0:\n"  # waited for by the command
        "    work(int(sys.argv[2])); os._exit(0)\n"
        "os.wait()\n"
        "if os.fork() == 0:\n"  # and by the supervisor, which adopts it
        "    if os.fork() == 0:\n"
        "        work(int(sys.argv[2]))\n"
        "    os._exit(0)\n"
        "os.wait(); time.sleep(0.3)\n"
    )
    idle = any_supervisor.run(tmp_path / "0", python(script, str(data), "0"))
    busy = any_supervisor.run(tmp_path / "1", python(script, str(data), str(times)))
    assert busy["wchar"] - idle["wchar"] == 3 * times * 700
    assert busy["rchar"] - idle["rchar"] == pytest.approx(3 * times * 1000, abs=200)
    last = {run: read_samples(tmp_path / run)[-1] for run in "01"}
    assert int(last["1"]["syscw"]) - int(last["0"]["syscw"]) == 3 * times
    assert int(last["1"]["syscr"]) - int(last["0"]["syscr"]) == 3 * times
    assert int(last["1"]["ctx_voluntary"]) >= 2 * times  # no look saw the first child
    assert busy["ctx_voluntary"] - idle["ctx_voluntary"] >= 3 * times - 20


def test_an_adopted_process_is_counted(supervisor: Supervisor, tmp_path: Path) -> None:
    marker = tmp_path / "done"
    worker = burn(0.2) + "open(__import__('sys').argv[1], 'w').close()\n"
    script = '(setsid "$0" -S -c "$1" "$2" &); while [ ! -e "$2" ]; do sleep 0.02; done; sleep 0.05'
    argv = ["sh", "-c", script, sys.executable, worker, str(marker)]
    status = supervisor.run(tmp_path / "run", argv)
    assert status["user_s"] + status["sys_s"] >= 0.2
    samples = read_samples(tmp_path / "run")
    assert float(samples[-1]["utime_s"]) + float(samples[-1]["stime_s"]) >= 0.18


def make_files(root: Path) -> None:
    (root / "deep" / "er" / ODD).mkdir(parents=True)
    (root / "deep" / "file").write_bytes(bytes(123_456))
    (root / "deep" / "er" / ODD / "file").write_bytes(bytes(5_000))
    os.link(root / "deep" / "file", root / "link")
    os.link(root / "deep" / "file", root / "deep" / "er" / "link")
    (root / "symbolic").symlink_to("/usr")
    (root / "dangling").symlink_to("nowhere")
    with (root / "sparse").open("wb") as sparse:
        sparse.truncate(50_000_000)
    (root / "empty").mkdir()
    for number in range(300):
        (root / "empty" / str(number)).write_bytes(b"x")
        os.link(root / "empty" / str(number), root / f"{number}")


def test_du_equals_du(any_supervisor: Supervisor, tmp_path: Path) -> None:
    make_files(tmp_path / "a")
    (tmp_path / "b").mkdir()
    os.link(tmp_path / "a" / "link", tmp_path / "b" / "other")
    os.sync()
    for names in ("a", "b", "a b", "b a", "a a", "a/deep a", "a a/deep", "a/link", "a/empty b/"):
        ours = any_supervisor.call("du", *names.split(), cwd=tmp_path)
        theirs = subprocess.run(
            ["du", "-s", "-k", *names.split()],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert (ours.returncode, ours.stdout, ours.stderr) == (0, theirs.stdout, ""), names
    missing = any_supervisor.call("du", "none", "b", cwd=tmp_path)
    assert missing.returncode == 1
    assert missing.stderr == "br-supervise: cannot read none: No such file or directory\n"
    assert missing.stdout.endswith("\tb\n")


def test_disk_usage_of_a_run(any_supervisor: Supervisor, tmp_path: Path) -> None:
    run, data, late = tmp_path / "run", tmp_path / "data", tmp_path / "late"
    data.mkdir()
    late.mkdir()
    (late / "kept").write_bytes(bytes(40_000))
    script = (
        "head -c 8000000 /dev/zero > $1/large; sync $1/large; sleep 0.3; rm $1/large;"
        "mkdir $1/sub; head -c 20000 /dev/zero > $1/sub/small"
    )
    options = ["--interval", "0.02", "--du", str(data), "--du", str(late), "--du", "/no/such"]
    status = any_supervisor.run(run, shell(script, str(data)), *options)
    real = subprocess.run(
        ["du", "-s", "-k", str(data), str(late)], capture_output=True, text=True, check=True
    )
    assert status["du_after_kib"] == sum(int(line.split()[0]) for line in real.stdout.splitlines())
    assert status["du_peak_kib"] >= 7_800
    assert status["du_peak_kib"] > status["du_after_kib"] > status["du_before_kib"] >= 40
    samples = read_samples(run)
    assert max(numbers(samples, "du_kib")) == status["du_peak_kib"]

    status = any_supervisor.run(tmp_path / "2", ["true"], "--du", "/no/such")
    assert (status["du_before_kib"], status["du_peak_kib"]) == (None, None)
    assert status["du_after_kib"] is None


def test_the_supervisor_is_small(supervisor: Supervisor, tmp_path: Path) -> None:
    script = "import threading, time\n" + (
        "for _ in range(64): threading.Thread(target=time.sleep, args=(0.3,)).start()\n"
    )
    status = supervisor.run(tmp_path / "run", python(script), "--interval", "0.01")
    own = status["supervisor"]
    assert 0 < own["maxrss_kib"] <= 4096
    assert own["user_s"] + own["sys_s"] > 0
    assert own["samples"] >= 3
    assert own["samples_lost"] == 0
    assert max(numbers(read_samples(tmp_path / "run"), "threads")) == 65


# --- The environment of a command. ---


def test_odd_names_come_back_exactly(any_supervisor: Supervisor, tmp_path: Path) -> None:
    run = tmp_path / f"run {ODD}"
    script = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['V'], os.getcwd()]))"
    script += "; print(os.environ['BENCHRUNNER_RUN_DIR'].encode(errors='surrogateescape'))"
    cwd = tmp_path / ODD
    cwd.mkdir()
    invalid = "\udcc0\udcaf \udced\udca0\udc80 \udcf5"  # not UTF-8: overlong, a surrogate
    argv = [sys.executable, "-X", "utf8", "-c", script, ODD, "", invalid, "--", "\x01\x7f"]
    odd_env = f"V=={ODD}"
    options = ["--env", "V=first", "--env", odd_env, "--cwd", str(cwd), "--run-id", ODD]
    status = any_supervisor.run(run, argv, *options)
    assert status["exit_code"] == 0
    command = read_json(run / "command.json")
    assert command["argv"] == argv
    assert command["env"] == {"V": f"={ODD}"}
    assert command["cwd"] == str(cwd)
    assert command["run_id"] == ODD
    assert command["run_dir"] == str(run)
    seen, run_dir = (run / "stdout").read_text().splitlines()
    assert json.loads(seen) == [argv[5:], f"={ODD}", str(cwd)]
    assert run_dir == repr(os.fsencode(run))
    assert any_supervisor.state(run)["state"] == "finished"


def test_the_command_file_records_the_request(supervisor: Supervisor, tmp_path: Path) -> None:
    options = "--timeout 7.5 --grace 2 --interval 0.5 --du d --device-of . --env A=b --env A=c"
    supervisor.run(tmp_path / "run", ["true", "x"], *options.split(), cwd=tmp_path)
    command = read_json(tmp_path / "run" / "command.json")
    assert command["argv"] == ["true", "x"]
    assert (command["timeout_s"], command["grace_s"], command["interval_s"]) == (7.5, 2, 0.5)
    assert command["du"] == [str(tmp_path / "d")]
    assert command["cwd"] == str(tmp_path)
    assert (command["env"], command["clear_env"]) == ({"A": "c"}, False)
    assert command["hostname"] == socket.gethostname()
    assert command["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert command["run_id"] == command["run_dir"] == str(tmp_path / "run")
    assert command["started_at"]["unix_ns"] / 1e9 == pytest.approx(time.time(), abs=60)
    assert command["started_at"]["monotonic_ns"] / 1e9 == pytest.approx(time.monotonic(), abs=60)
    assert set(command["supervisor"]) == {"pid", "start_time", "version"}


def test_the_environment_is_inherited_or_cleared(supervisor: Supervisor, tmp_path: Path) -> None:
    env = {**supervisor.environment, "INHERITED": "1", "CHANGED": "1"}
    options = ["--env", "CHANGED=2", "--env", "EMPTY=", "--run-id", "id"]
    supervisor.run(tmp_path / "1", ["env", "-0"], *options, env=env)
    marks = {f"BENCHRUNNER_RUN_DIR={tmp_path / '1'}", "BENCHRUNNER_RUN_ID=id"}
    seen = (tmp_path / "1" / "stdout").read_text().split("\0")
    assert {"INHERITED=1", "CHANGED=2", "EMPTY=", *marks} <= set(seen)
    assert len(seen) == len(set(seen))

    supervisor.run(tmp_path / "2", ["env", "-0"], *options, "--clear-env", env=env)
    seen = (tmp_path / "2" / "stdout").read_text().split("\0")
    assert set(seen) == {
        "CHANGED=2",
        "EMPTY=",
        f"BENCHRUNNER_RUN_DIR={tmp_path / '2'}",
        "BENCHRUNNER_RUN_ID=id",
        "",
    }
    assert read_json(tmp_path / "2" / "command.json")["clear_env"] is True


def test_the_command_is_looked_up_in_its_own_path(supervisor: Supervisor, tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "my-tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)
    supervisor.run(tmp_path / "run", ["my-tool"], "--env", f"PATH={tool.parent}:/usr/bin:/bin")
    assert (tmp_path / "run" / "stdout").read_text() == "found\n"
    status = supervisor.run(tmp_path / "2", ["my-tool"])
    assert status["error"] == "cannot execute my-tool: No such file or directory"


def test_the_command_gets_default_signals_and_no_stray_files(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    def ignore_signals() -> None:
        for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_IGN)
        # The C library keeps signal 32 to itself, yet a parent may have left it ignored.
        ignored = (1).to_bytes(8, "little") + bytes(56)
        ctypes.CDLL(None).syscall(RT_SIGACTION, 32, ignored, None, 8)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM])

    inherited = os.open("/dev/null", os.O_RDONLY)
    argv = shell("ls -l /proc/self/fd; grep Sig /proc/self/status; cat")
    status = supervisor.run(
        tmp_path / "run",
        argv,
        pass_fds=[inherited],
        restore_signals=False,
        preexec_fn=ignore_signals,
    )
    os.close(inherited)
    assert status["exit_code"] == 0
    output = (tmp_path / "run" / "stdout").read_text()
    files = re.findall(r" (\d+) -> (.*)", output)
    assert [name for _, name in files if not name.startswith("/proc/")] == [
        "/dev/null",
        str(tmp_path / "run" / "stdout"),
        str(tmp_path / "run" / "stderr"),
    ]
    for mask in ("SigBlk", "SigIgn"):
        assert re.search(rf"{mask}:\s+0+$", output, re.MULTILINE), output


# --- The disk is full. ---


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path | None]:
    """A file system of 64 KiB, or None where mounting is not permitted."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    mounted = shutil.which("mount") and subprocess.run(mount, check=False, capture_output=True)
    yield folder if mounted and mounted.returncode == 0 else None
    if mounted and mounted.returncode == 0:
        subprocess.run(["umount", "-l", str(folder)], check=True)


FILL = """
import os, time
while True:
    try: print("x" * 1000, flush=True)
    except OSError: break
time.sleep(0.4)
os._exit(9)
"""


def limit_file_size() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))


def check_filled_disk(run: Path, status: dict[str, Any]) -> None:
    assert (status["state"], status["exit_code"]) == ("exited", 9)
    own = status["supervisor"]
    assert own["samples_lost"] > 0
    assert len(read_samples(run)) == own["samples"] > 0  # no line is there in part


def test_a_full_disk_loses_samples_but_not_the_status(
    any_supervisor: Supervisor, tmp_path: Path, small_disk: Path | None
) -> None:
    run = (small_disk or tmp_path) / "run"
    how = {} if small_disk else {"preexec_fn": limit_file_size}
    check_filled_disk(run, any_supervisor.run(run, python(FILL), "--interval", "0.01", **how))


def test_a_file_size_limit_loses_samples_but_not_the_status(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    options = ["--interval", "0.01"]
    status = supervisor.run(run, python(FILL), *options, preexec_fn=limit_file_size)
    check_filled_disk(run, status)


def test_a_status_that_cannot_be_written_is_tried_again(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    supervisor.start(run, ["sleep", "60"])
    (run / "status.reserve").unlink()
    (run / "status.reserve").mkdir()  # cannot be written to, even by root
    os.kill(read_json(run / "child.json")["pid"], signal.SIGKILL)
    wait_until(lambda: "trying until I can: Is a directory" in (run / "supervisor.log").read_text())
    assert supervisor.state(run)["state"] == "running"
    (run / "status.reserve").rmdir()
    assert supervisor.end(run)["signal_name"] == "SIGKILL"


# --- The command line. ---


def test_foreground_stays_until_the_end(any_supervisor: Supervisor, tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = any_supervisor.start(run, shell("sleep 0.1; exit 8"), "--foreground")
    assert done.returncode == 0  # the run is recorded; how it went is in the status
    assert read_json(run / "status.json")["exit_code"] == 8
    assert json.loads(done.stdout)["pid"] == any_supervisor.state(run)["pid"]

    command = any_supervisor.command("start", tmp_path / "2", "--foreground")
    command += ["--", "sleep", "60"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env=any_supervisor.environment
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["pid"] == process.pid
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    assert read_json(tmp_path / "2" / "status.json")["state"] == "killed"


# ---------------------------------------------------------------- folders of ours


@pytest.fixture
def claimed(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / ".benchrunner").write_text("{}")
    return work


def fresh_options(work: Path) -> list[str]:
    trial = work / "trials" / "1"
    made = [word for name in ("db", "runs/1") for word in ("--make", str(trial / name))]
    return ["--marker", '{"what": "1"}', "--in", str(work), "--fresh", str(trial), *made]


def test_a_run_starts_in_folders_made_empty(supervisor: Supervisor, claimed: Path) -> None:
    trial = claimed / "trials" / "1"
    options = [*fresh_options(claimed), "--cwd", str(trial / "db")]
    for attempt in range(2):
        # The second time, what the first one left is gone: run folder, database, deep folders.
        script = "ls -A; mkdir -p a/b; echo x > a/b/c"
        run = trial / "runs" / "1" / f"{attempt}"
        status = supervisor.run(run, ["sh", "-c", script], *options)
        assert status["exit_code"] == 0
        assert (run / "stdout").read_text() == ""
        assert [path.name for path in (trial / "runs" / "1").iterdir()] == [f"{attempt}"]
        assert (trial / ".benchrunner").read_text() == '{"what": "1"}\n'
    done = supervisor.call("remove", "--in", str(claimed), "--folder", str(trial))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not trial.exists()


def test_who_starts_second_does_not_empty_the_folders_of_who_was_first(
    supervisor: Supervisor, claimed: Path
) -> None:
    run = claimed / "trials" / "1" / "runs" / "1" / "01"
    argv = supervisor.command("start", run, *fresh_options(claimed), "--cwd", "/")
    at_once = [
        subprocess.Popen(
            [*argv, "--", "sh", "-c", f"echo kept > {run}/kept; sleep 0.2"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=supervisor.environment,
        )
        for _ in range(6)
    ]  # fmt: skip
    supervisor.runs.append(run)
    for process in at_once:
        process.communicate(timeout=PATIENCE_S)
    assert sorted(process.returncode for process in at_once) == [0, 3, 3, 3, 3, 3]
    assert supervisor.stop(run)["state"] == "finished"
    assert (run / "kept").read_text() == "kept\n"


def test_a_folder_that_is_not_ours_is_not_touched(supervisor: Supervisor, claimed: Path) -> None:
    trial = claimed / "trials" / "1"
    trial.mkdir(parents=True)
    (trial / "thesis.tex").write_text("years of work")
    refused = supervisor.start(trial / "runs" / "1" / "01", ["true"], *fresh_options(claimed))
    assert (refused.returncode, refused.stdout) == (4, f"foreign {trial}\n")
    assert refused.stderr == f"br-supervise: {trial} is not deleted: foreign\n"
    assert [path.name for path in trial.iterdir()] == ["thesis.tex"]
    (claimed / ".benchrunner").unlink()
    refused = supervisor.call("fresh", *fresh_options(claimed))
    assert (refused.returncode, refused.stdout) == (4, f"foreign-work-dir {trial}\n")
    refused = supervisor.start(trial / "runs" / "1" / "01", ["true"], *fresh_options(claimed))
    assert refused.returncode == 1
    assert "cannot lock the marker of" in refused.stderr


def test_foreground_wants_no_children_of_its_own(supervisor: Supervisor, tmp_path: Path) -> None:
    command = [*supervisor.command("start", tmp_path / "run", "--foreground"), "--", "true"]
    script = 'sleep 0.5 & exec "$@"'
    refused = subprocess.run(shell(script, *command), check=False, capture_output=True, text=True)
    assert refused.returncode == 1
    assert refused.stderr.startswith("br-supervise: this process has children already")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "needs one of start, state, stop, du"),
        (["run"], "'run' is none of start, state, stop, du, fresh, remove, "),
        (["start", "--", "true"], "start: needs --run-dir DIR"),
        (["state"], "state: needs --run-dir DIR"),
        (["stop", "--grace", "1"], "stop: needs --run-dir DIR"),
        (["start", "--run-dir"], "--run-dir needs a value"),
        (["start", "--run-dir", ""], "--run-dir needs a value"),
        (["start", "--run-dir", "r"], "start: needs -- and the command to run after its options"),
        (["start", "--run-dir", "r", "--"], "start: needs -- and the command to run after"),
        (["start", "--run-dir", "r", "true"], "start: needs -- and the command to run after"),
        (["start", "--run-dir", "r", "--foo", "--", "true"], "start: unknown option --foo"),
        (["state", "--run-dir", "r", "--grace", "1"], "state: unknown option --grace"),
        (["state", "--run-dir", "r", "more"], "state: unexpected argument 'more'"),
        (["start", "--timeout", "5m"], "--timeout: '5m' is not a number of seconds"),
        (["start", "--timeout", "nan"], "--timeout: 'nan' is not a number of seconds"),
        (["start", "--timeout", "0"], "--timeout: 0 seconds is out of range, which begins at"),
        (["start", "--interval", "0"], "--interval: 0 seconds is out of range, which begins at"),
        (["stop", "--grace=-1"], "--grace: -1 seconds is out of range, which begins at 0"),
        (["start", "--env", "A"], "--env: 'A' is not of the form NAME=VALUE"),
        (["start", "--env", "=A"], "--env: '=A' is not of the form NAME=VALUE"),
        (["du"], "du: needs at least one directory"),
        (["fresh"], "fresh: needs --in DIR and the folder in it"),
        (["remove", "--in", "w"], "remove: --in "),
        (["remove", "--folder", "w"], "w: needs --in DIR before it"),
        (
            [
                "start",
                "--run-dir",
                "r",
                "--foreground",
                "--in",
                "w",
                "--fresh",
                "w/f",
                "--",
                "true",
            ],
            "start: --foreground does not go with --fresh",
        ),
    ],
)
def test_wrong_usage_is_explained_in_one_line(
    supervisor: Supervisor, tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = supervisor.call(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"br-supervise: {message}")
    assert done.stderr.endswith(" (see br-supervise --help)\n")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "r").exists()


def test_help_and_version(any_supervisor: Supervisor) -> None:
    shown = any_supervisor.call("--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "Examples:" in shown.stdout
    readme = (SOURCE / "README.md").read_text()
    for option in re.findall(r"--[a-z-]+", shown.stdout):
        if option not in ("--benchmarks", "--db"):
            assert option in readme
    assert re.fullmatch(r"br-supervise \d+\.\d+\n", any_supervisor.call("--version").stdout)


def test_everything_written_is_documented(supervisor: Supervisor, tmp_path: Path) -> None:
    run = tmp_path / "run"
    status = supervisor.run(run, ["true"])
    assert list(status) == STATUS_KEYS
    documented = set(re.findall(r"`([^`]+)`", (SOURCE / "README.md").read_text()))
    header = (run / "samples").read_text().splitlines()[0].split("\t")
    assert len(header) == len(set(header)) == 51
    command = read_json(run / "command.json")
    state = supervisor.state(run)
    names = [*header, *status, *status["supervisor"], *command, *command["supervisor"], *state]
    names += [*command["started_at"], *(path.name for path in run.iterdir())]
    assert [name for name in names if name not in documented] == []


# --- Ports. ---

SERVE = (
    "import socket, sys, time\n"
    "time.sleep(float(sys.argv[2]))\n"
    "s = socket.create_server((sys.argv[3], int(sys.argv[1])), family=int(sys.argv[4]))\n"
    "time.sleep(60)\n"
)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def serve(port: int, after_s: float = 0.0, host: str = "127.0.0.1") -> list[str]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return python(SERVE, str(port), str(after_s), host, str(int(family)))


def asked(supervisor: Supervisor, *arguments: str) -> dict[str, Any]:
    done = supervisor.call("port", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_port_is_free_or_somebody_has_it(any_supervisor: Supervisor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        answer = asked(any_supervisor, "--free", str(port))
        command = Path("/proc/self/comm").read_text().strip()
        assert answer == {
            "port": port, "free": False, "error": "Address already in use", "pid": os.getpid(),
            "command": command,
        }  # fmt: skip
    assert asked(any_supervisor, "--free", str(port)) == {"port": port, "free": True}


def test_a_port_that_all_addresses_have_is_taken(supervisor: Supervisor) -> None:
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        answer = asked(supervisor, "--free", str(server.getsockname()[1]))
    assert (answer["free"], answer["pid"]) == (False, os.getpid())


def test_a_port_of_a_server_that_has_just_ended_is_free(supervisor: Supervisor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
        accepted.close()  # the server's side closes first: it stays in TIME_WAIT
        client.close()
    assert asked(supervisor, "--free", str(port))["free"]


def test_a_server_is_waited_for(any_supervisor: Supervisor, tmp_path: Path) -> None:
    run, port = tmp_path / "run", free_port()
    assert any_supervisor.start(run, serve(port, 0.3)).returncode == 0
    look = asked(any_supervisor, "--wait", str(port), "--run-dir", str(run))
    assert (look["answers"], look["state"]) == (False, "running")
    assert "pid" not in look
    answer = asked(
        any_supervisor, "--wait", str(port), "--run-dir", str(run), "--timeout", str(PATIENCE_S)
    )
    assert (answer["answers"], answer["state"]) == (True, "running")
    assert answer["pid"] == any_supervisor.state(run)["child_pid"]
    assert 0 < answer["waited_s"] < PATIENCE_S
    any_supervisor.stop(run)
    answer = asked(any_supervisor, "--wait", str(port), "--run-dir", str(run), "--timeout", "60")
    assert (answer["answers"], answer["state"]) == (False, "finished"), "it does not wait for it"


def test_waiting_ends_with_the_run(supervisor: Supervisor, tmp_path: Path) -> None:
    run, port = tmp_path / "run", free_port()
    wait = ["--wait", str(port), "--run-dir", str(run), "--timeout", "60"]
    assert asked(supervisor, *wait)["state"] == "absent"
    assert supervisor.start(run, shell("sleep 0.3; exit 3")).returncode == 0
    answer = asked(supervisor, *wait)
    assert (answer["answers"], answer["state"]) == (False, "finished")


def test_somebody_else_s_answer_is_told_from_the_run_s(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    supervisor.run(run, ["true"])
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        answer = asked(supervisor, "--wait", str(port), "--run-dir", str(run))
    assert (answer["answers"], answer["state"], answer["pid"]) == (True, "finished", os.getpid())


def test_a_port_of_another_address_is_another_port(supervisor: Supervisor, tmp_path: Path) -> None:
    run, port = tmp_path / "run", free_port()
    there = [str(port), "--address", "127.0.0.2"]
    assert supervisor.start(run, serve(port, host="127.0.0.2")).returncode == 0
    wait = ["--wait", *there, "--run-dir", str(run), "--timeout", str(PATIENCE_S)]
    assert asked(supervisor, *wait)["answers"]
    assert asked(supervisor, "--reach", *there)["answers"]
    assert not asked(supervisor, "--free", *there)["free"]
    assert asked(supervisor, "--free", str(port))["free"]
    supervisor.stop(run)
    nobody = asked(supervisor, "--reach", *there, "--timeout", "0.1")
    assert nobody["waited_s"] >= 0.1
    assert (nobody["answers"], nobody["error"]) == (False, "Connection refused")
    foreign = asked(supervisor, "--free", str(port), "--address", "192.0.2.1")
    assert foreign["error"] == "Cannot assign requested address"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "port: needs --free N, --wait N or --reach N"),
        (["--free", "0"], "--free: '0' is not a port: a number from 1 to 65535"),
        (["--free", "65536"], "--free: '65536' is not a port: a number from 1 to 65535"),
        (["--wait", "8x", "--run-dir", "r"], "--wait: '8x' is not a port"),
        (["--free", "80", "--wait", "80"], "port: one of --free, --wait and --reach, once"),
        (["--reach", "80", "--run-dir", "r"], "port --reach: takes no --run-dir"),
        (["--free", "80", "--address", "::1"], "--address: '::1' is not an IPv4 address"),
        (["--wait", "80"], "port --wait: needs --run-dir"),
        (["--free", "80", "--run-dir", "r"], "port --free: takes no --run-dir"),
        (["--free"], "--free needs a value"),
        (["--free", "80", "more"], "port: unexpected argument 'more'"),
        (["--bogus"], "port: unknown option --bogus"),
        (["--wait", "80", "--run-dir", "r", "--timeout", "x"], "'x' is not a number of seconds"),
    ],
)
def test_wrong_usage_of_port_is_one_line(
    supervisor: Supervisor, arguments: list[str], complaint: str
) -> None:
    done = supervisor.call("port", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1
