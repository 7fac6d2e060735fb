"""Services on one host, their clients on another: `--server`.

Two real sshds, each a host with a work directory, a lock and a supervisor of its own. The servers
listen on another address of loopback than everything else here, so that it is known to be used.
"""

from __future__ import annotations

import csv
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fault_support import FAKE, PATIENCE_S, interrupt, wait_for
from remote_support import RemoteBench, check_clean, check_settled, ended, remote

from benchrunner.model import StepState, TrialState

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from remote_support import RemoteHost
    from sshd_support import DelayProxy

    Program = Callable[..., tuple[int, str, str]]

pytestmark = pytest.mark.native

__all__ = ["remote"]

STEPS = ("ask", "ask-again", "alone")
ADDRESS = "127.0.0.2"
BOTH = ("--host", "alpha", "--server", "beta")


def pair(bench: RemoteBench, **changes: Any) -> tuple[RemoteHost, RemoteHost]:
    """A host for clients and one for servers; ``changes`` are of the latter."""
    return bench.add("alpha"), bench.add("beta", **{"service_address": ADDRESS, **changes})


def settings(**params: object) -> dict[str, Any]:
    with socket.socket() as one:
        one.bind((ADDRESS, 0))
        port = one.getsockname()[1]
    return {"SERVER": FAKE / "bin" / "fake_server", "PORT": port, **params}


def sweep(
    bench: RemoteBench, *more: str, fault: str = "", **params: object
) -> subprocess.CompletedProcess[str]:
    return bench.sweep("fake-served", *BOTH, *more, fault=fault, **settings(**params))


def started(bench: RemoteBench, **params: object) -> subprocess.Popen[str]:
    """A sweep of which the first step has begun, so that its server is ready."""
    process = bench.start(*bench.sweep_arguments("fake-served", *BOTH, **settings(**params)))
    wait_for("a step", lambda: bench.executed() or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    return process


def served(bench: RemoteBench) -> list[Path]:
    """Run folder of every server that was started."""
    path = Path(f"{bench.log}.served")
    return [Path(line.split()[0]) for line in path.read_text().splitlines()]


def check_all_ok(bench: RemoteBench, *, servers: int = 1) -> None:
    with bench.store() as store:
        (trial,) = store.trials()
        states = {row.step: row.state for row in store.step_runs(trial.id)}
    assert states == dict.fromkeys(("server", *STEPS), StepState.OK)
    assert len(served(bench)) == servers
    assert all(path.is_relative_to(bench.hosts["beta"].work) for path in served(bench))


# ---------------------------------------------------------------- when all goes well


def test_servers_run_there_and_clients_here(remote: RemoteBench) -> None:
    path = f"{FAKE / 'bin'}:/usr/bin:/bin"
    alpha, beta = pair(remote, env={"PATH": path, "WHERE": "beta"})
    done = sweep(remote, "--format", "html,csv")
    assert done.returncode == 0, done.stderr
    assert "service server started on beta\n" in done.stderr
    check_all_ok(remote)
    check_settled(remote)
    with remote.store() as store:
        (trial,) = store.trials()
        rows = {row.step: row for row in store.step_runs(trial.id)}
        assert (trial.job.host, trial.job.server) == ("alpha", "beta")
        assert trial.server_address == ADDRESS
        for facts_id, host in ((trial.facts_id, "alpha"), (trial.server_facts_id, "beta")):
            facts = store.facts(facts_id or "")
            assert facts is not None
            assert facts.host == host
            assert store.last_facts(host) == facts
        server, ask = rows["server"], rows["ask"]
        assert (server.host, ask.host) == ("beta", None)
        assert server.run_dir.startswith(f"{beta.work}/")
        assert ask.run_dir.startswith(f"{alpha.work}/")
        assert server.argv[-1] == ADDRESS
        assert ask.argv[-1] == f"--server={ADDRESS}:{server.argv[-3]}"
        assert server.env["WHERE"] == "beta"
        assert "WHERE" not in ask.env
        assert store.measurements(server.id)[(None, 1, None, "wall_s")] > 0, "it was sampled"
        assert (remote.data / "raw" / str(server.raw_path) / "status.json").exists()


def test_the_page_says_where_the_servers_ran(remote: RemoteBench) -> None:
    pair(remote)
    beside = remote.sweep("fake-served", "--host", "alpha", **settings())
    assert beside.returncode == 0, beside.stderr
    done = sweep(remote, "--format", "markdown,csv")
    assert done.returncode == 0, done.stderr
    folder = remote.data / "pages" / "fake-served"
    page = (folder / "README.md").read_text()
    line = f"Servers ran on beta, reached from alpha at {ADDRESS}"
    assert f"- {line}\n" in page
    assert "- Servers ran beside their clients, reached over loopback\n" in page
    assert f"{line}: what is measured includes the network between them." in page
    assert "**alpha**" in page, "Setup has the facts of both"
    assert "**beta**" in page
    with (folder / "csv" / "ask.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["host"], row["server"]) for row in rows] == [("alpha", ""), ("alpha", "beta")]
    with remote.store() as store:
        assert len({trial.job.id for trial in store.trials()}) == 2, "they are two jobs"


def test_this_machine_may_be_either_side(remote: RemoteBench) -> None:
    remote.add("beta", service_address=ADDRESS)
    for sides in (("--server", "beta"), ("--host", "beta", "--server", "local")):
        (remote.folder / "hosts" / "local.toml").write_text(
            'name = "local"\nservice_address = "127.0.0.3"\n'
        )
        done = remote.sweep("fake-served", *sides, **settings())
        assert done.returncode == 0, done.stderr
        check_clean(remote)
    with remote.store() as store:
        addresses = [trial.server_address for trial in store.trials()]
    assert addresses == [ADDRESS, "127.0.0.3"]


def test_a_name_is_looked_up_where_the_clients_are(remote: RemoteBench) -> None:
    pair(remote, service_address="localhost")
    done = sweep(remote)
    assert done.returncode == 0, done.stderr
    with remote.store() as store:
        assert store.trials()[0].server_address == "127.0.0.1"


def test_the_way_that_ssh_takes_is_the_default(remote: RemoteBench) -> None:
    remote.add("alpha")
    remote.add("beta")
    done = sweep(remote)
    assert done.returncode == 0, done.stderr
    with remote.store() as store:
        assert store.trials()[0].server_address == "127.0.0.1"


def test_two_sweeps_that_want_the_same_hosts_do_not_wait_for_each_other(
    remote: RemoteBench,
) -> None:
    remote.add("alpha", service_address=ADDRESS)
    remote.add("beta", service_address=ADDRESS)
    sides = (BOTH, ("--host", "beta", "--server", "alpha"))
    both = [
        remote.start(*remote.sweep_arguments("fake-served", *one, **settings(PAUSE=0.3)))
        for one in sides
    ]
    for process in both:
        ended(process)
    check_settled(remote, trials=2)


# ---------------------------------------------------------------- when it goes wrong


@pytest.mark.parametrize(
    "fault",
    [
        "service-begun", "service-started", "service-waited", "service-stopped", "service-ended",
        "step-started", "step-stored", "steps-done", "database-removed",
    ],
)  # fmt: skip
def test_kill_then_resume_leaves_nothing_on_either_host(remote: RemoteBench, fault: str) -> None:
    pair(remote)
    killed = sweep(remote, fault=fault, PAUSE=0.4)
    assert killed.returncode == -9, killed.stderr
    remote.resumed()
    check_all_ok(remote)
    check_settled(remote)


@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_a_lost_connection_to_either_host_is_waited_for(remote: RemoteBench, name: str) -> None:
    networks: dict[str, DelayProxy] = {}
    for one in ("alpha", "beta"):
        _, networks[one] = remote.disturbed(one, service_address=ADDRESS)
    process = started(remote, PAUSE=2)
    networks[name].cut()
    ended(process)
    check_all_ok(remote)
    check_settled(remote)


def test_a_server_host_that_is_away_for_a_while(remote: RemoteBench) -> None:
    _, beta = pair(remote)
    process = started(remote, PAUSE=4)
    beta.sshd.stop()
    assert process.stderr is not None
    said = next(line for line in process.stderr if "trying again for 40 s" in line)
    assert f":{beta.port}" in said
    beta.sshd.start()
    assert f"{beta.sshd.user}@127.0.0.1:{beta.port} is back" in ended(process)
    check_all_ok(remote)
    check_settled(remote)


def test_a_server_host_that_stays_away_leaves_no_client_behind(remote: RemoteBench) -> None:
    alpha, beta = pair(remote, limits={"reconnect_s": 1})
    process = started(remote, PAUSE=60)
    beta.sshd.stop()
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert f"127.0.0.1:{beta.port} did not come back within 1 s" in stderr
    assert alpha.lease() == "released"
    with remote.store() as store:
        (trial,) = store.trials()
        assert trial.state is TrialState.RUNNING
        states = {row.step: row.state for row in store.step_runs(trial.id)}
    assert states == {"server": StepState.RUNNING, "ask": StepState.INTERRUPTED}
    beta.sshd.start()
    with remote.store() as store:
        assert store.lease("beta") is None
    remote.run("resume", "--format", "none", fault="service-begun")
    assert not remote.orphans(), "what ran on beta was ended"


def test_ctrl_c_ends_servers_and_clients(remote: RemoteBench) -> None:
    alpha, beta = pair(remote)
    process = started(remote, PAUSE=1)
    code, stderr = interrupt(process)
    assert code == 130, stderr
    assert not remote.orphans()
    assert [host.lease() for host in (alpha, beta)] == ["released", "released"]
    remote.resumed()
    check_all_ok(remote, servers=2)
    check_settled(remote)


def test_ctrl_c_while_the_server_host_is_away(remote: RemoteBench) -> None:
    _, beta = pair(remote)
    process = started(remote, PAUSE=60)
    beta.sshd.stop()
    assert process.stderr is not None
    next(line for line in process.stderr if "trying again" in line)
    code, stderr = interrupt(process)
    assert code == 130, stderr
    assert len(remote.orphans()) == 1, "the server, which nobody could reach"
    beta.sshd.start()
    remote.run("resume", "--format", "none", fault="service-begun")
    assert not remote.orphans()


def test_a_server_that_dies_ends_the_step_over_there(remote: RemoteBench) -> None:
    pair(remote)
    done = sweep(remote, SERVING="dies-later", PAUSE=5)
    assert done.returncode == 1
    with remote.store() as store:
        (trial,) = store.trials()
        rows = {row.step: row for row in store.step_runs(trial.id)}
    assert rows["ask"].reason.startswith("service server ended during it: it exited with status 9")
    assert rows["alone"].state is StepState.OK
    check_clean(remote)


def test_an_address_that_the_host_does_not_have(remote: RemoteBench) -> None:
    pair(remote, service_address="192.0.2.1")
    done = sweep(remote)
    assert done.returncode == 1
    assert "at 192.0.2.1 of beta cannot be had, cannot assign requested address" in done.stderr
    check_clean(remote)


def test_one_machine_under_two_names_does_not_wait_for_itself(remote: RemoteBench) -> None:
    alpha = remote.add("alpha")
    twin = remote.folder / "hosts" / "twin.toml"
    text = (remote.folder / "hosts" / "alpha.toml").read_text()
    twin.write_text(text.replace('name = "alpha"', 'name = "twin"'))
    done = remote.sweep("fake-served", "--host", "alpha", "--server", "twin", **settings())
    assert done.returncode == 2
    assert "error: host twin is the same machine as the other host of this sweep\n" in done.stderr
    assert alpha.lease() == "released"


# ---------------------------------------------------------------- bad input


HOSTS = {
    "alpha": 'work_dir = "/tmp/a"\naddress = "192.0.2.1"\n',
    "beta": 'work_dir = "/tmp/b"\naddress = "192.0.2.2"\n',
    "clients": 'work_dir = "/tmp/c"\naddress = "192.0.2.3"\nroles = ["client"]\n',
    "servers": 'work_dir = "/tmp/s"\naddress = "192.0.2.4"\nroles = ["server"]\n',
}


@pytest.fixture
def with_fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake engine is installed."""
    monkeypatch.setenv("PATH", f"{FAKE / 'bin'}:{os.environ['PATH']}")


@pytest.mark.usefixtures("with_fakes")
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--server", "clients"), "--server clients: that host is no server (roles: client)"),
        (("--server", "bta"), "there is no host 'bta'; did you mean 'beta'?"),
        (
            ("--host", "alpha", "--server", "alpha"),
            "--server alpha: that host runs the clients (--host), and the server is another one",
        ),
        (
            ("--host", "alpha", "--host", "clients", "--server", "beta"),
            "--server beta: a server has one client host, and here are alpha, clients",
        ),
        (
            ("--host", "servers", "--server", "beta"),
            "host servers is no client (roles: server), and clients run the steps of workloads",
        ),
        (
            ("--host", "alpha", "--server", "local"),
            "host local is this machine, and nothing says at which address other hosts reach",
        ),
    ],
)
def test_roles_and_hosts_that_do_not_fit_are_one_line(
    tmp_path: Path, in_process: Program, words: tuple[str, ...], complaint: str
) -> None:
    check_refused(tmp_path, in_process, ("fake-served", *words), complaint)


@pytest.mark.usefixtures("with_fakes")
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("fake",), "--server beta: no step of fake needs a service"),
        (
            ("host-numbers", "--only", "io,hash"),
            "--server beta: no step of host-numbers (--only io,hash) needs a service",
        ),
    ],
)
def test_a_server_without_services_is_one_line(
    tmp_path: Path, in_process: Program, words: tuple[str, ...], complaint: str
) -> None:
    check_refused(tmp_path, in_process, (*words, "--server", "beta"), complaint)


def check_refused(
    tmp_path: Path, in_process: Program, words: tuple[str, ...], complaint: str
) -> None:
    (tmp_path / "hosts").mkdir()
    for name, text in HOSTS.items():
        (tmp_path / "hosts" / f"{name}.toml").write_text(f'name = "{name}"\n{text}')
    where = () if words[0] == "host-numbers" else ("--catalog", str(FAKE))
    code, _, err = in_process("plan", *words, *where)
    assert code == 2
    assert f"error: {complaint}" in err
    assert err.count("error: ") == 1


def test_a_sweep_file_names_its_server(remote: RemoteBench) -> None:
    pair(remote)
    folder = remote.folder / "sweeps"
    folder.mkdir()
    text = (
        'name = "between"\nworkloads = ["fake-served"]\nengines.fake = ["system"]\n'
        'hosts = ["alpha"]\nserver = "{}"\n'
    )
    (folder / "between.toml").write_text(text.format("gamma"))
    done = remote.run("plan", "between")
    assert done.returncode == 2
    assert "between.toml: server: there is no host 'gamma'" in done.stderr
    (folder / "between.toml").write_text(text.format("beta"))
    words = [f"{name}={value}" for name, value in settings().items()]
    done = remote.run("plan", "between", "--commands", *[w for s in words for w in ("--set", s)])
    assert done.returncode == 0, done.stderr
    assert "servers run on beta, their clients on alpha\n" in done.stdout
    assert f"--server={ADDRESS}:" in done.stdout


def test_a_name_that_nobody_knows_is_said_before_anything_starts(remote: RemoteBench) -> None:
    pair(remote, service_address="no-such-host.invalid")
    done = sweep(remote)
    assert done.returncode == 2
    assert "finds no IPv4 address of no-such-host.invalid, where services of host beta" in (
        done.stderr
    )


def test_a_server_host_that_is_off_stands_in_the_way(remote: RemoteBench) -> None:
    _, beta = pair(remote)
    beta.sshd.stop()
    done = sweep(remote)
    assert done.returncode == 2
    assert f"127.0.0.1:{beta.port} cannot be reached: connection refused" in done.stderr
    assert not (remote.data / "raw").exists()
