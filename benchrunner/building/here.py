"""Recipes on this machine: in a process group of our own that ends with us."""

from __future__ import annotations

import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.building.natives import native_files, put_into
from benchrunner.building.order import Made, first_error, log_tail
from benchrunner.building.recipe import Progress, dry_commands, recipe_env
from benchrunner.errors import BuildError
from benchrunner.processes import TimeUpError, exclusive, run_logged
from benchrunner.sources import fetch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchrunner.building.order import Order
    from benchrunner.sources.tree import Tree

_DRY_RUN_S = 120.0


class Here:
    """One build on this machine."""

    def __init__(self, order: Order) -> None:
        self._order = order

    @contextmanager
    def alone(self) -> Iterator[None]:
        """See ``Place.alone``: a lock that dies with its holder."""
        order = self._order
        text = f"{order.what}: another process builds it; waiting for that"
        lock = Path(order.folder).with_name(f"{order.key}.lock")
        with exclusive(lock, lambda: order.workshop.on_note(text)):
            try:
                yield
            finally:
                self.discard()

    def make(self) -> Made:
        """See ``Place.make``."""
        order, began = self._order, time.monotonic()
        root = order.work.parent
        root.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(root)
        order.log.unlink(missing_ok=True)
        self.discard()
        tree = fetch(order.engine, order.ref, order.work, order.workshop.cache)
        put_into(tree.path, native_files(order.engine))
        self._compile(tree)
        seconds = time.monotonic() - began
        return Made(str(tree.path), str(order.log), tree.version, tree.commit, seconds)

    def discard(self) -> None:
        """See ``Place.discard``."""
        shutil.rmtree(self._order.work, ignore_errors=True)

    def _compile(self, tree: Tree) -> None:
        """Runs the recipe's commands in the tree, all output into one log."""
        order = self._order
        env = order.site.toolchain.environment(str(order.work.parent))
        env |= recipe_env(order.engine, tree.version, order.site.toolchain)
        progress = Progress(order.engine.build.count, order.workshop.on_progress)
        if progress.is_counting:
            progress.expect(_dry_run(dry_commands(order.commands), tree.path, env))
        with order.log.open("wb") as log:

            def line_printed(line: bytes) -> None:
                log.write(line)
                progress.line(line)

            limit_s = order.workshop.limit_s
            for argv in order.commands:
                try:
                    status = run_logged([*order.nice, *argv], tree.path, env, limit_s, line_printed)
                except TimeUpError:
                    what = f"{argv[0]} did not end within {limit_s:g} s"
                else:
                    log.flush()
                    failed = f"{argv[0]} of {order.what} failed with status {status}"
                    failed += first_error(order.log)
                    what = failed if status else ""
                if what:
                    log.flush()
                    raise BuildError(what, log_tail=log_tail(order.log))


def _remove_abandoned(root: Path) -> None:
    """Work folders of processes that are gone."""
    for path in root.iterdir():
        _, _, pid = path.name.rpartition("-")
        if path.is_dir() and pid.isdigit() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(path, ignore_errors=True)


def _dry_run(commands: list[list[str]], tree: Path, env: Mapping[str, str]) -> str:
    """What make says that it will do; empty where it does not say."""
    text = ""
    for argv in commands:
        try:
            dry = subprocess.run(
                argv, cwd=tree, env=env, capture_output=True, text=True, errors="replace",
                stdin=subprocess.DEVNULL, timeout=_DRY_RUN_S, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return ""
        text += dry.stdout
    return text
