"""Write a page: ``ReportData`` in; a folder of pages, charts, CSV files and raw files out.

The only part of ``report`` that writes. Everything is made in a temporary folder first and put
in place file by file, the pages last: a reader never sees half a page.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from benchrunner.errors import ConfigurationError
from benchrunner.report.build import build_page
from benchrunner.report.csv_files import csv_texts
from benchrunner.report.raw import raw_files, trial_page
from benchrunner.report.render import DIALECTS, render_page, render_trial, shipped_templates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchrunner.report.input import ReportData
    from benchrunner.report.view import PageView

FORMATS = ("wiki", "markdown", "html", "csv")
ImageFormat = Literal["svg", "png"]
_IMAGES: tuple[ImageFormat, ...] = ("svg", "png")


@dataclass(frozen=True, slots=True)
class PageFiles:
    """What was written."""

    pages: Mapping[str, Path]
    """Format -> the file to open first."""
    files: tuple[Path, ...]
    """Every file, sorted."""


def page_name(workload: str, page_format: str) -> str:
    """Return the file of a page that a reader opens, relative to the page's folder."""
    names = {"html": "index.html", "markdown": "README.md", "csv": "csv/measurements.csv"}
    return names.get(page_format, f"{workload}.md")


def write_page(
    data: ReportData,
    directory: Path,
    formats: Sequence[str] = FORMATS,
    templates: Path | None = None,
) -> PageFiles:
    """Write the page of a workload into ``directory``, replacing files of the same name.

    Raises:
        ConfigurationError: an unknown format, or a page definition that names what is not there.
    """
    for name in formats:
        if name not in FORMATS:
            raise ConfigurationError(
                f"There is no page format {name!r}.", f"use {', '.join(FORMATS)}"
            )
    page = build_page(data)
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".page-", dir=directory) as temporary:
        folder = Path(temporary)
        _write_charts(page, folder, formats)
        if "csv" in formats:
            _write_csv(data, folder)
        markups = [name for name in formats if name in DIALECTS]
        if markups:
            _write_markups(data, page, folder, formats, templates or shipped_templates())
        pages = {name: page_name(data.workload.name, name) for name in formats}
        files = _put_in_place(folder, directory, set(pages.values()))
    return PageFiles({name: directory / file for name, file in pages.items()}, files)


def _write_charts(page: PageView, folder: Path, formats: Sequence[str]) -> None:
    from benchrunner.report.draw import draw

    wanted = {DIALECTS[name].image for name in formats if name in DIALECTS}
    charts = [chart for test in page.tests for chart in test.charts]
    charts += [chart for test in page.tests for part in test.parts for chart in part.charts]
    for chart in charts:
        for image in _IMAGES:
            if image in wanted:
                target = folder / "charts" / f"{chart.name}.{image}"
                target.parent.mkdir(exist_ok=True)
                target.write_bytes(draw(chart, image))


def _write_csv(data: ReportData, folder: Path) -> None:
    (folder / "csv").mkdir()
    for name, text in csv_texts(data).items():
        (folder / "csv" / name).write_text(text, encoding="utf-8", newline="")


def _write_markups(
    data: ReportData, page: PageView, folder: Path, formats: Sequence[str], templates: Path
) -> None:
    markups = [name for name in formats if name in DIALECTS]
    for name in markups:
        text = render_page(page, name, templates, with_csv="csv" in formats)
        (folder / page_name(page.name, name)).write_text(text, encoding="utf-8")
    raw = folder / "raw"
    for cell in data.cells:
        for trial in cell.trials:
            view = trial_page(data, cell, trial)
            (raw / trial.id).mkdir(parents=True, exist_ok=True)
            if "html" in markups:
                text = render_trial(view, "html", templates, page_name(page.name, "html"))
                (raw / f"{trial.id}.html").write_text(text, encoding="utf-8")
            if others := [name for name in markups if name != "html"]:
                text = render_trial(view, others[0], templates, page_name(page.name, others[0]))
                (raw / trial.id / "README.md").write_text(text, encoding="utf-8")
            for href, path in raw_files(trial):
                if path.is_file():
                    (raw / href).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, raw / href)


def _put_in_place(folder: Path, directory: Path, last: set[str]) -> tuple[Path, ...]:
    made = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    for path in sorted(made, key=lambda path: path.as_posix() in last):
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        (folder / path).replace(target)
    return tuple(directory / path for path in made)
