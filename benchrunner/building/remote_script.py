"""The script that makes a build on a remote host from a packed source. Pure: values in, text out.

It runs in its run folder. ``step`` says how far it came, ``kept`` holds what the recipe keeps.
"""

from __future__ import annotations

import posixpath
import shlex
from typing import TYPE_CHECKING

from benchrunner.building.order import RECORD
from benchrunner.building.recipe import dry_commands

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchrunner.building.order import Order

PUBLISHED = "published"
"""The artifact is there already: nothing was done."""
DAMAGED = "damaged"
"""The packed source is not what its name says; it is removed."""
_HEAD = """\
exec 2>&1
cd "$BENCHRUNNER_RUN_DIR" || exit
step() {{ echo "$1" >step.new && mv step.new step; }}
trap 'cd "$BENCHRUNNER_RUN_DIR" && rm -rf tree' EXIT
trap 'exit 143' TERM INT
printf '%s' "$1" >origin.json
if [ -e {record} ]; then step {published}; exit 0; fi
step unpacking
mkdir -p tree kept || exit
"""
_UNPACK = """\
content=$(gzip -dc {source} | sha256sum)
if [ "${{content%% *}}" != {content} ]; then
  echo {source} is not what was sent
  rm -f {source}
  step {damaged}
  exit 1
fi
tar -xzf {source} -C tree || exit
"""


def build_script(order: Order, packed: Sequence[tuple[str, str]]) -> str:
    """The script for ``sh -c``; its first argument is kept as ``origin.json``.

    Args:
        order: what to build.
        packed: packed folders on the host that make the tree, each with the hash of what is inside
            its compression.
    """
    head = _HEAD.format(published=PUBLISHED, record=shlex.quote(f"{order.folder}/{RECORD}"))
    for source, content in packed:
        head += _UNPACK.format(source=shlex.quote(source), content=content, damaged=DAMAGED)
    lines = ["cd tree || exit", *_dry_runs(order), *_commands(order), *_kept(order), "exit 0", ""]
    return head + "\n".join(lines)


def _dry_runs(order: Order) -> Iterator[str]:
    """What make is going to do, for whoever counts."""
    commands = dry_commands(order.commands) if order.engine.build.count else []
    if commands:
        lines = " ".join(f"timeout 120 {shlex.join(argv)} 2>/dev/null;" for argv in commands)
        yield f"{{ {lines} }} | gzip -1 >../dry-run.part; mv ../dry-run.part ../dry-run.gz"


def _commands(order: Order) -> Iterator[str]:
    for number, argv in enumerate(order.commands):
        yield f"(cd .. && step {number})"
        yield f"{shlex.join([*order.nice, *argv])} || exit"


def _kept(order: Order) -> Iterator[str]:
    """Copies what is there; what is not there is somebody else's complaint."""
    recipe = order.engine.build
    for name in dict.fromkeys((*order.keep, *filter(None, (recipe.config_file,)))):
        inside = shlex.quote(name)
        folder = shlex.quote(posixpath.join("../kept", posixpath.dirname(name)))
        target = shlex.quote(posixpath.join("../kept", name))
        yield f"[ ! -f {inside} ] || {{ mkdir -p {folder} && cp -pL {inside} {target}; }} || exit"
