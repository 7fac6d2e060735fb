"""Raw output of a tool -> Parsed. The parsers there are, on one screen.

Pure apart from opening the files that it is given, plain or compressed with gzip.
"""

from __future__ import annotations

import gzip
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple, TextIO

from benchrunner.errors import ConfigurationError, OutputNotRecognisedError
from benchrunner.parse import db_bench, fio, hostbench, iperf3, openssl, rules

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchrunner.definitions import Output
    from benchrunner.model import Parsed
    from benchrunner.parse.text import Text


class Parser(NamedTuple):
    """How one tool's output is read; ``version`` is stored with what it read."""

    version: int
    read: Callable[[Text, Text, Sequence[Output]], Parsed]


PARSERS = {
    "db_bench": Parser(
        db_bench.PARSER_VERSION, lambda out, err, _: db_bench.parse_db_bench(out, err)
    ),
    "fio": Parser(fio.PARSER_VERSION, lambda out, err, _: fio.parse_fio(out, err)),
    "hostbench": Parser(
        hostbench.PARSER_VERSION, lambda out, err, _: hostbench.parse_hostbench(out, err)
    ),
    "iperf3": Parser(iperf3.PARSER_VERSION, lambda out, err, _: iperf3.parse_iperf3(out, err)),
    "openssl": Parser(openssl.PARSER_VERSION, lambda out, err, _: openssl.parse_openssl(out, err)),
    "rules": Parser(
        rules.PARSER_VERSION, lambda out, err, output: rules.parse_rules(out, output, err)
    ),
}


def parse_output(
    parser: str,
    stdout_path: Path,
    stderr_path: Path | None = None,
    output_rules: Sequence[Output] = (),
) -> Parsed:
    """What the named parser understands of a step's files; ``.gz`` beside or as the path will do.

    Raises:
        OutputNotRecognisedError: the text is not the tool's, or there is no such file.
        ConfigurationError: there is no such parser.
    """
    if parser not in PARSERS:
        raise ConfigurationError(
            f"there is no parser {parser!r}", f"use one of: {', '.join(PARSERS)}"
        )
    with ExitStack() as stack:
        stdout = stack.enter_context(open_text(stdout_path))
        stderr: Text = ()
        if stderr_path is not None:
            stderr = stack.enter_context(open_text(stderr_path))
        try:
            return PARSERS[parser].read(stdout, stderr, output_rules)
        except OutputNotRecognisedError as error:
            raise OutputNotRecognisedError(f"{stdout_path}: {error.message}", error.hint) from error
        except (EOFError, gzip.BadGzipFile) as error:
            raise OutputNotRecognisedError(
                f"{stdout_path}: the compressed file is damaged: {error}",
                "fetch the run folder again, or restore the file from a copy",
            ) from error


def open_text(path: Path) -> TextIO:
    """A text file; ``path.gz`` when only that exists. Bytes that are no UTF-8 do not stop it.

    Raises:
        OutputNotRecognisedError: the file cannot be opened.
    """
    compressed = path.with_name(path.name + ".gz")
    actual = compressed if not path.exists() and compressed.exists() else path
    try:
        if actual.suffix == ".gz":
            return gzip.open(actual, "rt", encoding="utf-8", errors="replace")
        return actual.open(encoding="utf-8", errors="replace")
    except OSError as error:
        raise OutputNotRecognisedError(
            f"{path}: cannot be read: {error.strerror}", "check the path"
        ) from error
