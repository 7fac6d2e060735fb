"""Whole pages: snapshots of the three markups side by side, escaping, links, determinism."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from markdown_it import MarkdownIt
from report_data import SMALL, ok_step, seed_data, small_data, small_trial

from benchrunner.errors import ConfigurationError
from benchrunner.model import StepState
from benchrunner.report.anchors import github_anchor
from benchrunner.report.build import build_page
from benchrunner.report.input import Cell, ReportData, StepView
from benchrunner.report.page import FORMATS, PageFiles, write_page
from benchrunner.report.raw import read_ends

if TYPE_CHECKING:
    from collections.abc import Iterable

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> PageFiles:
    return write_page(small_data(), tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> PageFiles:
    data = seed_data(("7.2.2", "6.10.4"))
    kept = [chart for chart in data.workload.page.charts if chart.step == "readrandom"]
    page = data.workload.page.model_copy(update={"charts": kept})
    data = replace(data, workload=data.workload.model_copy(update={"page": page}))
    return write_page(data, tmp_path_factory.mktemp("seed"), ("html", "markdown"))


@pytest.mark.parametrize("markup", ["wiki", "markdown", "html"])
def test_page_is_as_in_its_snapshot(
    small: PageFiles, markup: str, request: pytest.FixtureRequest
) -> None:
    snapshot = SNAPSHOTS / f"small.{markup}.txt"
    made = small.pages[markup].read_text(encoding="utf-8")
    if request.config.getoption("--update-snapshots"):
        snapshot.parent.mkdir(exist_ok=True)
        snapshot.write_text(made, encoding="utf-8")
    assert made == snapshot.read_text(encoding="utf-8")


@pytest.mark.parametrize("markup", ["wiki", "markdown", "html"])
def test_every_shown_column_of_the_seed_page_is_in_each_markup(tmp_path: Path, markup: str) -> None:
    data = seed_data(("7.2.2",))
    page = data.workload.page.model_copy(update={"charts": []})
    data = replace(data, workload=data.workload.model_copy(update={"page": page}))
    text = write_page(data, tmp_path, (markup,)).pages[markup].read_text(encoding="utf-8")
    rendered = _text_of_html(text if markup == "html" else _markdown_as_html(text))
    for title in (
        *("Version", "Opts", "Time", "ops/sec", "mb/sec", "W-Amp", "W-MB/s", "usec/op", "p50"),
        *("p75", "p99", "p99.9", "p99.99", "Stall-time", "Stall%", "du -s -k", "Run", "CPU us/op"),
    ):
        assert title in rendered
    for figure in ("136915", "00:04:43.188", "158540048", "1003732", "149.7", "9.5"):
        assert figure in rendered
    assert "Measure performance to load 900,000,000 keys" in text
    assert "read : iops=117331" in text
    assert "117331 io/s" in rendered


def test_seed_html_has_the_sections_in_the_page_order(seed: PageFiles) -> None:
    text = seed.pages["html"].read_text(encoding="utf-8")
    headings = re.findall(r"<h2 id=\"[^\"]+\">([^<]+)</h2>", text)
    tests = [heading for heading in headings if heading.startswith("Test ")]
    assert [heading.split(".")[0] for heading in tests] == [
        *("Test 1", "Test 2", "Test 3", "Test 4", "Test 4b", "Test 5", "Test 6"),
        *("Test 7", "Test 7b"),
    ]
    assert headings == ["Setup", *tests, "Appendix", "Provenance", "Flags", "Metrics"]


class _Collector(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def _parsed(html: str) -> _Collector:
    collector = _Collector()
    collector.feed(html)
    return collector


def _text_of_html(html: str) -> str:
    return " ".join(_parsed(html).text)


def _markdown_as_html(text: str) -> str:
    return str(MarkdownIt("commonmark").enable("table").render(text))


def _links(html: str, attributes: Iterable[str] = ("href", "src")) -> list[str]:
    tags = _parsed(html).tags
    return [link for _, attrs in tags for name in attributes if (link := attrs.get(name))]


@pytest.mark.parametrize("name", ["small", "seed"])
def test_no_page_needs_anything_from_elsewhere(name: str, request: pytest.FixtureRequest) -> None:
    written: PageFiles = request.getfixturevalue(name)
    for path in written.files:
        if path.suffix == ".html":
            text = path.read_text(encoding="utf-8")
            assert not [link for link in _links(text) if "//" in link]
            assert "url(" not in text
            assert "@import" not in text
            assert not [tag for tag, _ in _parsed(text).tags if tag in ("script", "link", "iframe")]


@pytest.mark.parametrize("name", ["small", "seed"])
def test_every_link_of_every_page_leads_somewhere(
    name: str, request: pytest.FixtureRequest
) -> None:
    written: PageFiles = request.getfixturevalue(name)
    for path in written.files:
        if path.suffix not in (".html", ".md"):
            continue
        text = path.read_text(encoding="utf-8")
        html = text if path.suffix == ".html" else _markdown_as_html(text)
        anchors = {attrs.get("id") for _, attrs in _parsed(html).tags}
        if path.suffix == ".md":
            heads = re.findall(r"<h[1-6]>(.*?)</h[1-6]>", html)
            anchors = {github_anchor(_text_of_html(head)) for head in heads}
        for link in _links(html):
            if link.startswith("#"):
                assert link[1:] in anchors, (path, link)
            else:
                assert (path.parent / link).exists(), (path, link)


@pytest.mark.parametrize("markup", ["wiki", "markdown"])
def test_markdown_reads_no_markup_into_data(small: PageFiles, markup: str) -> None:
    text = small.pages[markup].read_text(encoding="utf-8")
    assert "[[" not in text
    html = _markdown_as_html(text)
    assert not [tag for tag, _ in _parsed(html).tags if tag in ("script", "em", "strike")]
    assert "7.10 <script>alert(1)</script> | no build." in _text_of_html(html)
    widths = {line.count(" | ") for line in text.split("\n") if line.startswith("| 6.")}
    assert widths == {6, 5}


def test_html_escapes_reason_and_version(small: PageFiles) -> None:
    for path in small.files:
        if path.suffix == ".html":
            assert "<script" not in path.read_text(encoding="utf-8")
    text = small.pages["html"].read_text(encoding="utf-8")
    assert "<td>7.10&lt;script&gt;</td>" in text
    assert "7.10 &lt;script&gt;alert(1)&lt;/script&gt; | no build." in text


def test_same_data_gives_the_same_bytes_and_leaves_other_files_alone(
    small: PageFiles, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    again = write_page(small_data(), tmp_path)
    write_page(small_data(), tmp_path)
    first = small.pages["html"].parent
    names = [path.relative_to(first) for path in small.files]
    assert [path.relative_to(tmp_path) for path in again.files] == names
    for name in names:
        assert (first / name).read_bytes() == (tmp_path / name).read_bytes(), name
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert not list(tmp_path.glob(".page-*"))


def test_a_page_that_cannot_be_made_leaves_the_old_one_whole(
    tmp_path: Path,
) -> None:
    written = write_page(small_data(), tmp_path, ("html",))
    before = written.pages["html"].read_bytes()
    cell = Cell("rocksdb", "8.0", "None", "here", trials=(small_trial("../x", {}),))
    bad = replace(small_data(), cells=(cell,))
    step = ok_step("fillrandom", ops_per_sec=1.0)
    raw = replace(step, raw_files={"stdout": tmp_path / "gone"})
    bad = replace(bad, cells=(replace(cell, trials=(small_trial("../x", {"fill": raw}),)),))
    with pytest.raises(ConfigurationError, match=r"trial id '\.\./x' cannot be used"):
        write_page(bad, tmp_path, ("html",))
    assert written.pages["html"].read_bytes() == before
    assert not list(tmp_path.glob(".page-*"))


def test_unknown_format_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="There is no page format 'pdf'") as caught:
        write_page(small_data(), tmp_path, ("pdf",))
    assert caught.value.hint == "use " + ", ".join(FORMATS)


def _with_raw(tmp_path: Path) -> ReportData:
    stdout = tmp_path / "stdout.gz"
    stdout.write_bytes(gzip.compress(b"readrandom : 467.4 <micros/op>\rdone\x00\n"))
    stderr = tmp_path / "stderr"
    stderr.write_bytes(b"a" * 700_000 + b"MIDDLE" + b"z" * 700_000)
    samples = tmp_path / "samples"
    samples.write_text("1 2 3\n", encoding="utf-8")
    step = replace(
        ok_step("readrandom", ops_per_sec=136915.25),
        raw_files={
            "stdout": stdout,
            "stderr": stderr,
            "samples": samples,
        },
    )
    lost = StepView(StepState.FAILED, "gone", raw_files={"stdout": tmp_path / "lost"})
    trial = small_trial("t1", {"read": step, "fill": lost})
    return replace(
        small_data(), cells=(Cell("rocksdb", "7.2.2", "None", "here", {"threads": 4}, (trial,)),)
    )


def test_raw_page_shows_what_the_process_printed(tmp_path: Path) -> None:
    out = tmp_path / "page"
    write_page(_with_raw(tmp_path), out, ("html", "markdown"))
    text = (out / "raw" / "t1.html").read_text(encoding="utf-8")
    assert "readrandom : 467.4 &lt;micros/op&gt;\ndone\N{REPLACEMENT CHARACTER}" in text
    assert "MIDDLE" not in text
    assert "351430 bytes in the middle" in text
    assert "(the file is no longer there)" in text
    assert "136915.25" in text
    assert "rocksdb 7.2.2 None on here, threads 4, repetition 1" in text
    assert "db_bench --benchmarks=readrandom" in text
    for name in ("stdout.gz", "stderr", "samples"):
        assert (out / "raw" / "t1" / "read" / name).read_bytes() == (tmp_path / name).read_bytes()
        assert f'href="t1/read/{name}"' in text
    assert "lost" not in [path.name for path in out.rglob("*")]
    assert "136915.25" in (out / "raw" / "t1" / "README.md").read_text(encoding="utf-8")


def test_raw_page_withholds_the_numbers_of_an_invalid_step(small: PageFiles) -> None:
    raw = small.pages["html"].parent / "raw"
    assert "136915.2" in (raw / "t2.html").read_text(encoding="utf-8")
    invalid = (raw / "t1.html").read_text(encoding="utf-8")
    assert "136915.2" not in invalid
    assert "Contradiction: p50 615.5 is above p99 12.7" in invalid
    assert "removed in 7.0" in (raw / "t3.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 200_000])
def test_both_ends_of_a_long_text_are_kept(tmp_path: Path, size: int) -> None:
    path = tmp_path / "text"
    path.write_bytes(bytes(97 + place % 26 for place in range(size)))
    text, left_out = read_ends(path, 10)
    whole = path.read_text(encoding="utf-8")
    if size <= 10:
        assert (text, left_out) == (whole, 0)
    else:
        assert left_out == size - 10
        assert text == f"{whole[:5]}\n... {left_out} bytes left out ...\n{whole[-5:]}"


def test_a_workload_without_a_page_shows_all_that_was_measured() -> None:
    data = small_data()
    page = data.workload.page.model_copy(update={"tables": [], "charts": []})
    view = build_page(replace(data, workload=data.workload.model_copy(update={"page": page})))
    assert [test.tables[0].name for test in view.tests] == ["fill", "read"]
    shown = [column.metric for column in view.tests[1].tables[0].columns if column.metric]
    assert shown == ["ops_per_sec", "p50_us", "p99_us", "found_ratio"]


def test_a_misspelt_placeholder_is_an_error() -> None:
    data = small_data()
    steps = [data.workload.steps[0].model_copy(update={"text": "{NUN} keys"})]
    page = data.workload.page.model_copy(update={"tables": [], "charts": []})
    workload = data.workload.model_copy(update={"steps": steps, "page": page})
    with pytest.raises(ConfigurationError, match="'NUN' is neither a parameter nor a metric"):
        build_page(replace(data, workload=workload))


def test_two_hosts_and_no_appendix() -> None:
    data = small_data()
    cells = tuple(replace(cell, host=host) for host in ("a", "b") for cell in data.cells)
    view = build_page(replace(data, cells=cells, appendix=(), host_facts={"a": {"cpu": {"x": 1}}}))
    assert [host.name for host in view.hosts] == ["a", "b"]
    assert view.hosts[0].facts == (("CPU", "x 1"),)
    assert view.hosts[1].facts == ()
    assert [column.title for column in view.tests[0].tables[0].columns][:3] == [
        *("Version", "Opts", "Host"),
    ]
    assert "Appendix" not in [line.title for line in view.contents]
    assert "small" in SMALL


def test_setup_shows_what_matters_and_folds_the_rest_away() -> None:
    facts = {
        "cpu": {"model": "EPYC 9654", "cores": 96, "mitigations": {"mds": "Not affected"}},
        "now": {"load_1": 0.5},
        "compiler": {"cc": "cc 12.2"},
        "rack": {"row": 7},
    }
    view = build_page(replace(small_data(), cells=(), appendix=(), host_facts={"a": facts}))
    host = next(host for host in view.hosts if host.name == "a")
    assert host.facts == (("CPU", "EPYC 9654, cores 96"), ("rack", "row 7"))
    assert ("Compiler", "cc 12.2") in host.more
    assert any("mitigations" in text for _, text in host.more)
    assert all("load" not in text for _, text in (*host.facts, *host.more))
