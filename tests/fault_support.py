"""Runs the real program on the fake engine, kills it on request, and looks at what is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchrunner import faults
from benchrunner.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchrunner.store.whole import Store

ROOT = Path(__file__).parent.parent
FAKE = Path(__file__).parent / "fake_engine"
PRINTED = frozenset(
    ("asked_count", "elapsed_s", "found_count", "found_ratio", "mb_per_sec", "operations",
     "ops_per_sec", "usec_per_op")
)  # fmt: skip
"""Metrics of what the fake engine prints."""
PATIENCE_S = 300.0
"""How long anything may take that is waited for; far above what it takes."""


@dataclass
class Bench:
    """One results folder with its own cache, and the program that works on it."""

    folder: Path
    cache: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        return self.folder / "results"

    @property
    def lock_dir(self) -> Path:
        """Of the host's lock: tests that leave a step behind shall not bar the others."""
        path = self.folder / "lock"
        path.mkdir(exist_ok=True)
        return path

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def command(self, *arguments: str) -> list[str]:
        verb, *rest = arguments
        where = ["--data", str(self.data)] if verb != "list" else []
        if verb in ("sweep", "plan"):
            where += ["--catalog", str(FAKE), "--cache", str(self.cache)]
        return [sys.executable, "-m", "benchrunner", verb, *where, *rest]

    def environment(self, fault: str = "") -> dict[str, str]:
        path = f"{FAKE / 'bin'}:{os.environ['PATH']}"
        return {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path, faults.VARIABLE: fault,
                "XDG_CACHE_HOME": str(self.folder / "home"),
                "BENCHRUNNER_LOCK_DIR": str(self.lock_dir), **self.env}  # fmt: skip

    def run(self, *arguments: str, fault: str = "") -> subprocess.CompletedProcess[str]:
        """Runs a verb to its end, or to the fault."""
        return subprocess.run(
            self.command(*arguments), capture_output=True, text=True, check=False, cwd=self.folder,
            env=self.environment(fault), timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def start(self, *arguments: str, fault: str = "") -> subprocess.Popen[str]:
        """Starts a verb; it leads a process group of its own."""
        return subprocess.Popen(
            self.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=self.folder, env=self.environment(fault), stdin=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip

    def sweep(
        self, workload: str = "fake", *more: str, fault: str = "", **params: object
    ) -> subprocess.CompletedProcess[str]:
        """Sweeps a fake workload."""
        return self.run(*self.sweep_arguments(workload, *more, **params), fault=fault)

    def sweep_arguments(self, workload: str, *more: str, **params: object) -> list[str]:
        settings = {"LOG": self.log, **params}
        chosen = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        if "--variants" not in more:
            chosen += ["--variants", "None"]
        if "--format" not in more:
            chosen += ["--format", "none"]
        return ["sweep", workload, *chosen, *more]

    def store(self) -> Store:
        return open_store(self.data, create=False)

    def executed(self) -> Counter[str]:
        """trial/attempt/NN-step -> how many times the fake engine ran it."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return Counter("/".join(_parts(line.split()[0])) for line in lines)

    def orphans(self) -> list[int]:
        """Processes of this folder's steps that live now."""
        marker = f"BENCHRUNNER_RUN_DIR={self.folder}".encode()
        return [pid for pid, environ in environments() if marker in environ]

    def rows(self) -> list[dict[str, Any]]:
        """What is stored of every trial, without what differs from run to run."""
        with self.store() as store:
            return [
                {
                    "job": trial.job.id,
                    "state": trial.state.value,
                    "reason": trial.reason,
                    "steps": [
                        (step.step, step.state.value, step.reason, printed(store, step.id))
                        for step in store.step_runs(trial.id)
                    ],
                }
                for trial in store.trials()
            ]


def printed(store: Store, step_run_id: int) -> dict[str, float]:
    """Measurements that come from what the engine printed: the same in every run."""
    found = store.measurements(step_run_id)
    return {
        "/".join(map(str, key)): value
        for key, value in sorted(found.items(), key=repr)
        if key[3] in PRINTED
    }


def environments() -> Iterator[tuple[int, bytes]]:
    """Every process and its environment, as far as they can be read."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            yield int(folder.name), (folder / "environ").read_bytes()
        except OSError:
            continue


def _parts(run_dir: str) -> Sequence[str]:
    """Trial, attempt and step of a run folder."""
    trial, _runs, attempt, step = Path(run_dir).parts[-4:]
    return trial, attempt, step


def wait_for(what: str, condition: Callable[[], object]) -> None:
    """Returns when something has come about.

    Raises:
        AssertionError: It did not.
    """
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"{what} did not come about"
        time.sleep(0.01)


def interrupt(process: subprocess.Popen[str], number: int = signal.SIGINT) -> tuple[int, str]:
    """Sends a signal and waits: exit code and standard error."""
    process.send_signal(number)
    _, stderr = process.communicate(timeout=PATIENCE_S)
    return process.returncode, stderr


def events(text: str) -> list[dict[str, Any]]:
    """Lines of ``--json``."""
    return [json.loads(line) for line in text.splitlines()]
