"""What a recipe has made becomes an artifact: looked at where it lies, refused or put in the cache.

Nothing is fetched for that but the log: a program is hashed and searched on its own host.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from benchrunner.binaries import probe_flags
from benchrunner.building.order import LOG, RefusedError
from benchrunner.building.recipe import config_entries, recipe_env
from benchrunner.building.record import as_json, brought_home, cached
from benchrunner.errors import BuildError
from benchrunner.model import Artifact
from benchrunner.transports import MissingFileError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchrunner.building.order import Made, Order
    from benchrunner.building.site import BuildSite

ASSERTIONS = "Assertions are enabled"
"""The warning that db_bench, of RocksDB and of LevelDB, holds only when compiled without NDEBUG."""
_LOOK = """\
for path; do
  kind=file asserting=no
  [ -x "$path" ] && kind=program
  [ -f "$path" ] || kind=missing
  [ $kind = program ] && LC_ALL=C grep -qaF "$TEXT" "$path" && asserting=yes
  echo "$kind $asserting"
done
"""
_PUBLISH = """\
set -eu
final=$1 log=$2 part=$1.part-$$
shift 2
trap 'rm -rf -- "$part"' EXIT
rm -rf -- "$part"
mkdir -p -- "$part"
cat >"$part/artifact.json"
cp -p -- "$log" "$part/build.log"
for path; do cp -pL -- "$path" "$part/"; done
if ! mv -T -- "$part" "$final" 2>/dev/null; then
  if [ -e "$final/artifact.json" ]; then echo taken; exit; fi
  rm -rf -- "$final"
  mv -T -- "$part" "$final"
fi
echo kept
"""
"""Arguments: the artifact's folder, the log, the files kept. The record comes on standard input.

The rename fails where a folder with files is: who comes second takes what the first one put there.
"""


def keep(order: Order, made: Made) -> Artifact:
    """Checks a build and copies what is kept of it into the cache, where it appears in one rename.

    Raises:
        BuildError: It lacks a file that it should have made.
        RefusedError: Its numbers would not be those of a release.
    """
    site = order.site
    paths = {name: f"{made.folder}/{name}" for name in order.keep}
    looks = look_at(site, list(paths.values()))
    for name, (kind, _) in zip(paths, looks, strict=True):
        if kind == "missing":
            raise BuildError(f"the build of {order.what}{site.on_host} made no {name}")
    settings = _settings(order, made)
    _check(order, settings, any(asserting for _, asserting in looks))
    programs = [path for path, (kind, _) in zip(paths.values(), looks, strict=True)
                if kind == "program"]  # fmt: skip
    artifact = _described(order, made, settings, programs)
    arguments = [order.folder, made.log, *paths.values()]
    answer = site.script(_PUBLISH, *arguments, given=as_json(artifact).encode())
    order.log.unlink(missing_ok=True)
    if answer.strip() == "taken":
        return cached(order) or artifact
    return artifact if site.is_here else brought_home(artifact, site, order.workshop.cache)


def look_at(site: BuildSite, paths: Sequence[str]) -> list[tuple[str, bool]]:
    """What files are (``missing``, ``file``, ``program``), and whether programs have assertions."""
    argv = ["env", f"TEXT={ASSERTIONS}", "sh", "-c", _LOOK, "sh", *paths]
    done = site.transport.run(argv, timeout_s=900.0)
    words = (line.split() for line in done.stdout.decode().splitlines())
    return [(kind, asserting == "yes") for kind, asserting in words]


def _settings(order: Order, made: Made) -> str:
    """What the build says that it found, when it leaves a file about that."""
    name = order.engine.build.config_file
    if not name:
        return ""
    try:
        return order.site.transport.read(f"{made.folder}/{name}").decode(errors="replace")
    except MissingFileError:
        return ""


def _check(order: Order, settings: str, asserting: bool) -> None:  # noqa: FBT001
    log = order.log.read_text(errors="replace")
    for reason, pattern in order.engine.build.forbid.items():
        if re.search(pattern, log) or re.search(pattern, settings):
            raise RefusedError(f"the build of {order.what} is refused: {reason}")
    if asserting:
        raise RefusedError(f"the build of {order.what} is refused: assertions are enabled")


def _described(order: Order, made: Made, settings: str, programs: list[str]) -> Artifact:
    engine, site = order.engine, order.site
    toolchain = site.toolchain
    own_settings = {**toolchain.shaping, **recipe_env(engine, made.version, toolchain)}
    features = {n for n, pattern in engine.build.features.items() if re.search(pattern, settings)}
    names = [PurePosixPath(path).name for path in programs]
    theirs = [path for path, name in zip(programs, names, strict=True)
              if name != engine.build.driver]  # fmt: skip
    hashes = site.hashes(programs)
    if missing := [path for path in programs if path not in hashes]:
        raise BuildError(f"{missing[0]}{site.on_host} is gone", "build it again")
    return Artifact(
        id=order.key, engine=engine.built_as, version=made.version, source=order.ref.kind,
        ref=order.ref.ref, state="built", commit=made.commit, compiler=toolchain.version,
        directory=order.folder, log=f"{order.folder}/{LOG}",
        binaries={name: f"{order.folder}/{name}" for name in names},
        sha256={name: hashes[path] for name, path in zip(names, programs, strict=True)},
        build_flags={**own_settings, "target": toolchain.target, **config_entries(settings)},
        known_flags=probe_flags(theirs[0], site.ask) if theirs and engine.flags else None,
        features=frozenset(features), seconds=made.seconds,
    )  # fmt: skip
