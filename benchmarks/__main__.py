"""``python -m benchmarks [NAME...]``: prints one row for each figure, and on what machine."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.figures import machine
from benchmarks.hostbench import hostbench
from benchmarks.kvbench import kvbench
from benchmarks.overhead import overhead
from benchmarks.page import page
from benchmarks.parsing import parse
from benchmarks.perturbation import perturbation
from benchmarks.processes import Options
from benchmarks.remote import remote
from benchmarks.start import help_text, status
from benchmarks.store import store
from benchrunner.errors import BenchrunnerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.figures import Figure

BENCHMARKS: dict[str, Callable[[Options], Iterator[Figure]]] = {
    "help": help_text,
    "status": status,
    "overhead": overhead,
    "perturbation": perturbation,
    "parse": parse,
    "store": store,
    "page": page,
    "remote": remote,
    "kvbench": kvbench,
    "hostbench": hostbench,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmarks; 1 when one could not be measured. A missed target is no failure."""
    asked = _parser().parse_args(arguments)
    names = asked.names or list(BENCHMARKS)
    found: list[dict[str, Any]] = []
    unmeasured = 0
    place = machine(asked.dir)
    for name in names:
        command = _command(name, asked)
        print(f"# {command}", flush=True)
        with tempfile.TemporaryDirectory(prefix="benchrunner-bench-", dir=asked.dir) as folder:
            options = Options(
                Path(folder), asked.pairs, asked.quick, asked.db_bench, asked.url, asked.cache
            )
            try:
                for figure in BENCHMARKS[name](options):
                    print(figure.row(), flush=True)
                    found.append({**figure.data(), "command": command})
            except (BenchrunnerError, RuntimeError) as error:
                unmeasured += 1
                print(f"{name:<26} not measured: {error}", flush=True)
    print(place)
    if asked.json:
        data = {"machine": place, "figures": found}
        asked.json.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    return 1 if unmeasured else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", type=_name, metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="few pairs: does it work at all")
    parser.add_argument("--pairs", type=_positive, help="pairs of every figure")
    parser.add_argument("--db-bench", metavar="PATH", help="default: db_bench on PATH")
    parser.add_argument(
        "--cache", type=_folder, metavar="DIR", help="kvbench: where builds of engines are kept"
    )
    parser.add_argument("--url", default="", help="store: an empty PostgreSQL database")
    parser.add_argument(
        "--dir", type=_folder, default=Path(tempfile.gettempdir()), metavar="DIR",
        help="where temporary files go; the disk under it is measured too",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    return parser


def _name(text: str) -> str:
    if text not in BENCHMARKS:
        known = ", ".join(BENCHMARKS)
        raise argparse.ArgumentTypeError(f"there is no benchmark {text!r}; there are {known}")
    return text


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of pairs")
    return int(text)


def _folder(text: str) -> Path:
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text} is not a folder")
    return Path(text)


def _command(name: str, asked: argparse.Namespace) -> str:
    """What reproduces one benchmark's figures."""
    words = ["python -m benchmarks", name]
    words += ["--quick"] if asked.quick else []
    for option in ("pairs", "db_bench", "url", "cache"):
        if value := getattr(asked, option):
            words.append(f"--{option.replace('_', '-')} {value}")
    if str(asked.dir) != tempfile.gettempdir():
        words.append(f"--dir {asked.dir}")
    return " ".join(words)


if __name__ == "__main__":
    sys.exit(main())
