"""Plans over several engines: which versions, which steps, which flags, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from engines_support import write_engine, write_workload
from fault_support import FAKE

from benchrunner.catalog import Catalog
from benchrunner.cli.choosing import engine_versions
from benchrunner.definitions import Sweep
from benchrunner.errors import ConfigurationError
from benchrunner.model import MISSING, FlagNote, SourceRef
from benchrunner.pipeline import dry_commands
from benchrunner.plan import make_plan
from benchrunner.selection import select_versions
from benchrunner.session import Session, Settings

if TYPE_CHECKING:
    from benchrunner.model import Plan

Program = Callable[..., tuple[int, str, str]]

TREES = """
name = "trees"
title = "Trees"
default = "{default}"
max_threads = 2
[[source]]
kind = "archive"
versions = {{ "1.20" = "{folder}/a-1.20.tar", "1.23" = "{folder}/a-1.23.tar" }}
[args]
engine = "leveldb"
engine_opt = ["cache_size={{NUM * 2}}", "bloom_bits=1"]
"""


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{FAKE / 'bin'}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    write_engine(tmp_path, "one", binary="fake_bench")
    write_engine(tmp_path, "absent", binary="no-such-program")
    trees(tmp_path)
    write_workload(tmp_path, "one", "trees", "absent")
    return tmp_path


def trees(folder: Path, default: str = "") -> None:
    for version in ("1.20", "1.23"):
        (folder / f"a-{version}.tar").touch()
    (folder / "engines" / "trees.toml").write_text(TREES.format(folder=folder, default=default))


def prepared(catalog: Path, **changes: object) -> tuple[Plan, dict[str, list[SourceRef]]]:
    session = Session(Settings("results", catalog / "cache", catalog))
    sweep = Sweep.model_validate({"name": "s", "workloads": ["small"], **changes})
    refs, _ = select_versions(session, sweep)
    return make_plan(sweep, session.catalog, refs), refs


def versions(refs: dict[str, list[SourceRef]]) -> dict[str, list[str]]:
    return {engine: [ref.version for ref in found] for engine, found in refs.items()}


# ---------------------------------------------------------------- versions


def test_without_a_version_the_default_or_the_newest_is_taken(catalog: Path) -> None:
    _, refs = prepared(catalog)
    assert versions(refs) == {"one": ["1.2.3"], "trees": ["1.23"], "absent": ["newest"]}
    trees(catalog, default="1.20")
    _, refs = prepared(catalog, engines={"trees": []})
    assert versions(refs) == {"trees": ["1.20"]}


def test_several_versions_of_one_engine(catalog: Path) -> None:
    plan, refs = prepared(catalog, engines={"trees": ["1.20", "1.23"]}, variants=["local"])
    assert versions(refs) == {"trees": ["1.20", "1.23"]}
    assert [(t.job.engine, t.job.version) for t in plan.trials] == [
        ("trees", "1.20"), ("trees", "1.23"),
    ]  # fmt: skip


def test_an_engine_that_cannot_be_had_is_planned_to_be_skipped(catalog: Path) -> None:
    plan, refs = prepared(catalog)
    (missing,) = refs["absent"]
    assert (missing.kind, missing.ref) == (MISSING, "")
    assert missing.note.startswith("absent cannot be had: ")
    assert ("absent newest", missing.note) in plan.skipped
    assert {t.job.engine for t in plan.trials} == {"one", "trees", "absent"}


def test_a_kind_of_source_that_only_some_engines_have(catalog: Path) -> None:
    _, refs = prepared(catalog, sources=["archive"])
    assert versions(refs)["trees"] == ["1.23"]
    assert refs["one"][0].kind == MISSING


def test_a_version_that_no_source_has_is_a_mistake(catalog: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no source has trees '1\.21\.0'"):
        prepared(catalog, engines={"trees": ["1.21.0"]})


# ---------------------------------------------------------------- steps and commands


def test_steps_beyond_an_engines_threads_are_left_out(catalog: Path) -> None:
    plan, _ = prepared(catalog, set={"THREADS": "1,2,3"}, variants=["local"])
    steps = {t.job.engine: t.job.steps for t in plan.trials}
    assert steps["one"] == ("load", "run-1", "run-2", "run-3")
    assert steps["trees"] == ("load", "run-1", "run-2")
    assert ("trees 1.23: run-3", "the engine serves at most 2 threads") in plan.skipped


def test_the_policy_can_be_asked_for(catalog: Path) -> None:
    plan, _ = prepared(catalog, engines={"one": []}, policy="pristine")
    assert {t.job.policy for t in plan.trials} == {"pristine"}


def test_the_engines_arguments_are_given_and_repeated(catalog: Path) -> None:
    plan, _ = prepared(catalog, engines={"trees": []}, variants=["local"])
    ((_, command_of),) = dry_commands(Catalog(catalog), plan)
    command = command_of("run-2")
    assert command.argv[-5:] == (
        "--threads=2", "--duration=1", "--engine=leveldb",
        "--engine_opt=cache_size=4000", "--engine_opt=bloom_bits=1",
    )  # fmt: skip
    notes = [note for note in command.flags if note.flag == "engine_opt"]
    assert notes[1] == FlagNote("engine_opt", "bloom_bits=1", "--engine_opt=bloom_bits=1", "given")


def test_the_settings_of_a_variant_come_after_the_engines(catalog: Path) -> None:
    path = catalog / "workloads" / "small.toml"
    old = '[[variants]]\nname = "local"\n'
    options = 'options = { engine_opt = ["bloom_bits=9"], num = 7 }\n'
    path.write_text(path.read_text().replace(old, old + options))
    plan, _ = prepared(catalog, engines={"trees": []}, variants=["local"])
    ((_, command_of),) = dry_commands(Catalog(catalog), plan)
    argv = command_of("load").argv
    assert argv[-2:] == ("--engine_opt=bloom_bits=1", "--engine_opt=bloom_bits=9")
    assert "--num=7" in argv


def test_memory_that_no_host_has_stands_in_the_way(catalog: Path, in_process: Program) -> None:
    path = catalog / "workloads" / "small.toml"
    path.write_text(path.read_text() + '[estimate]\nmemory = "NUM * 2 ** 40"\n')
    arguments = ["plan", "small", "--catalog", str(catalog), "--engines", "one"]
    code, out, err = in_process(*arguments)
    assert code == 2
    assert "memory: about 2.0 PiB" in out
    assert " of memory, and a trial needs about 2.0 PiB" in err


# ---------------------------------------------------------------- what a person can get wrong

MISTAKES = [
    (["--engines", "tree"], "--engines tree: workload small has no engine 'tree'; did you mean"),
    (["--engines", "trees@1.21.0"], "no source has trees '1.21.0'"),
    (["--engines", "one,one"], "--engines one,one: one is there twice"),
    (["--engines", "trees@1.20,trees"], "trees is there twice"),
    (["--engines", "trees@"], "--engines trees@: no version stands after the @"),
    (["--engines", ","], "--engines names no engine"),
    (["--engines", ""], "--engines names no engine"),
    (["--versions", "1.20"], "--versions: workload small has 3 engines, each with versions of its"),
    (["--threads", "0"], "THREADS=0: '0' is not a whole number from 1 on"),
    (["--threads", "many"], "THREADS=many: 'many' is not a whole number from 1 on"),
    (["--threads", ""], "THREADS is empty: it must hold at least one value"),
    (["--threads", "1", "--set", "THREADS=2"], "--threads and --set THREADS are the same"),
    (["--threads", "5000"], "step run-5000 of small asks for 5000 threads, and kvbench can make 4"),
    (["--variants", "locl"], "there is no variant 'locl' in small; did you mean 'local'?"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES, ids=lambda v: str(v)[:40])
def test_mistakes_get_one_line(
    catalog: Path, in_process: Program, arguments: list[str], message: str
) -> None:
    del catalog
    code, out, err = in_process("plan", "small", "--catalog", ".", *arguments)
    assert (code, out) == (2, ""), err
    first, *rest = err.splitlines()
    assert message in first
    assert [line[:7] for line in rest] == ["  try: "]
    assert not Path("results").exists()


def test_a_workload_with_one_engine_takes_no_engines(catalog: Path, in_process: Program) -> None:
    del catalog
    code, _, err = in_process("plan", "fake", "--catalog", str(FAKE), "--engines", "fake")
    assert code == 2
    assert err.startswith("error: workload fake is for one engine, fake; --engines is for")
    code, _, err = in_process("plan", "fake", "--catalog", str(FAKE), "--threads", "2")
    assert (code, "workload fake has no parameter THREADS" in err) == (2, True)


def test_one_engine_and_its_versions_apart(catalog: Path, in_process: Program) -> None:
    arguments = ["--engines", "trees", "--versions", "1.20", "--variants", "local"]
    code, out, err = in_process("plan", "small", "--catalog", str(catalog), *arguments)
    assert code == 0, err
    assert "trees   1.20" in out


def test_a_sweep_file_may_not_name_a_strange_engine(catalog: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"small has no engine 'rocksdb'"):
        make_plan(
            Sweep(name="s", workloads=["small"], engines={"rocksdb": []}), Catalog(catalog), {}
        )


def test_engines_and_versions_are_read_from_one_list(catalog: Path) -> None:
    workload = Catalog(catalog).workload("small")
    assert engine_versions(workload, "one, trees@1.20,trees@1.22..1.23") == {
        "one": [], "trees": ["1.20", "1.22..1.23"],
    }  # fmt: skip


# ---------------------------------------------------------------- files

FILES = [
    ("engines = [", 'engine = "one"\nengines = [', "both engine and engines are there"),
    ('engines = ["one", "trees", "absent"]', "", "engine is missing"),
    ('"trees", "absent"', '"trees", "one"', "engines: 'one' is there twice"),
    ('"trees"', '"tres"', "engines: there is no engine 'tres'; did you mean 'trees'?"),
    ('each = "THREADS"', 'each = "THREDS"', "steps.run.each: there is no parameter 'THREDS'"),
    ('each = "THREADS"', 'each = "NUM"', "steps.run.each: parameter NUM is no list"),
    ('THREADS = "1,2"', 'THREADS = "1,1"', "THREADS=1,1: 1 is there twice"),
    ("NUM = 2000", "COUNT = 2000", "there is no parameter 'NUM'"),
    ('each = "THREADS"', 'part_of = "run"', "steps.run.part_of: there is no earlier step 'run'"),
]


@pytest.mark.parametrize(("old", "new", "message"), FILES, ids=lambda v: str(v)[:40])
def test_files_are_checked(catalog: Path, old: str, new: str, message: str) -> None:
    path = catalog / "workloads" / "small.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(ConfigurationError) as error:
        Catalog(catalog).workload("small")
    assert message in error.value.message
    assert str(path) in error.value.message


def test_the_templates_of_engines_are_checked(catalog: Path) -> None:
    write_engine(catalog, "one", options='["cache_size={CACHE}"]')
    with pytest.raises(ConfigurationError, match=r"engine one: args\.engine_opt.*'CACHE'"):
        Catalog(catalog).workload("small")


def test_an_engine_has_what_its_base_has(catalog: Path) -> None:
    row = 'name = "row"\ntitle = "Row"\nbase = "trees"\n[args]\nengine = "leveldb"\n'
    (catalog / "engines" / "row.toml").write_text(row)
    found = Catalog(catalog).engine("row")
    base = Catalog(catalog).engine("trees")
    assert (found.source, found.build, found.built_as) == (base.source, base.build, "trees")
    assert (found.title, found.args) == ("Row", {"engine": "leveldb"})
    assert (base.built_as, found.max_threads) == ("trees", None)


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("tres", "base: there is no engine 'tres'; did you mean 'trees'?"),
        ("row", "base: an engine is not its own base"),
        ("other", "base: other has a base itself"),
    ],
)
def test_bases_are_checked(catalog: Path, base: str, message: str) -> None:
    engines = catalog / "engines"
    (engines / "row.toml").write_text(f'name = "row"\ntitle = "Row"\nbase = "{base}"\n')
    (engines / "other.toml").write_text('name = "other"\ntitle = "Other"\nbase = "trees"\n')
    with pytest.raises(ConfigurationError) as error:
        Catalog(catalog).engine("row")
    assert message in error.value.message


def test_an_engine_without_sources_is_refused(catalog: Path) -> None:
    (catalog / "engines" / "row.toml").write_text('name = "row"\ntitle = "Row"\n')
    with pytest.raises(ConfigurationError, match=r"row\.toml: source is missing"):
        Catalog(catalog).engine("row")


def test_a_tool_has_one_owner(catalog: Path) -> None:
    (catalog / "tools").mkdir()
    (catalog / "tools" / "t.toml").write_text('name = "t"\nof_job = true\nengine = "one"\n')
    with pytest.raises(ConfigurationError, match=r"t\.toml: engine and of_job are there"):
        Catalog(catalog).tool("t")
