"""Sources of ours that go into a build: the driver, and what a tree needs to compile at all.

They lie in the tree as ``benchrunner-native/NAME``, here and on other hosts. Of the driver only
what one engine needs goes along, so that a change for another engine changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.building.packing import Packed, pack
from benchrunner.errors import ConfigurationError
from benchrunner.processes import exclusive
from benchrunner.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchrunner.definitions import Engine

FOLDER = "benchrunner-native"
_OUT = "out"
_FLAGS = "-O2 -g0"
"""The driver's own, the same for every engine: what a recipe wants for its tree is not for it."""
_UP = "../.."
"""From the driver's folder to the tree."""


def native_files(engine: Engine) -> dict[str, Path]:
    """What goes into the tree: the name below ``benchrunner-native`` -> the file here.

    Raises:
        ConfigurationError: We have no such folder, or the driver does not know the engine.
    """
    recipe = engine.build
    found: dict[str, Path] = {}
    for name in recipe.native:
        folder = _native_folder(name)
        files = (path for path in sorted(folder.rglob("*")) if path.is_file())
        found |= {f"{name}/{path.relative_to(folder)}": path for path in files}
    if recipe.driver:
        found |= _driver_files(engine)
    return found


def driver_engine(engine: Engine) -> str:
    """The driver's own word for the engine."""
    return engine.build.link.engine or engine.built_as


def driver_program(engine: Engine) -> list[str]:
    """Where in the tree the driver is; nothing when it is not built."""
    driver = engine.build.driver
    return [f"{FOLDER}/{driver}/{_OUT}/{driver}"] if driver else []


def driver_commands(engine: Engine) -> list[list[str]]:
    """What compiles the driver in a tree whose libraries are built; nothing when none is wanted."""
    recipe, link = engine.build, engine.build.link
    if not recipe.driver:
        return []
    name = driver_engine(engine)
    argv = [
        "make", "-C", f"{FOLDER}/{recipe.driver}", "-j{jobs}", f"OUT={_OUT}", f"CXXFLAGS={_FLAGS}",
        "ENGINES=null" if name == "null" else f"ENGINES=null {name}",
    ]  # fmt: skip
    if link.include:
        argv.append(f"INCLUDES={' '.join(map(_from_driver, link.include))}")
    if link.libraries:
        argv.append(f"LINK={' '.join(map(_from_driver, link.libraries))}")
    if link.flags:
        argv.append(f"EXTRA={' '.join(link.flags)}")
    return [argv]


def native_hash(engine: Engine) -> str:
    """Hash of the files that go into the tree."""
    files = native_files(engine)
    content = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def put_into(tree: Path, files: Mapping[str, Path]) -> None:
    """Copies the files into a tree."""
    for name, path in files.items():
        target = tree / FOLDER / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def packed_natives(engine: Engine, cache: Path) -> Packed | None:
    """The files as one that can be sent; ``None`` when there are none."""
    files = native_files(engine)
    if not files:
        return None
    folder = (cache / "sources").absolute()
    work = folder / f"work-{secrets.token_hex(4)}"
    part = folder / f"{work.name}.part"
    with exclusive(folder / "natives.lock"):
        try:
            put_into(work, files)
            with part.open("wb") as file:
                content = pack(work, file)
            packed = Packed(content, "", None)
            part.replace(folder / packed.name)
        finally:
            shutil.rmtree(work, ignore_errors=True)
            part.unlink(missing_ok=True)
    return packed


def _driver_files(engine: Engine) -> dict[str, Path]:
    driver, wanted = engine.build.driver, f"engine_{driver_engine(engine)}.cc"
    folder = _native_folder(driver)
    engines = {path.name for path in folder.glob("engine_*.cc")}
    if wanted not in engines:
        known = sorted(name.removeprefix("engine_").removesuffix(".cc") for name in engines)
        word = driver_engine(engine)
        raise ConfigurationError(
            f"{driver} knows no engine {word!r}{did_you_mean(word, known)}",
            f"one of {', '.join(known)} as engine in [build.link] of {engine.name}",
        )
    others = engines - {wanted, "engine_null.cc"}
    sources = [*folder.glob("*.cc"), *folder.glob("*.h"), folder / "Makefile"]
    return {f"{driver}/{p.name}": p for p in sorted(sources) if p.name not in others}


def _from_driver(word: str) -> str:
    """A path of the tree as the driver's makefile sees it; options and make's words stay."""
    return word if word.startswith(("-", "/", "$")) else f"{_UP}/{word}"


def _native_folder(name: str) -> Path:
    """A folder of ``native``: of the repository, or as shipped in the package."""
    package = Path(__file__).resolve().parents[1]
    places = (package.parent / "native" / name, package / "native" / name)
    for place in places:
        if place.is_dir():
            return place
    raise ConfigurationError(
        f"there is no folder {name!r} in native: neither {places[0]} nor {places[1]}",
        "correct native in the engine's [build], or install benchrunner again",
    )
