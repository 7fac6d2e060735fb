from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from command_support import (
    HERE,
    SHIPPED,
    VERSIONS,
    Subject,
    a_job,
    a_workload,
    an_artifact,
    command_of,
    note,
    refusal,
)

from benchrunner.command import BASE_ENVIRONMENT, Placement, build_command, step_limits
from benchrunner.definitions import Rule, Step, Sweep, Variant
from benchrunner.errors import ConfigurationError
from benchrunner.model import FlagNote, Job, SourceRef
from benchrunner.plan import make_plan
from benchrunner.unfolding import unfolded

if TYPE_CHECKING:
    from pathlib import Path

# ---------------------------------------------------------------- merging


def test_later_arguments_win_and_keep_their_place() -> None:
    workload = a_workload(
        args={"a": {"block_size": 1, "num": 1, "threads": 1}, "b": {"num": 2}},
        pinned={"format_version": 5, "threads": 99},
        variants=[Variant(name="None", options={"block_size": 3})],
        steps=[Step(name="read", tool="db_bench", use=["a", "b"], args={"seed": 7, "threads": 4})],
    )

    command = command_of(workload, artifact=an_artifact())

    assert command.argv == (
        "/cache/db_bench",
        "--block_size=3",
        "--num=2",
        "--threads=4",
        "--seed=7",
        "--format_version=5",
    )
    assert note(command, "num") == FlagNote("num", "2", "--num=2", "given")


def test_values_are_written_as_gflags_reads_them() -> None:
    workload = a_workload(
        {
            "benchmarks": ["fillrandom", "stats"],
            "num": "{NUM * 2}",
            "db": "{db_dir}",
            "wal_dir": "{wal_dir}",
            "sync": True,
            "verify_checksum": False,
            "compression_ratio": 0.5,
            "compression_type": "{CODEC}",
            "report_file": "{run_dir}/{version}-{repetition}-{step_index}.csv",
        }
    )

    assert command_of(workload).argv == (
        "db_bench",
        "--seed=1",
        "--benchmarks=fillrandom,stats",
        "--num=2000",
        "--db=/data/db",
        "--wal_dir=/data/wal",
        "--sync=true",
        "--verify_checksum=false",
        "--compression_ratio=0.5",
        "--compression_type=zstd",
        "--report_file=/data/run/7.2.2-1-1.csv",
    )


def test_a_step_left_out_does_not_move_the_seeds_of_others() -> None:
    step = Step(name="read", tool="db_bench", args={"seed": "{100 + step_index}"})
    workload = a_workload(steps=[Step(name="wait", tool="db_bench"), step])

    command = build_command(step, Subject(workload), a_job(workload, steps=("read",)), None, HERE)

    assert command.argv == ("db_bench", "--seed=102")


def test_a_variant_wraps_and_adds_to_the_environment() -> None:
    variant = Variant(
        name="numa", wrap=["numactl", "--interleave={NUM}"], env={"A": "variant", "B": "{CODEC}"}
    )
    workload = a_workload(variants=[variant])
    subject = Subject(workload, host_env={"A": "host", "C": "host"})

    command = build_command(workload.steps[0], subject, a_job(workload), None, HERE)

    assert command.argv == ("numactl", "--interleave=1000", "db_bench", "--seed=1")
    assert command.env == {**BASE_ENVIRONMENT, "A": "variant", "B": "zstd", "C": "host"}


def test_as_shipped_leaves_pinned_defaults_free() -> None:
    workload = a_workload(pinned={"format_version": 5})

    assert command_of(workload, as_shipped=True).argv == ("db_bench", "--seed=1")
    assert command_of(workload).argv[-1] == "--format_version=5"


# ---------------------------------------------------------------- fio


def test_fio_gets_bare_flags_and_no_options_of_the_engine() -> None:
    step = Step(
        name="read",
        tool="fio",
        args={"name": "test", "group_reporting": True, "thread": False, "bs": "4k"},
    )
    workload = a_workload(
        steps=[step],
        variants=[Variant(name="DIO", options={"use_direct_reads": True})],
        pinned={"format_version": 5},
        rule=[Rule(flag="bs", action="refuse", since="1.0")],
    )

    command = command_of(workload, artifact=an_artifact())

    assert command.argv == (
        "fio",
        "--output-format=normal,json",
        "--name=test",
        "--group_reporting",
        "--bs=4k",
    )
    assert note(command, "thread") == FlagNote(
        "thread", "false", None, "dropped", "left out: that is how it is false"
    )


def test_fio_is_taken_from_where_it_was_found() -> None:
    workload = a_workload(engine="fio", steps=[Step(name="read", tool="fio")])
    found = an_artifact(engine="fio", binaries={"fio": "/opt/fio"})

    command = command_of(workload, "system", artifact=found)

    assert command.argv == ("/opt/fio", "--output-format=normal,json")


@pytest.mark.native
@pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")
def test_fio_accepts_the_shipped_ceiling(tmp_path: Path) -> None:
    workload = SHIPPED.workload("fio-randread")
    plan = make_plan(
        Sweep(name="s", workloads=["fio-randread"], scale="smoke", set={"SIZE": "64KiB"}),
        SHIPPED,
        {},
    )
    for step in workload.steps:
        placement = Placement(db_dir=str(tmp_path), wal_dir=str(tmp_path))
        command = build_command(step, Subject(workload), plan.trials[0].job, None, placement)

        done = subprocess.run(
            [*command.argv, "--parse-only"], env=command.env, capture_output=True, check=False
        )

        assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------- what is wrong


def test_a_seed_is_asked_for() -> None:
    without = a_workload(steps=[Step(name="read", tool="db_bench")])

    assert refusal(without).message == (
        "step read of mine has no seed, so its keys would differ between versions"
    )
    assert "has seed 0, which RocksDB replaces" in refusal(a_workload({"seed": 0})).message


def test_an_artifact_without_the_binary() -> None:
    with pytest.raises(ConfigurationError, match=r"rocksdb 7\.2\.2 was built without db_bench"):
        command_of(a_workload(), artifact=an_artifact(binaries={}))


def test_an_unknown_variant() -> None:
    error = refusal(a_workload(), variant="Nome")

    assert error.message == "workload mine has no variant 'Nome'; did you mean 'None'?"


def test_an_unknown_parameter_names_step_and_flag() -> None:
    assert refusal(a_workload({"num": "{NUMB}"})).message == (
        "step read of mine, num: '{NUMB}': there is no parameter 'NUMB'; did you mean 'NUM'?"
    )


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("keys", "expected_s", "timeout_s"),
    [
        ({"seconds": "{SECONDS}"}, 5.0, 75.0),
        ({"seconds": 1.5, "timeout_s": "{SECONDS * 2}"}, 1.5, 10.0),
        ({"timeout_s": 9}, None, 9.0),
        ({}, None, None),
    ],
)
def test_limits(keys: dict[str, Any], expected_s: float | None, timeout_s: float | None) -> None:
    step = Step(name="read", tool="db_bench", **keys)
    workload = a_workload(steps=[step])

    limits = step_limits(step, Subject(workload), a_job(workload))

    assert (limits.expected_s, limits.timeout_s) == (expected_s, timeout_s)


@pytest.mark.parametrize(
    ("keys", "timeout_s"),
    [({}, 100.0), ({"timeout_s": 7}, 7.0), ({"seconds": 1000}, 100.0), ({"seconds": 1}, 63.0)],
)
def test_a_host_may_allow_less(keys: dict[str, Any], timeout_s: float) -> None:
    step = Step(name="read", tool="db_bench", **keys)
    workload = a_workload(steps=[step])
    limits = step_limits(step, Subject(workload, host_step_s=100.0), a_job(workload))
    assert limits.timeout_s == timeout_s


def test_a_limit_must_be_a_number() -> None:
    step = Step(name="read", tool="db_bench", seconds="{CODEC}")
    workload = a_workload(steps=[step])

    with pytest.raises(
        ConfigurationError, match="step read of mine, seconds: 'zstd' is not a number"
    ):
        step_limits(step, Subject(workload), a_job(workload))


# ---------------------------------------------------------------- shipped workloads


def shipped_jobs(name: str, scale: str, as_shipped: bool = False) -> list[Job]:
    several = SHIPPED.workload(name).engines
    refs = {"rocksdb": [SourceRef("rocksdb", v, "path", "/src") for v in VERSIONS]}
    several = [*several, SHIPPED.workload(name).engine or "rocksdb"]
    refs |= {e: [SourceRef(e, "1.2", "path", "/src")] for e in several if e not in (*refs, "fio")}
    sweep = Sweep(name="s", workloads=[name], scale=scale, as_shipped=as_shipped, ceilings=False)
    return [trial.job for trial in make_plan(sweep, SHIPPED, refs).trials]


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        (name, scale)
        for name in SHIPPED.names("workloads")
        for scale in SHIPPED.workload(name).scale
    ],
)
def test_every_shipped_step_has_a_command_in_every_version(name: str, scale: str) -> None:
    for job in shipped_jobs(name, scale) + shipped_jobs(name, scale, as_shipped=True):
        workload = unfolded(SHIPPED.workload(name), job)
        tools = {step.tool: SHIPPED.tool(step.tool) for step in workload.steps}
        subject = Subject(
            workload, tools, SHIPPED.flags(job.engine), engine=SHIPPED.engine(job.engine)
        )
        steps = [one for one in workload.steps if one.name in job.steps]
        seeds = []
        for step in steps:
            command = build_command(step, subject, job, None, HERE)
            limits = step_limits(step, subject, job)

            assert limits.expected_s is not None
            assert not [word for word in command.argv if "{" in word]
            once = [n.flag for n in command.flags if n.flag not in tools[step.tool].repeat]
            assert len(set(once)) == len(once)
            seeds += [word for word in command.argv if word.startswith("--seed=")]
        assert len(set(seeds)) == len([s for s in steps if tools[s.tool].parser == "db_bench"])


def test_the_page_s_load_is_what_benchmark_sh_runs() -> None:
    workload = SHIPPED.workload("rocksdb-flash")
    job = next(j for j in shipped_jobs("rocksdb-flash", "published") if j.version == "7.2.2")

    words = build_command(workload.steps[0], Subject(workload), job, an_artifact(), HERE).argv

    assert words[0] == "/cache/db_bench"
    assert {
        "--benchmarks=fillrandom,stats",
        "--num=900000000",
        "--cache_size=6442450944",
        "--compression_type=zstd",
        "--level0_stop_writes_trigger=10485760",
        "--disable_auto_compactions=true",
        "--memtablerep=vector",
        "--disable_wal=true",
    } <= set(words)
    assert not [word for word in words if "rate_limit_delay" in word]


@pytest.mark.native
@pytest.mark.skipif(shutil.which("db_bench") is None, reason="needs db_bench (rocksdb-tools)")
def test_the_installed_db_bench_accepts_a_shipped_command(tmp_path: Path) -> None:
    workload = SHIPPED.workload("rocksdb-flash")
    job = next(j for j in shipped_jobs("rocksdb-flash", "smoke") if j.version == "7.8.3")
    job = replace(job, params={**job.params, "NUM_KEYS": 1000})
    placement = Placement(db_dir=str(tmp_path / "db"), wal_dir=str(tmp_path / "db"))
    command = build_command(workload.steps[0], Subject(workload), job, None, placement)

    done = subprocess.run(
        command.argv, env=command.env, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert "fillrandom" in done.stdout
