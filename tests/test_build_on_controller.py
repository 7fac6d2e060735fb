"""Binaries built here for a host that does not compile: checked, sent once, tried there."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from build_host import Far
from hypothesis import given
from hypothesis import strategies as st
from source_support import tiny_engine

from benchrunner.build import refused
from benchrunner.building.fitness import (
    Machine,
    machine_of,
    misfits,
    needed_features,
    newest_glibc,
)
from benchrunner.building.site import this_machine
from benchrunner.model import Artifact
from benchrunner.transports import Completed

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchrunner.definitions import Engine

pytestmark = pytest.mark.native


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Far:
    for name in ("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "CCACHE_BASEDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "ccache"))
    far = Far(tmp_path, "/nothing/is/started/there")
    far.site = far.new_site(build="controller")
    return far


def portable(far: Far) -> Engine:
    return far.engine(portable_env={"EXTRA_CFLAGS": "-DPORTABLE"})


def output(text: str, *, exit_code: int = 0, stderr: str = "") -> Callable[[Completed], Completed]:
    """What a host answers instead."""
    return lambda _done: Completed(exit_code, text.encode(), stderr.encode())


def facts(**changes: str) -> Callable[[Completed], Completed]:
    """This machine's facts with something else in them."""

    def change(done: Completed) -> Completed:
        arch, libc, *rest = done.stdout.decode().splitlines()
        lines = [changes.get("arch", arch), changes.get("libc", libc)]
        if "flags" in changes:
            rest = [f"flags : {changes['flags']}"]
        return Completed(0, "\n".join([*lines, *rest]).encode(), b"")

    return change


# ---------------------------------------------------------------- sent


def test_what_is_built_here_is_sent_and_runs_there(far: Far) -> None:
    artifact = far.build(portable(far))
    assert (artifact.state, artifact.reason) == ("built", "")
    digest = artifact.sha256["tiny_bench"]
    path = far.remote / "binaries" / digest / "tiny_bench"
    assert artifact.binaries == {"tiny_bench": str(path)}
    done = subprocess.run([path], capture_output=True, text=True, check=True)
    assert done.stdout == "tiny_bench version 1.2.3\n"
    assert artifact.build_flags["EXTRA_CFLAGS"] == "-DPORTABLE"
    assert artifact.build_flags["host"] == "far"
    assert artifact.build_flags["built_on"] == "controller"
    assert (far.cache / "artifacts") in Path(artifact.log).parents


def test_it_is_built_and_sent_once(far: Far) -> None:
    first = far.build(portable(far))
    assert far.build(portable(far)) == first
    assert far.wire.sent == ["tiny_bench"]
    assert far.compiled == 2


def test_a_binary_that_is_not_what_was_sent_is_sent_again(far: Far) -> None:
    artifact = far.build(portable(far))
    path = Path(artifact.binaries["tiny_bench"])
    path.write_bytes(b"something else")
    assert far.build(portable(far)) == artifact
    assert far.notes == [f"{path} on far is not what was sent; sending it again"]
    assert far.wire.sent == ["tiny_bench"] * 2


def test_the_portable_build_is_another_one_and_leaves_other_keys_alone(far: Far) -> None:
    ours = far.build(portable(far), site=None)
    assert ours.build_flags.get("EXTRA_CFLAGS") is None
    assert far.build(far.engine(), site=None).id == ours.id
    assert far.build(portable(far)).state == "built"
    assert far.compiled == 4


def test_a_build_that_fails_here_is_a_failure_there(far: Far) -> None:
    artifact = far.build(far.engine(commands=[["make", "no-such-target"]]))
    assert artifact.state == "failed"
    assert artifact.build_flags["host"] == "far"
    assert "no-such-target" in artifact.reason


def test_a_missing_compression_is_to_be_mended_here(far: Far) -> None:
    reason = refused(far.build(portable(far)), "snappy").reason
    assert reason.startswith(
        "it was built without snappy (it has lz4, zstd); install libsnappy-dev"
    )
    assert reason.endswith(f"and remove {next((far.cache / 'artifacts').glob('*/'))}")


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"arch": "riscv64"},
            f"it is for {os.uname().machine}, and the host is riscv64; "
            'try: build = "host" in hosts/far.toml',
        ),
        (
            {"libc": "glibc 2.0"},
            'it needs glibc 2.%d, and the host has glibc 2.0; try: build = "host" in '
            "hosts/far.toml, or run benchrunner on a system as old as the host's",
        ),
        (
            {"libc": ""},
            'it needs glibc 2.%d, and the host has no glibc; try: build = "host" in '
            "hosts/far.toml, or run benchrunner on a system as old as the host's",
        ),
    ],
)
def test_another_machine_or_libc_is_refused_before_anything_is_sent(
    far: Far, changes: dict[str, str], reason: str
) -> None:
    far.wire.answers.append(("GNU_LIBC_VERSION", facts(**changes)))
    artifact = far.build(portable(far))
    assert artifact.state == "refused"
    told = re.sub(r"needs glibc 2\.\d+", "needs glibc 2.%d", artifact.reason)
    assert told == f"what was built here cannot run on far: {reason}"
    assert far.wire.sent == []


def test_an_older_processor_is_refused_unless_the_recipe_is_portable(far: Far) -> None:
    far.wire.answers.append(("GNU_LIBC_VERSION", facts(flags="fpu sse sse2")))
    native = far.engine(env={"OTHER": "-march=x86-64-v2"})
    artifact = far.build(native)
    assert artifact.state == "refused"
    assert artifact.reason == (
        "what was built here cannot run on far: it may use instructions that the host's processor "
        'has not (cx16, lahf_lm, popcnt, sse4_1, sse4_2 and 1 more); try: build = "host" in '
        "hosts/far.toml, or portable_env in the engine's [build] that makes it do without"
    )
    assert far.build(portable(far)).state == "built"


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (
            output("\tlibc.so.6 => not found\n\tlibno-one.so.1 => not found\n"),
            "the host has no libc.so.6, libno-one.so.1; try: apt-get install -y libc6 there",
        ),
        (
            output("\tlibno-one.so.1 => not found\n"),
            "the host has no libno-one.so.1; try: install these libraries there",
        ),
        (
            output("", stderr="x: libstdc++.so.6: version `GLIBCXX_3.4.99' not found (by x)\n"),
            "its libraries there are too old (GLIBCXX_3.4.99); "
            'try: build = "host" in hosts/far.toml',
        ),
    ],
)
def test_libraries_that_are_not_there_are_named(
    far: Far, printed: Callable[[Completed], Completed], reason: str
) -> None:
    far.wire.answers.append(("ldd", printed))
    artifact = far.build(portable(far))
    assert artifact.state == "refused"
    assert artifact.reason == f"what was built here cannot run on far: {reason}"


@pytest.mark.parametrize(
    ("answer", "how"),
    [
        (output("", exit_code=-4), "ended with -4"),
        (output("", exit_code=132), "ended with 132"),
        (
            output("", exit_code=126, stderr="Exec format error\n"),
            "ended with 126 (Exec format error)",
        ),
    ],
)
def test_a_program_that_does_not_start_there_is_refused(
    far: Far, answer: Callable[[Completed], Completed], how: str
) -> None:
    far.wire.answers.append(("--help", answer))
    artifact = far.build(portable(far))
    path = far.remote / "binaries" / artifact.sha256["tiny_bench"] / "tiny_bench"
    assert artifact.state == "refused"
    assert artifact.reason == (
        f"what was built here cannot run on far: its --help {how} there; "
        f"try: run it by hand there: {path} --help"
    )


def test_a_program_that_takes_its_time_over_help_has_started(far: Far) -> None:
    far.wire.answers.append(("--help", output("", exit_code=124)))
    assert far.build(portable(far)).state == "built"


# ---------------------------------------------------------------- rules

HERE = Machine("x86_64", (2, 36), frozenset({"fpu", "hypervisor", "sse4_2", "avx2", "avx512f"}))
ARTIFACT = Artifact("id", "tiny", "1", "path", "r", "built")


@pytest.mark.parametrize(
    ("flags", "env", "needs"),
    [
        ("", {}, {"sse4_2", "avx2", "avx512f"}),
        ("", {"PORTABLE": "1"}, set()),
        ("-O2 -march=native", {"PORTABLE": "1"}, {"sse4_2", "avx2", "avx512f"}),
        ("-march=x86-64", {}, set()),
        ("-march=nehalem", {}, {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}),
        ("-march=made-up", {}, {"sse4_2", "avx2", "avx512f"}),
    ],
)
def test_what_the_flags_say_of_the_processor(
    flags: str, env: dict[str, str], needs: set[str]
) -> None:
    engine = tiny_engine(portable_env=env)
    built = replace(ARTIFACT, build_flags={"CXXFLAGS": flags, "target": "t"})
    assert needed_features(built, engine, HERE) == needs


def test_on_other_machines_every_feature_counts() -> None:
    arm = Machine("aarch64", (2, 36), frozenset({"fp", "asimd", "crc32"}))
    assert needed_features(ARTIFACT, tiny_engine(), arm) == arm.flags


FEATURES = st.frozensets(st.sampled_from(["avx", "avx2", "bmi1", "sse4_2"]))
LIBC = st.tuples(st.integers(2, 3), st.integers(0, 50))


@given(FEATURES, LIBC, FEATURES, LIBC)
def test_a_host_that_has_all_that_is_needed_is_never_refused(
    needs: frozenset[str], glibc: tuple[int, int], has: frozenset[str], libc: tuple[int, int]
) -> None:
    here = Machine("x86_64", (3, 50), frozenset())
    there = Machine("x86_64", libc, has)
    fits = needs <= has and glibc <= libc
    assert (not list(misfits(here, there, needs, [glibc, None], "far"))) is fits


def test_the_newest_glibc_is_what_the_linker_says(far: Far) -> None:
    binary = Path(far.build(portable(far)).binaries["tiny_bench"])
    listed = subprocess.run(
        ["readelf", "--version-info", str(binary)], capture_output=True, text=True, check=True
    ).stdout
    versions = [(int(a), int(b)) for a, b in re.findall(r"GLIBC_(\d+)\.(\d+)", listed)]
    assert newest_glibc(binary) == max(versions)


def test_a_program_without_symbol_versions(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert newest_glibc(script) is None


def test_this_machine_describes_itself(tmp_path: Path) -> None:
    machine = machine_of(this_machine(tmp_path))
    assert machine.arch == os.uname().machine
    assert machine.libc is None or machine.libc > (2, 0)
    assert machine.flags
