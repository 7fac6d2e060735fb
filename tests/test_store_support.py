"""Builders and a real PostgreSQL server for the store's tests; holds no test itself."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchrunner.model import (
    Artifact,
    Command,
    FlagNote,
    Handle,
    HostFacts,
    Job,
    Measurement,
    Parsed,
    Plan,
    PlannedTrial,
    SourceRef,
    StepState,
    Taint,
    TrialState,
)
from benchrunner.store.rows import LeaseOwner

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchrunner.store.whole import Store

OWNER = LeaseOwner("alice", 4242, "box", 99)
OTHER = LeaseOwner("bob", 4343, "laptop", 77)
COMMAND = Command(
    ("db_bench", "--benchmarks=readrandom"),
    {"LD_PRELOAD": ""},
    (FlagNote("multiread_batched", "true", None, "dropped", "unknown before 6.19"),),
)
HANDLE = Handle("/runs/1", 1234, 5678)
PARSED = Parsed(
    measurements=(
        Measurement("readrandom", 1, None, "ops_per_sec", 136915.0),
        Measurement("readrandom", 2, None, "ops_per_sec", 136000.5),
        Measurement("readwhilewriting", 1, "reader", "p99_us", 12.25),
        Measurement(None, 1, None, "wall_s", 60.1),
    ),
    taints=(Taint("assertions-on", "WARNING: Assertions are enabled", "build in release mode"),),
    series={"ops_per_sec": ((1.0, 10.0), (2.0, 11.5))},
    facts={"version": "7.2.2"},
)


ARTIFACT = Artifact(
    id="a1", engine="rocksdb", version="7.2.2", source="crate", ref="ckb-librocksdb-sys@7.2.2",
    state="built", compiler="gcc 12.2", binaries={"db_bench": "/cache/db_bench"},
    sha256={"db_bench": "cd" * 32}, known_flags=frozenset({"num", "threads"}),
    features=frozenset({"zstd", "lz4"}), seconds=530.5,
)  # fmt: skip
FACTS = HostFacts("f1", "local", 1000.5, "boot-1", {"cpu": {"model": "Ω 9000", "cores": 2}})


@dataclass(frozen=True)
class End:
    """How a step ended."""

    reason: str = ""
    status: Mapping[str, Any] | None = None
    raw_path: str | None = None
    raw_sha256: str | None = None
    options: Mapping[str, Any] | None = None


END = End("", {"exit_code": 0, "signal": None, "wall_s": 1.5}, "raw/1", "ab" * 32, {"same": True})


def make_job(**changes: Any) -> Job:
    """A job; its id follows from what is changed."""
    version = changes.get("version", "7.2.2")
    values: dict[str, Any] = {
        "id": "job" + "".join(f"-{changes[key]}" for key in sorted(changes)),
        "workload": "rocksdb-flash",
        "engine": "rocksdb",
        "version": version,
        "source": SourceRef("rocksdb", version, "crate", f"ckb-librocksdb-sys@{version}", "a note"),
        "variant": "None",
        "host": "local",
        "scale": "smoke",
        "params": {"NUM_KEYS": 1000, "COMPRESSION_TYPE": "zstd"},
        "axes": {},
        "steps": ("load", "read"),
        "policy": "carry",
    }
    return Job(**(values | changes))


def make_plan(*jobs: Job, repeat: int = 1, name: str = "nightly") -> Plan:
    """A plan of every job, ``repeat`` times, interleaved."""
    trials = [
        (job, repetition) for repetition in range(1, repeat + 1) for job in (jobs or (make_job(),))
    ]
    return Plan(
        sweep=name,
        trials=tuple(
            PlannedTrial(f"{job.id}-r{repetition}", job, repetition, position)
            for position, (job, repetition) in enumerate(trials, start=1)
        ),
        loads=len(trials),
        disk_bytes=10**9,
        seconds=None,
        skipped=(("7.99", "no source has it"),),
    )


def add_sweep(store: Store, *jobs: Job, repeat: int = 1) -> int:
    """A stored sweep."""
    plan = make_plan(*jobs, repeat=repeat)
    return store.add_sweep(plan, {"repeat": repeat}, command_line=("benchrunner", "sweep"))


def begun_trial(store: Store, *, fence: int | None = None) -> str:
    """The only trial of a new sweep, running."""
    trial_id = store.trials(add_sweep(store))[0].id
    store.begin_trial(trial_id, artifact_id=None, facts_id=None, fence=fence)
    return trial_id


def run_step(store: Store, trial_id: str, step: str = "read", position: int = 1) -> int:
    """A step that ended well."""
    step_run_id = store.begin_step(trial_id, step, position, COMMAND, f"/runs/{step}")
    store.step_running(step_run_id, HANDLE)
    store.end_step(step_run_id, StepState.OK, END)
    return step_run_id


def run_trial(store: Store, trial_id: str, parsed: Parsed = PARSED) -> None:
    """A trial of one step, from its beginning to its end."""
    store.begin_trial(trial_id, artifact_id=None, facts_id=None, fence=None)
    step_run_id = run_step(store, trial_id)
    store.save_parsed(step_run_id, parsed, parser="db_bench", parser_version="1")
    store.end_trial(trial_id, TrialState.OK)


def postgresql_binaries() -> Path | None:
    """The folder of the newest installed PostgreSQL server."""
    found = [Path(p).resolve().parent for p in (shutil.which("initdb"),) if p]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in found if (folder / "postgres").exists()), None)


def postgresql_server() -> Iterator[str]:
    """Starts a server of our own on a loopback port, yields its URL without database, ends it."""
    binaries = postgresql_binaries()
    assert binaries is not None
    # It refuses to run as root, and its user must be able to reach the folder.
    user = "postgres" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="benchrunner-pg-"))
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    data = folder / "data"
    prepare: list[str | Path] = [
        binaries / "initdb",
        "-D",
        data,
        "-U",
        "bench",
        "-A",
        "trust",
        "--no-sync",
        "-E",
        "UTF8",
    ]
    server: subprocess.Popen[bytes] | None = None
    try:
        subprocess.run(prepare, check=True, user=user, capture_output=True, cwd=folder)
        port = _free_port()
        arguments = ["-p", str(port), "-h", "127.0.0.1", "-k", "", "-c", "fsync=off"]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [binaries / "postgres", "-D", data, *arguments], user=user, cwd=folder, stderr=log
            )
        _wait_for(server, port, folder / "log")
        yield f"postgresql://bench@127.0.0.1:{port}"
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)
            server.wait(30)
        shutil.rmtree(folder)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    import psycopg

    for _ in range(300):
        assert server.poll() is None, log.read_text()
        try:
            psycopg.connect(host="127.0.0.1", port=port, user="bench", dbname="postgres").close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(log.read_text())


def postgresql_database(server: str, name: str) -> str:
    """A new empty database on a server; its URL."""
    import psycopg

    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[call-overload, unused-ignore]
    return f"{server}/{name}"
