"""RocksDB in memory with real versions, by preload with jemalloc too. Slow: ``make test-builds``.

``BENCHRUNNER_CACHE`` names a cache to keep between runs; without it everything is compiled anew.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchrunner.probes.mounts import may_mount
from benchrunner.store import open_store
from benchrunner.transports.local import LocalTransport

WRITES = {"point-80k": 81920, "point-10k": 10240, "prefix-80k": 81920, "prefix-10k": 10240}


@pytest.mark.skipif(not may_mount(LocalTransport()), reason="wants to mount a tmpfs: root")
def test_the_four_measurements_of_two_versions(tmp_path: Path) -> None:
    cache = os.environ.get("BENCHRUNNER_CACHE") or str(tmp_path / "cache")
    data = tmp_path / "results"
    argv = [
        sys.executable, "-m", "benchrunner", "sweep", "rocksdb-in-memory",
        "--versions", "6.11.4,7.2.2", "--scale", "smoke", "--format", "markdown",
        "--data", str(data), "--cache", cache,
    ]  # fmt: skip
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        argv, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(root)}, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"{data}/work/memory" not in Path("/proc/self/mountinfo").read_text()
    with open_store(data, create=False) as store:
        trials = store.trials()
        assert len(trials) == 4
        for trial in trials:
            if trial.state == "skipped":
                assert "libjemalloc" in trial.reason
                continue
            steps = {step.step: store.measurements(step.id) for step in store.step_runs(trial.id)}
            for name, asked in WRITES.items():
                found = {key[3]: value for key, value in steps[name].items() if key[2] is None}
                assert found["write_rate_asked"] == asked
                assert 0 < found["write_rate"] <= 1.05 * asked
                assert found["found_ratio"] == 1.0
                share = found["cpu_user_share_pct"] + found["cpu_sys_share_pct"]
                assert share == pytest.approx(100.0)
    page = (data / "pages" / "rocksdb-in-memory" / "README.md").read_text()
    assert "--benchmark_write_rate_limit=9830400" in page
    assert " of " in page
