"""Servers beside steps: started once, waited for, watched, ended, whatever becomes of them.

Real processes: the program, the supervisor, a fake engine, and servers that misbehave on request.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fault_support import FAKE, Bench, interrupt, wait_for

from benchrunner.definitions import Step, Tool, Workload
from benchrunner.model import StepState, TrialState
from benchrunner.outcomes import Outcome, absent_program, blocked_by, trial_outcome

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from benchrunner.store.rows import StepRow

    Program = Callable[..., tuple[int, str, str]]

pytestmark = pytest.mark.native

SERVER = FAKE / "bin" / "fake_server"
STEPS = ("ask", "ask-again", "alone")
SERVICE_POINTS = (
    "service-begun", "service-started", "service-waited", "service-stopped", "service-ended",
)  # fmt: skip
STEP_POINTS = ("step-begun", "step-started", "step-running", "step-ended", "step-stored")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class Served(Bench):
    """A bench whose workload has a server."""

    port = 0

    def sweep_served(
        self, *more: str, fault: str = "", workload: str = "fake-served", **params: object
    ) -> subprocess.CompletedProcess[str]:
        return self.sweep(workload, *more, fault=fault, **self.settings(**params))

    def settings(self, **params: object) -> dict[str, object]:
        return {"SERVER": SERVER, "PORT": self.port, **params}

    def steps(self) -> dict[str, tuple[StepState, str]]:
        """Step or service -> state and reason, of the only trial."""
        with self.store() as store:
            (trial,) = store.trials()
            return {row.step: (row.state, row.reason) for row in store.step_runs(trial.id)}

    def served(self) -> int:
        """How many times a server was started."""
        path = Path(f"{self.log}.served")
        return len(path.read_text().splitlines()) if path.exists() else 0

    def check_gone(self) -> None:
        """No server, no port, no folder is left."""
        assert not self.orphans()
        with socket.socket() as one:
            assert one.connect_ex(("127.0.0.1", self.port)) != 0, "the port still answers"
        assert not list((self.data / "work" / "trials").iterdir()), "the host is not clean"


@pytest.fixture
def bench(tmp_path: Path, cache: Path) -> Iterator[Served]:
    made = Served(tmp_path, cache)
    made.port = free_port()
    yield made
    for pid in made.orphans():
        os.kill(pid, signal.SIGKILL)


def around(bench: Served, row: StepRow) -> dict[str, Any]:
    """What was seen of the host around a step."""
    path = bench.data / "raw" / str(row.raw_path) / "surroundings.json.gz"
    seen: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return seen


def all_ok(bench: Served) -> None:
    assert {name: state for name, (state, _) in bench.steps().items()} == dict.fromkeys(
        ("server", *STEPS), StepState.OK
    )


# ---------------------------------------------------------------- when all goes well


def test_a_server_serves_the_steps_that_name_it_and_is_ended(bench: Served) -> None:
    done = bench.sweep_served("--format", "html")
    assert done.returncode == 0, done.stderr
    all_ok(bench)
    assert bench.served() == 1, "one server for both steps"
    bench.check_gone()
    with bench.store() as store:
        (trial,) = store.trials()
        rows = {row.step: row for row in store.step_runs(trial.id)}
        assert rows["ask"].argv[-1] == f"--server=127.0.0.1:{bench.port}"
        server, alone = rows["server"], rows["alone"]
        pid = json.loads((bench.data / "raw" / str(server.raw_path) / "child.json").read_text())
        assert around(bench, rows["ask"])["servers"] != []
        assert f"\n{pid['pid']} (" in around(bench, rows["ask"])["after"], "it was looked at"
        assert not (bench.data / "raw" / str(alone.raw_path) / "surroundings.json.gz").exists()
        assert (server.ended_at or 0) <= (alone.started_at or 0), "ended before who needs it not"
        assert store.measurements(server.id)[(None, 1, None, "wall_s")] > 0
        assert server.raw_path is not None
        raw = bench.data / "raw" / server.raw_path
        assert {"stdout.gz", "samples.gz", "status.json"} <= {path.name for path in raw.iterdir()}
    assert "service server is ready" in done.stderr


def test_a_pattern_can_tell_that_a_server_is_ready(bench: Served, tmp_path: Path) -> None:
    text = (FAKE / "workloads" / "fake-served.toml").read_text()
    folder = tmp_path / "more" / "workloads"
    folder.mkdir(parents=True)
    told = text.replace('"fake-served"', '"fake-told"').replace(
        'port    = "{PORT}"', "ready   = '^ready to accept'"
    )
    (folder / "fake-told.toml").write_text(told)
    bench.env["BENCHRUNNER_PATH"] = str(tmp_path / "more")
    done = bench.sweep_served(workload="fake-told", SERVING="mute")
    assert done.returncode == 0, done.stderr
    all_ok(bench)


def test_a_stubborn_server_is_killed_after_its_grace(bench: Served) -> None:
    assert bench.sweep_served(SERVING="stubborn").returncode == 0
    all_ok(bench)
    bench.check_gone()


# ---------------------------------------------------------------- when it goes wrong


def check_failed(bench: Served, done: subprocess.CompletedProcess[str], *words: str) -> None:
    """The first step says why, the second was skipped, and what needs no server ran."""
    assert done.returncode == 1, done.stderr
    steps = bench.steps()
    state, reason = steps["ask"]
    assert state is StepState.FAILED
    for word in ("service server", *words):
        assert word in reason
    assert steps["ask-again"][0] is StepState.SKIPPED
    assert steps["alone"][0] is StepState.OK
    (trial,) = bench.rows()
    assert trial["state"] == "failed"
    assert trial["reason"] == f"ask: {reason}"
    bench.check_gone()


def test_a_port_in_use_names_who_listens(bench: Served) -> None:
    with socket.create_server(("127.0.0.1", bench.port)):
        done = bench.sweep_served()
        steps = bench.steps()
    who = f"port {bench.port} cannot be had, address already in use"
    assert steps["ask"][1].startswith(f"service server: {who}: ")
    assert f"(process {os.getpid()}) listens there" in steps["ask"][1]
    assert bench.served() == 0
    check_failed(bench, done)


def test_a_missing_server_skips_its_steps_and_names_the_package(bench: Served) -> None:
    done = bench.sweep_served(workload="fake-unserved")
    assert done.returncode == 0, done.stderr
    steps = bench.steps()
    why = "no-such-server is not installed: apt-get install -y no-such-package"
    assert steps["server"] == (StepState.SKIPPED, why)
    assert steps["ask"] == (StepState.SKIPPED, f"service server: {why}")
    assert steps["ask-again"] == (StepState.SKIPPED, f"service server: {why}")
    assert steps["alone"][0] is StepState.OK
    bench.check_gone()


def test_a_server_that_dies_at_once_says_why(bench: Served) -> None:
    done = bench.sweep_served(SERVING="dies")
    check_failed(bench, done, "it ended before it was ready: it exited with status 1",
                 "fake_server: bad configuration in line 7")  # fmt: skip


def test_a_server_that_never_answers(bench: Served) -> None:
    check_failed(bench, bench.sweep_served(SERVING="mute"), "it was not ready within 5 s")


def test_a_server_that_dies_during_the_step_ends_it(bench: Served) -> None:
    done = bench.sweep_served(SERVING="dies-later", PAUSE="30")
    assert done.returncode == 1, done.stderr
    steps = bench.steps()
    why = "service server ended during it: it exited with status 9: "
    assert steps["ask"][0] is StepState.FAILED
    assert steps["ask"][1].startswith(why)
    assert "fake_server: out of memory" in steps["ask"][1]
    assert steps["server"][0] is StepState.FAILED
    bench.check_gone()


def test_a_client_that_hangs_is_ended_at_its_limit(bench: Served) -> None:
    done = bench.sweep_served(MODE="hang", LIMIT=2)
    assert done.returncode == 1
    steps = bench.steps()
    assert steps["ask"][0] is StepState.TIMEOUT
    assert steps["ask-again"][0] is StepState.OK, "the server still serves"
    bench.check_gone()


def test_a_port_that_is_none_is_one_line(bench: Served) -> None:
    done = bench.sweep_served(PORT=70000)
    assert "port: 70000 is no port" in bench.steps()["ask"][1]
    assert done.returncode == 1


# ---------------------------------------------------------------- when we go away


@pytest.mark.parametrize("fault", [*SERVICE_POINTS, *(f"{point}:2" for point in STEP_POINTS)])
def test_kill_then_resume_leaves_nothing_and_runs_each_step_once(bench: Served, fault: str) -> None:
    # The second journalled step is the first that is measured: a service is begun like one.
    killed = bench.sweep_served(fault=fault, PAUSE="0.4")
    assert killed.returncode == -9, killed.stderr
    resumed = bench.run("resume", "--format", "none")
    assert resumed.returncode == 0, resumed.stderr
    all_ok(bench)
    assert bench.served() == 1, "the server that ran is adopted"
    assert set(bench.executed().values()) == {1}
    assert len(bench.executed()) == len(STEPS)
    bench.check_gone()


def test_a_server_that_died_while_nobody_watched_starts_the_trial_again(bench: Served) -> None:
    killed = bench.sweep_served(fault="step-stored", SERVING="dies-later-once")
    assert killed.returncode == -9, killed.stderr
    wait_for("the end of the server", lambda: not bench.orphans())
    assert bench.run("resume", "--format", "none").returncode == 0
    all_ok(bench)
    assert bench.served() == 2
    bench.check_gone()


@pytest.mark.parametrize("when", ["starting", "serving"])
def test_ctrl_c_ends_the_server_and_resume_starts_again(bench: Served, when: str) -> None:
    serving = "mute-once" if when == "starting" else "ok"
    arguments = bench.sweep_arguments("fake-served", **bench.settings(SERVING=serving, PAUSE="1"))
    process = bench.start(*arguments)
    wait_for("a server", lambda: bench.served() == 1)
    if when == "serving":
        wait_for("a step", lambda: len(bench.executed()) == 1)
    code, stderr = interrupt(process)
    assert code == 130, stderr
    assert not bench.orphans()
    resumed = bench.run("resume", "--format", "none")
    assert resumed.returncode == 0, resumed.stderr
    all_ok(bench)
    assert bench.served() == 2
    bench.check_gone()


# ---------------------------------------------------------------- groups, and engines beside


def test_an_engine_beside_that_is_not_there_skips_its_steps_only(bench: Served) -> None:
    done = bench.sweep("fake-beside", "--format", "markdown,csv")
    assert done.returncode == 0, done.stderr
    steps = bench.steps()
    assert steps["own"][0] is StepState.OK
    for name in ("load-other", "read-other"):
        state, reason = steps[name]
        assert state is StepState.SKIPPED
        assert "no_such_bench is not installed" in reason
    page = (bench.data / "pages" / "fake-beside" / "README.md").read_text()
    assert "| Own | 500000 |" in page
    assert "| Other | skipped" in page
    assert "Perhaps" not in page, "an optional line whose program nobody has"


def test_a_version_beside_that_no_source_has_skips_its_steps(bench: Served) -> None:
    done = bench.sweep("fake-beside", BESIDE="7.7")
    assert done.returncode == 0, done.stderr
    assert bench.steps()["load-other"][0] is StepState.SKIPPED
    assert "7.7" in bench.steps()["load-other"][1]


def test_a_group_that_was_not_asked_for_is_not_on_the_page(bench: Served) -> None:
    done = bench.sweep("fake-beside", "--only", "own", "--format", "markdown")
    assert done.returncode == 0, done.stderr
    assert list(bench.steps()) == ["own"]
    page = (bench.data / "pages" / "fake-beside" / "README.md").read_text()
    assert "Another engine" not in page


STEPS_OF_GROUPS = [
    Step(name="load", tool="t", state="creates", group="a"),
    Step(name="read", tool="t", group="a"),
    Step(name="other", tool="t", group="b"),
]
GROUPED = Workload.model_validate(
    {"name": "w", "title": "W", "engine": "e", "steps": STEPS_OF_GROUPS}
)


def test_a_group_is_blocked_by_its_own_steps_only() -> None:
    failed = [Outcome("load", StepState.FAILED, "x")]
    assert "load did not finish" in blocked_by(GROUPED, failed, "a")
    assert blocked_by(GROUPED, failed, "b") == ""
    skipped = [Outcome("load", StepState.SKIPPED, "nobody has it", ran=False)]
    assert blocked_by(GROUPED, skipped, "a") == "load was skipped: nobody has it"
    assert blocked_by(GROUPED, [Outcome("read", StepState.SKIPPED, "x")], "a") == ""


def test_a_trial_of_which_nothing_ran_was_skipped() -> None:
    outcomes = [Outcome("load", StepState.SKIPPED, "no fio", ran=False)]
    assert trial_outcome(outcomes) == (TrialState.SKIPPED, "load: no fio")
    outcomes.append(Outcome("read", StepState.OK))
    assert trial_outcome(outcomes) == (TrialState.OK, "")


def test_which_program_is_absent() -> None:
    free = Tool(name="redis", title="R", binary="redis-server", debian="redis-server")
    status = {"state": "failed", "error": "cannot execute redis-server: No such file or directory"}
    assert absent_program(status, free).endswith("apt-get install -y redis-server")
    assert absent_program({**status, "error": "cannot fork"}, free) == ""
    assert absent_program(status, free.model_copy(update={"engine": "redis"})) == ""
    assert absent_program({"state": "exited", "exit_code": 127}, free) == ""
    by_shell = free.model_copy(update={"argv": ["sh", "-c", "exec redis-server"], "debian": ""})
    found = absent_program({"state": "exited", "exit_code": 127}, by_shell)
    assert found == "redis-server is not installed"


# ---------------------------------------------------------------- mistakes in definitions


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('port    = "{PORT}"\n', "", "services.server: nothing tells when it is ready"),
        ('name    = "server"', 'name    = "ask"', "services.ask: a step or service of this name"),
        ('tool    = "fake_server"', 'tool    = "fake_servr"', "did you mean 'fake_server'?"),
        ('services  = ["server"]', 'services  = ["servr"]', "there is no service 'servr'"),
        ('group     = "served"', 'group     = "serve"', "there is no group 'serve'"),
        ('port    = "{PORT}"', "ready   = '('", "'(' is not a regular expression"),
        ('"{SERVING}", ', '"{SERVNG}", ', "SERVNG"),
        ('group     = "served"', 'engine    = "x"', "there is no engine in also 'x'"),
    ],
)
def test_a_mistake_is_one_line(
    tmp_path: Path, in_process: Program, old: str, new: str, complaint: str
) -> None:
    assert complaint in planned_with(tmp_path, in_process, "fake-served", old, new)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('group   = "own"\ncolumns', 'group   = "won"\ncolumns', "there is no group 'won'"),
        ('step = "own"', 'step = "onw"', "there is no step 'onw'"),
        (
            'columns = ["ops_per_sec"]',
            'columns = ["ops_per_se"]',
            "there is no metric 'ops_per_se'",
        ),
        ("also   = { beside", "also   = { besides", "there is no engine 'besides'"),
    ],
)
def test_a_mistake_in_lines_is_one_line(
    tmp_path: Path, in_process: Program, old: str, new: str, complaint: str
) -> None:
    assert complaint in planned_with(tmp_path, in_process, "fake-beside", old, new)


def planned_with(tmp_path: Path, in_process: Program, workload: str, old: str, new: str) -> str:
    """What `plan` says to a workload with one thing changed that makes it wrong."""
    text = (FAKE / "workloads" / f"{workload}.toml").read_text()
    assert old in text
    for kind in ("tools", "engines"):
        shutil.copytree(FAKE / kind, tmp_path / "catalog" / kind)
    folder = tmp_path / "catalog" / "workloads"
    folder.mkdir()
    (folder / f"{workload}.toml").write_text(text.replace(old, new))
    code, _, err = in_process("plan", workload, "--catalog", str(tmp_path / "catalog"))
    assert code == 2
    assert err.startswith("error: ")
    return err


# ---------------------------------------------------------------- ceilings


def test_what_a_workload_gives_becomes_a_ceiling_at_the_scales_it_names(bench: Served) -> None:
    assert bench.sweep("fake-beside", "--scale", "small").returncode == 0
    with bench.store() as store:
        assert store.ceilings("local") == (), "a small scale says nothing of the host"
    assert bench.sweep("fake-beside").returncode == 0
    with bench.store() as store:
        (ceiling,) = store.ceilings("local")
    assert (ceiling.metric, ceiling.value, ceiling.step) == ("ops_per_sec", 500000, "own")
    assert ceiling.workload == "fake-beside"
