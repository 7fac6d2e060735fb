"""Escaping: whatever the text, Markdown prints exactly that text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from benchrunner.errors import ConfigurationError
from benchrunner.report.anchors import Anchors
from benchrunner.report.facts import flattened, summary
from benchrunner.report.format import clean, safe_name
from benchrunner.report.markup import html_rich, markdown_block, markdown_code, markdown_rich
from benchrunner.report.render import shipped_templates

MARKS = st.text(st.sampled_from("ab1 .)|\\`*_[]<>&~#+-=!:/@\"'{}()w^"), min_size=1, max_size=30)


def rendered(markdown: str) -> list[Any]:
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown)
    return [token for token in tokens if token.type not in ("paragraph_open", "paragraph_close")]


@given(MARKS)
def test_a_paragraph_prints_the_text_itself(text: str) -> None:
    tokens = rendered(markdown_block(text))
    flat = " ".join(text.split())
    if not flat:
        assert tokens == []
        return
    (inline,) = tokens
    assert {child.type for child in inline.children} <= {"text", "text_special"}
    assert "".join(child.content for child in inline.children) == flat


@given(MARKS, MARKS)
def test_a_table_cell_prints_the_text_itself(left: str, right: str) -> None:
    table = f"| a | b |\n| - | - |\n| {markdown_block(left)} | {markdown_block(right)} |"
    cells = [token for token in rendered(table) if token.type == "inline"][2:]
    shown = ["".join(child.content for child in cell.children) for cell in cells]
    assert shown == [" ".join(left.split()), " ".join(right.split())]


@given(st.text(st.sampled_from("a`\n ~|<"), max_size=40))
def test_a_code_block_holds_any_text(text: str) -> None:
    (fence,) = rendered(markdown_code(text))
    assert fence.type == "fence"
    assert fence.content.strip("\n") == text.rstrip().strip("\n")


def test_dollar_signs_do_not_start_formulas() -> None:
    assert markdown_block("$A and $B") == "<span>$</span>A and <span>$</span>B"


def test_code_in_a_workload_s_text() -> None:
    assert markdown_rich("a_b `du_kib` is 1|2") == r"a\_b `du_kib` is 1\|2"
    assert str(html_rich("a<b `du<`")) == "a&lt;b <code>du&lt;</code>"


def test_repeated_headings_get_numbered_anchors() -> None:
    anchors = Anchors()
    assert [anchors.take("A b"), anchors.take("a B"), anchors.take("A b")] == [
        *("a-b", "a-b-1", "a-b-2"),
    ]


def test_control_characters_never_reach_a_page() -> None:
    assert clean("a\r\nb\rc\x1b[0m\x00\td") == "a\nb\nc\ufffd[0m\ufffd\td"


@pytest.mark.parametrize("name", ["", "..", ".hidden", "a/b", "a b", "a\x00", "-x", "x" * 200])
def test_names_that_become_paths_are_checked(name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be used as a file name"):
        safe_name(name, "step name")


def test_facts_of_any_shape_become_one_line() -> None:
    facts = {
        "model": "EPYC",
        "count": 8,
        "numa": {"nodes": 2, "empty": None},
        "turbo": True,
        "smt": False,
        "size_bytes": 3 * 1024**3,
        "small_bytes": 10,
        "flags": list(range(10)),
    }
    assert summary(facts) == (
        "EPYC, count 8, numa (nodes 2), turbo yes, smt no, size 3.0 GiB, small bytes 10, "
        "flags 0, 1, 2, 3, 4, 5, 6, 7, and 2 more"
    )
    assert list(flattened({"disks": [{"a": 1}, {"a": 2}], "x": None})) == [
        *(("disks.0.a", "1"), ("disks.1.a", "2")),
    ]


def test_templates_are_found() -> None:
    assert (shipped_templates() / "style.css").is_file()
