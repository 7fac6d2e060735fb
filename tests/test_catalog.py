from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from catalog_support import Folder

from benchrunner.catalog import Catalog
from benchrunner.catalog_errors import WrittenFloat
from benchrunner.definitions import Host
from benchrunner.errors import ConfigurationError

ROOT = Path(__file__).parent.parent


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


# ---------------------------------------------------------------- what is shipped


@pytest.mark.parametrize("kind", ["workloads", "engines", "tools", "hosts"])
def test_every_shipped_file_is_valid(kind: str, tmp_path: Path) -> None:
    shipped = Catalog(working_directory=tmp_path, search_path=())

    names = shipped.names(kind)

    assert names
    for name in names:
        getattr(shipped, kind.removesuffix("s"))(name)


def test_shipped_metrics_are_valid(tmp_path: Path) -> None:
    shipped = Catalog(working_directory=tmp_path, search_path=())

    assert shipped.metric("ops_per_sec").better == "higher"
    assert shipped.metrics()["w_amp_lsm"].title == "W-Amp"
    assert shipped.names("metrics")[0] == "ops_per_sec"
    assert shipped.where("metrics", "ops_per_sec") == ROOT / "benchrunner" / "metrics.toml"


def test_shipped_workloads_are_the_repository_s(tmp_path: Path) -> None:
    shipped = Catalog(working_directory=tmp_path, search_path=())

    assert shipped.where("workloads", "rocksdb-flash") == ROOT / "workloads" / "rocksdb-flash.toml"
    assert {"rocksdb-flash", "rocksdb-compare", "fio-randread"} <= set(shipped.names("workloads"))
    assert shipped.template("page.wiki.j2") == ROOT / "templates" / "page.wiki.j2"


def test_the_flag_matrix_of_an_engine(folder: Folder) -> None:
    flags = folder.catalog().flags("rocksdb")

    assert flags["flags"]["hard_rate_limit"]["last"] == "6.29"


def test_the_reference_page_is_in_step() -> None:
    script = ROOT / "docs" / "make_reference.py"

    done = subprocess.run(
        [sys.executable, str(script), "--check"],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT)},
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_every_key_is_described() -> None:
    rows = [line for line in (ROOT / "docs/reference.md").read_text().splitlines() if "| `" in line]

    assert len(rows) > 90
    assert not [row for row in rows if row.endswith("|  |")]


def test_only_the_catalog_imports_pydantic() -> None:
    code = (
        "import sys, benchrunner.plan, benchrunner.command, benchrunner.effective\n"
        "assert 'pydantic' not in sys.modules\n"
        "import benchrunner.catalog\n"
        "assert 'pydantic' in sys.modules\n"
    )

    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(ROOT)})


# ---------------------------------------------------------------- where files are found


def test_the_first_folder_that_has_a_name_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [tmp_path / name for name in ("given", "here", "path")]
    for place in places:
        Folder(place).write("hosts/both.toml", f'name = "both"\naddress = "{place.name}"')
        Folder(place).write(f"hosts/{place.name}.toml", f'name = "{place.name}"')
    monkeypatch.chdir(places[1])
    monkeypatch.setenv("BENCHRUNNER_PATH", f"{places[2]}:/nowhere")

    assert Catalog(places[0]).host("both").address == "given"
    assert Catalog().host("both").address == "here"
    assert Catalog(working_directory=tmp_path).host("both").address == "path"
    assert Catalog(places[0]).names("hosts") == ("both", "given", "here", "local", "path")
    assert Catalog(places[0]).where("hosts", "both") == places[0] / "hosts" / "both.toml"


def test_this_machine_is_always_a_host(tmp_path: Path) -> None:
    catalog = Catalog(working_directory=tmp_path, search_path=())
    catalog._roots = [tmp_path]

    assert catalog.host("local") == Host(name="local")
    assert catalog.where("hosts", "local") is None
    assert catalog.names("hosts") == ("local",)


def test_added_folders_may_bring_metrics(folder: Folder) -> None:
    place = folder.write(
        "metrics.toml",
        '[my_rate]\ntitle = "mine"\nunit = "1/s"\nbetter = "higher"\ntext = "Mine."\n',
    )

    assert folder.catalog().metric("my_rate").title == "mine"
    assert folder.catalog().where("metrics", "my_rate") == place
    assert "ops_per_sec" in folder.catalog().metrics()


def test_the_catalog_folder_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"--catalog .*/nowhere is not a folder"):
        Catalog(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        (
            "workload",
            "rocksdb-falsh",
            "there is no workload 'rocksdb-falsh'; did you mean 'rocksdb-flash'?",
        ),
        ("tool", "db_bnch", "there is no tool 'db_bnch'; did you mean 'db_bench'?"),
        ("metric", "ops_per_se", "there is no metric 'ops_per_se'; did you mean 'ops_per_sec'?"),
        ("host", "../etc/passwd", "there is no host '../etc/passwd'"),
        ("engine", "rocks", "there is no engine 'rocks'; did you mean 'rocksdb'?"),
        ("sweep", "x", "there is no sweep 'x'"),
        (
            "template",
            "page.wik.j2",
            "there is no template 'page.wik.j2'; did you mean 'page.wiki.j2'?",
        ),
    ],
)
def test_an_unknown_name_is_told_with_the_nearest(
    folder: Folder, kind: str, name: str, message: str
) -> None:
    with pytest.raises(ConfigurationError) as error:
        getattr(folder.catalog(), kind)(name)

    assert error.value.message == message
    assert error.value.hint == ("" if kind == "template" else f"benchrunner list {kind}s")


def test_an_unknown_kind_is_told(folder: Folder) -> None:
    with pytest.raises(
        ConfigurationError, match=r"there is no kind 'workload'; did you mean 'workloads'"
    ):
        folder.catalog().names("workload")
    with pytest.raises(ConfigurationError, match="there is no host 'x'"):
        folder.catalog().where("hosts", "x")


# ---------------------------------------------------------------- files that are wrong


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "h"\naddress = \n', "h.toml:2:11: Invalid value"),
        ('name = "h"\nname = "i"\n', "h.toml:2:11: Cannot overwrite a value"),
        ('name = "h', "h.toml:1:10: Unterminated string"),
        ("", "h.toml: name is missing"),
        ('name = "h"\nadress = "x"', "h.toml: unknown key adress; did you mean 'address'?"),
        ('name = "h"\ntags = "x"', "h.toml: tags: expected a list in brackets, got 'x'"),
        ('name = "h"\naddress = 5', "h.toml: address: expected a text in quotes, got 5"),
        ('name = "h"\nenv = { A = true }', "h.toml: env.A: expected a text in quotes, got true"),
        ('name = "h"\nenv = 1.50', "h.toml: env: expected a table, got 1.50"),
        ('name = "h"\ntags = [["a"]]', "h.toml: tags[1]: expected a text in quotes, got a list"),
        ('name = "h"\nenv = { A = {} }', "h.toml: env.A: expected a text in quotes, got a table"),
        ('name = "i"', "h.toml: name is 'i', but the file is called h.toml"),
        (
            'name = "../h"',
            "h.toml: name: expected a name of letters, digits, '.', '_' and '-' that starts with a "
            "letter or digit, got '../h'",
        ),
    ],
)
def test_a_wrong_host_is_one_clear_line(folder: Folder, text: str, message: str) -> None:
    folder.write("hosts/h.toml", text)

    with pytest.raises(ConfigurationError) as error:
        folder.catalog().host("h")

    assert error.value.message == f"{folder.root}/hosts/{message}"


def test_a_file_that_is_not_text(folder: Folder) -> None:
    folder.write("hosts/h.toml", "").write_bytes(b'name = "\xff"')

    with pytest.raises(ConfigurationError, match=r"h\.toml is not UTF-8 text: byte 8"):
        folder.catalog().host("h")


def test_a_file_that_cannot_be_read(folder: Folder) -> None:
    (folder.root / "hosts" / "h.toml").mkdir(parents=True)

    with pytest.raises(ConfigurationError, match=r"h\.toml cannot be read: Is a directory"):
        folder.catalog().host("h")


def test_a_wrong_metric_names_its_table(folder: Folder) -> None:
    folder.write("metrics.toml", '[mine]\ntitle = "x"\nunit = "s"\nbetter = "more"\ntext = ""')

    with pytest.raises(ConfigurationError) as error:
        folder.catalog().metrics()

    assert "mine.better: expected 'higher', 'lower' or 'neither', got 'more'" in error.value.message


@pytest.mark.parametrize(
    ("sweep", "message", "hint"),
    [
        (
            "[engines]\nrocksdb = [7.10]",
            "engines.rocksdb[1]: 7.10 is not a version",
            'quote it: "7.10"',
        ),
        ("[engines]\nrocksdb = [7]", "engines.rocksdb[1]: 7 is not a version", 'quote it: "7"'),
        (
            "[baseline]\nversion = 7.20",
            "baseline.version: 7.20 is not a version",
            'quote it: "7.20"',
        ),
        (
            "[[exclude]]\nversion = 7.10",
            "exclude[1].version: 7.10 is not a version",
            'quote it: "7.10"',
        ),
        ("repeat = 0", "repeat: expected greater than or equal to 1, got 0", ""),
        ("hosts = ['lokal']", "hosts: there is no host 'lokal'; did you mean 'local'?", ""),
        ("order = 'random'", "order: expected 'interleaved' or 'grouped', got 'random'", ""),
    ],
)
def test_a_wrong_sweep_is_one_clear_line(
    folder: Folder, sweep: str, message: str, hint: str
) -> None:
    folder.write("sweeps/s.toml", f'name = "s"\nworkloads = ["rocksdb-flash"]\n{sweep}')

    with pytest.raises(ConfigurationError) as error:
        folder.catalog().sweep("s")

    assert error.value.message == f"{folder.root}/sweeps/s.toml: {message}"
    assert hint in error.value.hint


def test_a_sweep_that_is_right(folder: Folder) -> None:
    folder.write(
        "sweeps/s.toml",
        'name = "s"\nworkloads = ["rocksdb-flash"]\nset = { X = 1.50 }\n'
        '[[exclude]]\nversion = "7.10"\n',
    )

    assert folder.catalog().sweep("s").set == {"X": 1.5}


def test_patterns_are_checked(folder: Folder) -> None:
    folder.write("tools/t.toml", "name = 't'\n[[output]]\npattern = '(x'")
    folder.write("engines/e.toml", "name='e'\ntitle='e'\nsource=[]\n[build]\ncount='['")

    with pytest.raises(
        ConfigurationError, match=r"t\.toml: output: '\(x' is not a regular expression"
    ):
        folder.catalog().tool("t")
    with pytest.raises(
        ConfigurationError, match=r"e\.toml: build: '\[' is not a regular expression"
    ):
        folder.catalog().engine("e")


def test_a_flag_matrix_that_is_wrong(folder: Folder) -> None:
    folder.write("engines/e.toml", "name='e'\ntitle='e'\nsource=[]\nflags='f.json'")
    folder.write("engines/plain.toml", "name='plain'\ntitle='e'\nsource=[]")

    assert folder.catalog().flags("plain") == {}
    with pytest.raises(ConfigurationError, match=r"f\.json cannot be read: No such file"):
        folder.catalog().flags("e")
    folder.write("engines/f.json", "{")
    with pytest.raises(ConfigurationError, match=r"f\.json is not JSON"):
        folder.catalog().flags("e")
    folder.write("engines/f.json", "{}")
    with pytest.raises(ConfigurationError, match=r"f\.json has no table of flags"):
        folder.catalog().flags("e")


def test_a_written_float_is_a_float() -> None:
    assert WrittenFloat("1_0.50") == 10.5
    assert WrittenFloat("7.10").text == "7.10"
