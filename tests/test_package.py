"""The wheel has workloads, hosts, templates, native sources, and works away from a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package installed into an empty folder from the wheel that it makes."""
    target = tmp_path_factory.mktemp("installed")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target),
         "--disable-pip-version-check", str(ROOT)],
        check=True, capture_output=True,
    )  # fmt: skip
    return target


def run(installed: Path, tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(installed)}
    return subprocess.run(
        [sys.executable, "-m", "benchrunner", *arguments],
        cwd=tmp_path, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_version(installed: Path, tmp_path: Path) -> None:
    done = run(installed, tmp_path, "--version")
    assert done.returncode == 0
    assert done.stdout.startswith("benchrunner 0.1")


def test_shipped_definitions_are_found(installed: Path, tmp_path: Path) -> None:
    done = run(installed, tmp_path, "list", "workloads")
    for name in ("rocksdb-flash", "rocksdb-compare", "fio-randread"):
        assert name in done.stdout
    assert str(installed / "benchrunner" / "workloads") in done.stdout


def test_a_plan_can_be_made(installed: Path, tmp_path: Path) -> None:
    done = run(
        installed, tmp_path, "plan", "rocksdb-flash", "--versions", "7.2.2", "--source", "crate",
        "--scale", "smoke", "--commands",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "ckb-librocksdb-sys@7.2.2" in done.stdout
    assert "--benchmarks=fillrandom,stats" in done.stdout
    assert list(tmp_path.iterdir()) == [], "a plan writes nothing"


def test_native_sources_and_templates_are_in_it(installed: Path) -> None:
    package = installed / "benchrunner"
    assert (package / "native" / "supervisor" / "main.c").is_file()
    assert (package / "templates" / "page.html.j2").is_file()
    assert (package / "hosts" / "local.toml").is_file()
    assert list((installed / "bin").glob("benchrunner"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(installed: Path, tmp_path: Path, shell: str) -> None:
    done = run(installed, tmp_path, "completion", shell)
    assert done.returncode == 0
    assert "_BENCHRUNNER_COMPLETE" in done.stdout
