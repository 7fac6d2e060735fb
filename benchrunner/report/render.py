"""Page and trial views -> text of one markup. Reads the template files, writes nothing.

A new markup is one template for the page and one for a trial, and a line in ``DIALECTS``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.errors import ConfigurationError
from benchrunner.report import markup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinja2 import Environment

    from benchrunner.report.raw import TrialPage
    from benchrunner.report.view import PageView


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one markup is written and what its files are called."""

    page: str
    trial: str
    image: str
    """Ending of the charts that it shows."""
    escaped: bool
    """Whether the template engine escapes every value as HTML."""


DIALECTS: Mapping[str, Dialect] = {
    "wiki": Dialect("page.wiki.j2", "trial.markdown.j2", "png", escaped=False),
    "markdown": Dialect("page.markdown.j2", "trial.markdown.j2", "png", escaped=False),
    "html": Dialect("page.html.j2", "trial.html.j2", "svg", escaped=True),
}


def shipped_templates() -> Path:
    """Return the folder of templates: inside the installed package, else at the repository root."""
    package = Path(__file__).parents[1]
    for folder in (package / "templates", package.parent / "templates"):
        if (folder / "page.html.j2").is_file():
            return folder
    raise ConfigurationError(
        f"The page templates are in neither {package / 'templates'} nor {package.parent}.",
        "reinstall benchrunner",
    )


def _environment(dialect: Dialect, folder: Path) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=dialect.escaped,  # noqa: S701  # Markdown escapes by its own filters
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        text=markup.markdown_text,
        block=markup.markdown_block,
        fence=markup.markdown_code,
        rich=markup.html_rich if dialect.escaped else markup.markdown_rich,
    )
    return environment


def render_page(page: PageView, name: str, folder: Path, *, with_csv: bool = False) -> str:
    """Return the page in the markup ``name``; ``with_csv`` adds links to the CSV files."""
    dialect = DIALECTS[name]
    template = _environment(dialect, folder).get_template(dialect.page)
    return template.render(page=page, image=dialect.image, with_csv=with_csv)


def render_trial(trial: TrialPage, name: str, folder: Path, page_file: str) -> str:
    """Return the raw page of one trial; ``page_file`` leads back."""
    dialect = DIALECTS[name]
    template = _environment(dialect, folder).get_template(dialect.trial)
    return template.render(trial=trial, page_file=page_file)
