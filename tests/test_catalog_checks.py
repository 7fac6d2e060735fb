from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from catalog_support import WORKLOAD, Folder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_version_in_a_rule_wants_quotes(folder: Folder) -> None:
    rule = '[[rule]]\nflag = "x"\naction = "drop"\nsince = 7.0\n'

    error = folder.workload_error(WORKLOAD + rule)

    assert error.message.endswith("mine.toml: rule[1].since: 7.0 is not a version")
    assert error.hint == 'quote it: "7.0"'


def test_a_workload_that_is_right(folder: Folder) -> None:
    folder.write("workloads/mine.toml", WORKLOAD)
    catalog = folder.catalog()

    assert catalog.workload("mine").steps[0].use == ["common"]
    assert catalog.workload("mine") is catalog.workload("mine")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'engine = "fio"',
            'engine = "foi"',
            "engine: there is no engine 'foi'; did you mean 'fio'?",
        ),
        (
            'tool = "fio"\nuse',
            'tool = "foi"\nuse',
            "steps.load.tool: there is no tool 'foi'; did you mean",
        ),
        (
            '["common"]',
            '["comon"]',
            "steps.load.use: there is no argument set 'comon'; did you mean 'common'?",
        ),
        ('name = "read"', 'name = "load"', "steps: 'load' is there twice"),
        (
            'name = "read"',
            'name = "read"\npart_of = "red"',
            "steps.read.part_of: there is no earlier step 'red'",
        ),
        ('name = "read"', 'name = "read"\npart_of = "read"', "there is no earlier step 'read'"),
        (
            'name = "read"',
            'name = "read"\nargz = {}',
            "unknown key steps.read.argz; did you mean 'args'?",
        ),
        (
            'name = "read"',
            'name = "read"\nstate = "keep"',
            "steps.read.state: expected 'creates', 'keeps' or 'changes', got 'keep'; did you mean "
            "'keeps'?",
        ),
        (
            'name = "read"',
            'name = "read"\nrequires = "6.19+"',
            "steps.read.requires: '6.19+' is not a condition on versions",
        ),
        (
            'name = "read"',
            'name = "read"\nseconds = "{NUM / (RATIO - 0.5)}"',
            "steps.read.seconds: '{NUM / (RATIO - 0.5)}' cannot be calculated",
        ),
        (
            'name = "read"',
            'name = "read"\ntext = "{NUMB:,}"',
            "steps.read.text: there is no parameter or metric 'NUMB'; did you mean 'NUM'?",
        ),
        (
            'name = "read"',
            'name = "read"\ntext = "{NUM"',
            "steps.read.text: expected '}' before end of string",
        ),
        (
            "NUM = 10\n",
            "NUMB = 10\n",
            "scale.smoke.NUMB: there is no parameter 'NUMB'; did you mean 'NUM'?",
        ),
        ("NUM = 10\n", 'NUM = "ten"\n', "scale.smoke.NUM: 'ten' is not a whole number"),
        ('"smoke"', '"smok"', "default_scale: there is no scale 'smok'; did you mean 'smoke'?"),
        (
            "NUM = 1000",
            "NUM = 1000\ndb_dir = 1",
            "params.db_dir cannot be used as a name in templates",
        ),
        ("NUM = 1000", "NUM = 1000\n'A-B' = 1", "params.A-B cannot be used as a name in templates"),
        (
            '"{SIZE}"',
            '"{SIZ}"',
            "args.common.size: '{SIZ}': there is no parameter 'SIZ'; did you mean 'SIZE'?",
        ),
        (
            '"a", "{NUM}"',
            '"a", "{NUMM}"',
            "steps.load.args.many: '{NUMM}': there is no parameter 'NUMM'",
        ),
    ],
)
def test_a_workload_that_does_not_fit_is_one_clear_line(
    folder: Folder, old: str, new: str, message: str
) -> None:
    assert old in WORKLOAD

    error = folder.workload_error(WORKLOAD.replace(old, new, 1))

    assert error.message.startswith(f"{folder.root}/workloads/mine.toml: ")
    assert message in error.message


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            '[[page.tables]]\nstep = "red"\ncolumns = []',
            "page.tables[1].step: there is no step 'red'; did you mean 'read'?",
        ),
        (
            '[[page.tables]]\nstep = "read"\ncolumns = ["ops_per_se"]',
            "page.tables[1].columns: there is no metric 'ops_per_se'; did you mean 'ops_per_sec'?",
        ),
        (
            '[[page.tables]]\nstep = "read"\ncolumns = [{ metric = "p50_us", step = "x" }]',
            "page.tables[1].columns: there is no step 'x'",
        ),
        (
            '[[page.tables]]\nstep = "read"\ncolumns = [{ metrik = "p50_us" }]',
            "unknown key page.tables[1].columns[1].metrik; did you mean 'metric'?",
        ),
        (
            '[[page.charts]]\nstep = "read"\nkind = "by-version"\nmetric = "x"',
            "page.charts[1]: there is no metric 'x'",
        ),
        (
            '[page]\nappendix = ["fio-rand"]',
            "page.appendix: there is no workload 'fio-rand'; did you mean 'fio-randread'?",
        ),
        ('[page]\nintro = "{nothing}"', "page.intro: there is no parameter or metric 'nothing'"),
        ('[page]\nsetup = ["{NUM}", "{x}"]', "page.setup[2]: there is no parameter or metric 'x'"),
        ('[ceiling]\nworkload = "x"', "ceiling.workload: there is no workload 'x'"),
        (
            '[ceiling]\nworkload = "fio-randread"\ntaints = { ops_per_sec = "x" }',
            "ceiling.taints: there is no metric 'x'",
        ),
        ('[estimate]\ndisk = "NUM * X"', "estimate.disk: 'NUM * X': there is no parameter 'X'"),
        ('[estimate]\nmemory = "X"', "estimate.memory: 'X': there is no parameter 'X'"),
        ('[pinned]\nx = "{X}"', "pinned.x: '{X}': there is no parameter 'X'"),
        (
            '[[variants]]\nname = "A"\noptions = { x = "{Y}" }',
            "variants.A.options.x: '{Y}': there is no parameter 'Y'",
        ),
        (
            '[[variants]]\nname = "A"\nwrap = ["{Y}"]',
            "variants.A.wrap: '{Y}': there is no parameter 'Y'",
        ),
        (
            '[[variants]]\nname = "A"\nenv = { Z = "{Y}" }',
            "variants.A.env.Z: '{Y}': there is no parameter 'Y'",
        ),
        ('[[variants]]\nname = "A"\n[[variants]]\nname = "A"', "variants: 'A' is there twice"),
        ('[[rule]]\nflag = "x"\naction = "rename"', "rule.x: a rename needs to = the new flag"),
        ('[[rule]]\nflag = "x"\naction = "set"', "rule.x: set needs a value"),
        (
            '[[rule]]\nflag = "x"\naction = "drop"\nuntil = "main"',
            "rule.x: 'main' is not a version",
        ),
        (
            '[[rule]]\nflag = "x"\naction = "drop"\nunitl = "7"',
            "unknown key rule[1].unitl; did you mean 'until'?",
        ),
    ],
)
def test_more_of_a_workload_that_does_not_fit(folder: Folder, more: str, message: str) -> None:
    assert message in folder.workload_error(f"{WORKLOAD}\n{more}").message


def test_a_value_of_no_allowed_type_names_all_of_them(folder: Folder) -> None:
    error = folder.workload_error(WORKLOAD.replace("num = ", "num = {}, n = "))

    assert error.message.endswith(
        "steps.load.args.num: expected true or false or a whole number or a number or a text in "
        "quotes or a list in brackets, got a table"
    )


def test_an_engine_may_be_a_tool_of_no_engine(folder: Folder) -> None:
    folder.write("tools/alone.toml", "name = 'alone'")
    folder.write("workloads/mine.toml", WORKLOAD.replace('engine = "fio"', 'engine = "alone"'))

    assert folder.catalog().workload("mine").engine == "alone"
