"""``page``: writing the flash page in all formats, a whole process, against its bare imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.figures import Figure
from benchmarks.pairs import estimate, interleave
from benchmarks.processes import ROOT, output, python, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.processes import Options

WRITE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from report_data import seed_data
from benchrunner.report.page import write_page
print(len(write_page(seed_data(), Path(sys.argv[2])).files))
"""
IMPORTS = "import matplotlib.figure, jinja2, pydantic"


def page(options: Options) -> Iterator[Figure]:
    """Seconds for wiki, Markdown, HTML and CSV with all charts."""
    ours = python(WRITE, str(ROOT / "tests"), str(options.directory / "page"))
    bare = python(IMPORTS)
    files = int(output(ours))
    pairs = interleave(lambda: seconds(ours), lambda: seconds(bare), options.count(9))
    yield Figure(
        "page", estimate(pairs.ours), "s", None, pairs.ratio, "its imports alone", f"{files} files"
    )
