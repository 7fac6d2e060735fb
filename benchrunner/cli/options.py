"""Options that several verbs share, and the small value parsers behind them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchrunner.errors import ConfigurationError
from benchrunner.session import DEFAULT_DATA
from benchrunner.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FORMATS = ("wiki", "markdown", "html", "csv")

data_option = click.option(
    "--data",
    default=DEFAULT_DATA,
    show_default=True,
    envvar="BENCHRUNNER_DATA",
    metavar="DIR|URL",
    help="Results folder (a SQLite store and raw output) or a SQLAlchemy URL.",
)
catalog_option = click.option(
    "--catalog",
    type=click.Path(path_type=Path),
    default=None,
    metavar="DIR",
    help="Folder with workloads/, hosts/, engines/, tools/ searched first.",
)
cache_option = click.option(
    "--cache",
    type=click.Path(path_type=Path),
    default=None,
    envvar="BENCHRUNNER_CACHE",
    metavar="DIR",
    help="Build cache.  [default: ~/.cache/benchrunner]",
)
format_option = click.option(
    "--format",
    "formats",
    default=",".join(FORMATS),
    show_default=True,
    metavar="LIST",
    help="Forms of the page; 'none' writes no page.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print errors only.")


wait_option = click.option(
    "--wait/--no-wait",
    default=True,
    help="Whether to wait for a host that another controller uses.  [default: wait]",
)


def comma_list(text: str | None) -> list[str]:
    """Words between commas.

    >>> comma_list("None, DIO,")
    ['None', 'DIO']
    """
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def assignments(pairs: Sequence[str], option: str) -> dict[str, str]:
    """``KEY=VALUE`` options as a dictionary.

    >>> assignments(["NUM_KEYS=1000"], "--set")
    {'NUM_KEYS': '1000'}

    Raises:
        ConfigurationError: An argument without ``=``, or the same key twice.
    """
    result: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ConfigurationError(f"{option} {pair}: expected NAME=VALUE", f"{option} {pair}=1")
        if key in result:
            raise ConfigurationError(f"{option} {key} is given twice", "give it once")
        result[key] = value
    return result


def page_formats(text: str) -> list[str]:
    """The forms of a page that ``--format`` names; none for ``none``.

    >>> page_formats("wiki,csv"), page_formats("none")
    (['wiki', 'csv'], [])

    Raises:
        ConfigurationError: There is no such form.
    """
    wanted = comma_list(text)
    if wanted == ["none"]:
        return []
    for name in wanted:
        if name not in FORMATS:
            near = did_you_mean(name, FORMATS)
            raise ConfigurationError(
                f"--format {name}: there is no such form{near}", f"--format {','.join(FORMATS)}"
            )
    return wanted


def absolute(path: str | Path | None) -> str | None:
    """A path from the command line as every later command will find it."""
    return None if path is None else str(Path(path).absolute())


def default_cache() -> Path:
    """``$XDG_CACHE_HOME/benchrunner`` or ``~/.cache/benchrunner``."""
    import os

    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "benchrunner"


def epilog(*examples: str) -> str:
    """The examples at the end of a verb's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)


def verb(*examples: str, **attributes: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """A click command with examples under its help."""
    return click.command(epilog=epilog(*examples), **attributes)


def is_attended() -> bool:
    """Whether somebody is at the terminal who can answer."""
    return sys.stdin.isatty()


def asker() -> Callable[[str], str] | None:
    """Asks for a passphrase without showing it; ``None`` when nobody is there."""
    return _ask if is_attended() else None


def _ask(prompt: str) -> str:
    answer = click.prompt(
        prompt, hide_input=True, default="", show_default=False, prompt_suffix="", err=True
    )
    return str(answer)
