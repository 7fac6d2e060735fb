"""What a person can get wrong: one line that says what and where, one that says what to try."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fault_support import FAKE

from benchrunner.store import open_store

Program = Callable[..., tuple[int, str, str]]


@pytest.fixture
def program(in_process: Program, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The command line with the fake engine on the path."""
    monkeypatch.setenv("PATH", f"{FAKE / 'bin'}:/usr/bin:/bin")
    return in_process


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def fake_workload(name: str, old: str, new: str) -> None:
    """A copy of the fake workload with one thing changed."""
    text = (FAKE / "workloads" / "fake.toml").read_text()
    assert old in text
    write(f"workloads/{name}.toml", text.replace('"fake"', f'"{name}"', 1).replace(old, new))


CHOICES = [
    (
        ["plan", "fakee"],
        "there is no workload 'fakee'; did you mean 'fake'?",
        "benchrunner list workloads",
    ),
    (
        ["plan", "fake", "--variants", "DOI"],
        "there is no variant 'DOI' in fake; did you mean 'DIO'?",
        "",
    ),
    (["plan", "fake", "--scale", "smok"], "workload fake has no scale 'smok'", ""),
    (
        ["plan", "fake", "--set", "PAUS=1"],
        "--set PAUS: there is no parameter 'PAUS'; did you mean 'PAUSE'?",
        "",
    ),
    (["plan", "fake", "--set", "LIMIT=soon"], "LIMIT", ""),
    (["plan", "fake", "--set", "LIMIT"], "--set LIMIT: expected NAME=VALUE", "--set LIMIT=1"),
    (
        ["plan", "fake", "--set", "LIMIT=1", "--set", "LIMIT=2"],
        "--set LIMIT is given twice",
        "give it once",
    ),
    (["plan", "fake", "--axis", "NOPE=1,2"], "NOPE", ""),
    (["plan", "fake", "--exclude", "colour=red"], "colour", ""),
    (["plan", "fake", "--host", "lokal"], "there is no host 'lokal'; did you mean 'local'?", ""),
    (["plan", "fake", "--versions", "1.2.x.y"], "1.2.x.y", ""),
    (
        ["sweep", "fake", "--format", "wikki"],
        "--format wikki: there is no such form; did you mean 'wiki'?",
        "--format wiki,markdown,html,csv",
    ),
]


@pytest.mark.parametrize(("arguments", "message", "hint"), CHOICES, ids=lambda v: str(v)[:40])
def test_choices(program: Program, arguments: list[str], message: str, hint: str) -> None:
    code, out, err = program(*arguments, "--catalog", str(FAKE))
    assert (code, out) == (2, "")
    first, *rest = err.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert all(line.startswith("  try: ") for line in rest)
    assert hint in "".join(rest)
    assert not Path("results").exists(), "a mistake stores nothing"


FILES = [
    ("mode = ", "mod = ", "no version knows --mod"),
    ('tool      = "fake_bench"', 'tool      = "fake_bnch"', "did you mean 'fake_bench'?"),
    ('title  = "Fake workload"', 'titel  = "Fake workload"', "titel"),
    ('"{LIMIT}"', '"{LIMITT}"', "LIMITT"),
    ("[[variants]]", "[[varianst]]", "varianst"),
    ("seed  = 1", "seed  = 0", "has seed 0, which RocksDB replaces"),
    ('LOG       = "/dev/null"', "LOG       = /dev/null", "bad.toml:7:13"),
]


@pytest.mark.parametrize(("old", "new", "message"), FILES[1:], ids=lambda v: str(v)[:30])
def test_files(program: Program, old: str, new: str, message: str) -> None:
    fake_workload("bad", old, new)
    code, _, err = program("plan", "bad", "--catalog", str(FAKE))
    assert code == 2, err
    assert message in err.splitlines()[0]


def test_a_flag_that_no_version_knows(program: Program) -> None:
    text = (FAKE.parent.parent / "workloads" / "rocksdb-flash.toml").read_text()
    write("workloads/mistyped.toml", text.replace("bloom_bits ", "bloom_bitz ").replace(
        '"rocksdb-flash"', '"mistyped"', 1))  # fmt: skip
    code, _, err = program("plan", "mistyped", "--versions", "7.2.2", "--scale", "smoke")
    assert code == 2
    assert "no version knows --bloom_bitz; did you mean 'bloom_bits'?" in err


def test_an_unquoted_version_in_a_sweep_file(program: Program) -> None:
    write("sweeps/minors.toml", 'name = "minors"\nworkloads = ["rocksdb-flash"]\n'
          "[engines]\nrocksdb = [7.10]\n")  # fmt: skip
    code, _, err = program("plan", "minors")
    assert code == 2
    assert "engines.rocksdb[1]: 7.10 is not a version" in err
    assert '  try: quote it: "7.10"' in err


def test_a_sweep_file_with_an_unknown_key(program: Program) -> None:
    write("sweeps/minors.toml", 'name = "minors"\nworkloads = ["fake"]\nrepeats = 3\n')
    code, _, err = program("plan", "minors", "--catalog", str(FAKE))
    assert code == 2
    assert "repeats" in err
    assert "'repeat'" in err


@pytest.mark.parametrize(
    ("versions", "code", "message"),
    [
        ("1.0..1.1", 3, "error: rocksdb 1.0..1.1: no source has a version in this range"),
        ("9.9.9", 2, "9.9.9"),
        ("7.2.1", 2, "7.2.1"),
    ],
)
def test_versions_that_cannot_be_had(
    program: Program, versions: str, code: int, message: str
) -> None:
    found, _, err = program(
        "plan", "rocksdb-flash", "--versions", versions, "--scale", "smoke", "--source", "crate"
    )
    assert found == code, err
    assert message in err


def test_verbs_and_options(program: Program) -> None:
    assert program("swep")[::2] == (
        2,
        "Usage: benchrunner [OPTIONS] COMMAND [ARGS]...\nTry 'benchrunner --help' for help.\n\n"
        "Error: There is no verb 'swep'. Did you mean 'sweep'?\n",
    )
    code, _, err = program("plan", "fake", "--repeat", "0")
    assert code == 2
    assert "0 is not in the range 1<=x<=1000" in err
    code, _, err = program("status", "--dta", "x")
    assert code == 2
    assert "No such option" in err
    assert "--dta" in err


@pytest.mark.parametrize(
    "arguments",
    [["status"], ["resume"], ["parse", "--all"], ["report", "--page", "rocksdb-flash"]],
)
def test_no_store(program: Program, arguments: list[str]) -> None:
    code, out, err = program(*arguments)
    assert (code, out) == (2, "")
    assert err == (
        "error: there is no store at results/store.db\n  try: benchrunner sweep, or --data DIR\n"
    )
    assert not Path("results").exists(), "looking makes nothing"


def test_the_data_folder_is_a_file(program: Program) -> None:
    write("results", "my notes")
    for verb in (["status"], ["plan", "fake", "--catalog", str(FAKE)]):
        code, _, err = program(*verb)
        assert code == 2
        assert err == (
            "error: the results folder results is a file\n  try: name a folder: --data DIR\n"
        )
    assert Path("results").read_text() == "my notes"


def test_a_store_from_the_future(program: Program) -> None:
    import sqlite3

    open_store("results").close()
    with sqlite3.connect("results/store.db") as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    database.close()
    code, _, err = program("status")
    assert code == 2
    assert "has schema revision 9999, which this benchrunner does not know" in err
    assert "  try: upgrade benchrunner; a store is never downgraded\n" in err


def test_nothing_to_resume_or_to_show(program: Program) -> None:
    open_store("results").close()
    code, _, err = program("resume")
    assert code == 3
    assert err == (
        "error: every stored sweep has ended: there is nothing to go on with\n"
        "  try: benchrunner report --page WORKLOAD writes the page of what is stored\n"
    )
    code, _, err = program("resume", "7")
    assert code == 2
    assert err.startswith("error: there is no sweep 7 in results/store.db\n")
    code, _, err = program("report", "--page", "rocksdb-flash", "--scale", "smoke")
    assert code == 3
    assert err.startswith("error: the store has no finished trial of rocksdb-flash at smoke\n")
    code, _, err = program("report", "--page", "rocksdb-flash", "--format", "pdf")
    assert code == 2
    assert err.startswith("error: --format pdf: there is no such form\n")
    code, _, err = program("parse")
    assert code == 2
    assert err == "error: parse wants either --all or --sweep NUMBER\n  try: --all\n"
    code, _, err = program("parse", "--sweep", "9")
    assert code == 2
    assert "there is no sweep 9" in err
    code, out, _ = program("status")
    assert (code, out) == (
        0,
        "no sweeps yet; start one with: benchrunner sweep rocksdb-flash --scale smoke\n",
    )


def test_read(program: Program) -> None:
    code, _, err = program("read", "db_bench", "absent.log")
    assert code == 1
    assert "absent.log" in err
    assert "No such file" in err
    write("garbage.log", "}{ nothing that anybody knows\n")
    code, _, err = program("read", "db_bench", "garbage.log")
    assert code == 1
    assert err.startswith("error: garbage.log: the text is not db_bench's output")
    code, _, err = program("read", "db_bnch", "garbage.log")
    assert code == 2
    assert "there is no tool 'db_bnch'; did you mean 'db_bench'?" in err
    code, _, err = program("read", "db_bench", "a", "b", "--stderr", "c")
    assert code == 2
    assert err == "error: --stderr belongs to a single file\n  try: read them one by one\n"


def test_a_program_that_is_not_installed(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    code, _, err = program("plan", "fake", "--catalog", str(FAKE))
    assert code == 2
    assert "fake_bench is not installed\n  try: apt-get install -y fake_bench\n" in err


def test_a_catalog_that_is_not_there(program: Program) -> None:
    code, _, err = program("plan", "fake", "--catalog", "nowhere")
    assert code == 2
    assert err.startswith("error: --catalog nowhere is not a folder\n")
