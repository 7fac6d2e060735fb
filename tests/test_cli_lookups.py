"""The verbs that only look: doctor, explain, list, completion."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchrunner.cli import cli
from benchrunner.errors import ConfigurationError


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, list(arguments))
    if isinstance(result.exception, ConfigurationError):
        raise result.exception
    return result


def test_doctor_names_every_check_and_is_content_with_a_machine_that_runs_these_tests(
    tmp_path: Path,
) -> None:
    result = run("doctor", "--data", str(tmp_path / "results"))
    assert result.exit_code == 0, result.output
    for name in ("python", "cc", "db_bench", "fio", "direct-io", "free-space", "libzstd-dev"):
        assert name in result.output
    assert not (tmp_path / "results").exists(), "doctor changes nothing"


def test_doctor_prints_the_command_that_mends_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poor = tmp_path / "bin"
    poor.mkdir()
    for program in Path("/usr/bin").iterdir():
        if program.name not in {"cc", "fio", "db_bench"}:
            (poor / program.name).symlink_to(program)
    monkeypatch.setenv("PATH", str(poor))
    result = run("doctor", "--data", str(tmp_path / "results"))
    assert result.exit_code == 2
    assert "MISSING  cc" in result.output
    assert "apt-get install -y" in result.output
    assert "rocksdb-tools" in result.output


def test_doctor_for_programs(tmp_path: Path) -> None:
    checks = json.loads(run("doctor", "--data", str(tmp_path), "--json").output)
    assert {"name", "ok", "required", "evidence", "remedy"} <= set(checks[0])


def test_explain_prints_the_definition_by_id_and_by_title() -> None:
    by_id = run("explain", "w_amp_lsm").output
    assert by_id.startswith("w_amp_lsm: W-Amp [ratio], lower is better\n")
    by_title = run("explain", "W-Amp").output
    assert "w_amp_lsm" in by_title
    document = json.loads(run("explain", "ops_per_sec", "--json").output)
    assert document["ops_per_sec"]["better"] == "higher"


def test_explain_of_an_unknown_metric_offers_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="there is no metric 'ops_per_sek'; did you mean"):
        run("explain", "ops_per_sek")


@pytest.mark.parametrize("kind", ["workloads", "engines", "tools", "hosts", "metrics"])
def test_list(kind: str) -> None:
    documents = json.loads(run("list", kind, "--json").output)
    assert documents
    for name in documents:
        assert name in run("list", kind).output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_BENCHRUNNER_COMPLETE" in result.output
