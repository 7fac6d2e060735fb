"""A version at a source becomes an Artifact in the cache: fetched, built, checked, recorded.

The cache is content-addressed: the key hashes engine, source identity, recipe, compiler and
processor, so a second sweep builds nothing. A failed or refused build is an Artifact too.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
import shutil
import subprocess
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchrunner.binaries import file_hash, linked_features, probe_flags
from benchrunner.errors import BuildError, SourceError
from benchrunner.model import Artifact, SourceRef
from benchrunner.processes import TimeUpError, exclusive, run_logged
from benchrunner.sources import fetch, identity
from benchrunner.sources.system import installed_version, remedy
from benchrunner.toolchain import Toolchain, find_toolchain, missing_packages
from benchrunner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchrunner.definitions import Engine
    from benchrunner.sources.tree import Tree

RECORD = "artifact.json"
LOG = "build.log"
LOG_TAIL_LINES = 15
STD_INCLUDE_FROM = 13
"""From this gcc on <cstdint> must be included by who uses it; RocksDB before 10.4 does not."""
ASSERTIONS = b"Assertions are enabled"
"""The warning that db_bench, of RocksDB and of LevelDB, holds only when compiled without NDEBUG."""
_DRY_RUN_S = 120.0
_CODECS = {"lz4hc": "lz4"}
_PACKAGES = {"zlib": "zlib1g-dev", "bzip2": "libbz2-dev"}


class _RefusedError(BuildError):
    """The build worked and its result must not be measured."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where and how builds happen."""

    cache: Path
    jobs: int
    on_progress: Callable[[int, int | None], None] = lambda _done, _total: None
    """Files done, and how many there are when that is known."""
    on_note: Callable[[str], None] = lambda _text: None
    """What a person should know and need not act on."""
    limit_s: float = 4 * 3600.0
    """Longest that one command of a recipe may take."""
    nice: int = 0


@dataclass(frozen=True, slots=True)
class _Order:
    """One build to be done, and where."""

    engine: Engine
    ref: SourceRef
    workshop: Workshop
    toolchain: Toolchain
    key: str

    @property
    def folder(self) -> Path:
        return self.workshop.cache / "artifacts" / self.key

    @property
    def work(self) -> Path:
        return self.workshop.cache / "builds" / f"{self.key}-{os.getpid()}"

    @property
    def log(self) -> Path:
        return self.workshop.cache / "builds" / f"{self.key}.log"

    @property
    def what(self) -> str:
        return f"{self.engine.name} {self.ref.version}"

    def tell_wait(self) -> None:
        self.workshop.on_note(f"{self.what}: another process builds it; waiting for that")


def build(engine: Engine, ref: SourceRef, workshop: Workshop) -> Artifact:
    """The artifact of a version: from the cache, or built now. A failure is an artifact, too."""
    if ref.kind == "system":
        return system_artifact(engine, ref)
    try:
        toolchain = find_toolchain()
        order = _Order(engine, ref, workshop, toolchain, cache_key(engine, ref, toolchain))
        with exclusive(order.folder.with_name(f"{order.key}.lock"), order.tell_wait):
            return _cached(order) or _build(order)
    except (BuildError, OSError) as error:
        return _failed(engine, ref, error)


def cache_key(engine: Engine, ref: SourceRef, toolchain: Toolchain) -> str:
    """Hash of all that makes the binary what it is."""
    content = {
        "engine": engine.name,
        "source": identity(engine, ref),
        "recipe": engine.build.model_dump(exclude={"needs", "count"}),
        "toolchain": [toolchain.identity, toolchain.cc, toolchain.cxx, dict(toolchain.shaping)],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def refused(artifact: Artifact, compression: str) -> Artifact:
    """The artifact, refused when it was built without the compression that a workload asks for.

    A binary of unknown features (one that is installed) passes: its own warnings tell.
    """
    wanted = _CODECS.get(compression, compression)
    if artifact.state != "built" or wanted in ("", "none") or artifact.source == "system":
        return artifact
    if wanted in artifact.features:
        return artifact
    have = ", ".join(sorted(artifact.features)) or "nothing"
    package = _PACKAGES.get(wanted, f"lib{wanted}-dev")
    return replace(
        artifact, state="refused",
        reason=f"it was built without {compression} (it has {have}); "
        f"install {package} and remove {artifact.directory}",
    )  # fmt: skip


def system_artifact(engine: Engine, ref: SourceRef) -> Artifact:
    """An installed binary as an artifact: identified by its content."""
    source = next(s for s in engine.source if s.kind == "system")
    binary = shutil.which(ref.ref)
    if binary is None:
        return Artifact(
            f"system-{source.binary}", engine.name, ref.version, "system", ref.ref, "failed",
            reason=f"{ref.ref} is not installed; try: {remedy(source)}",
        )  # fmt: skip
    digest = file_hash(Path(binary))
    asserting = {"assertions"} if has_assertions(Path(binary)) else set()
    return Artifact(
        id=digest[:16], engine=engine.name, version=installed_version(binary, source),
        source="system", ref=binary, state="built", directory=str(Path(binary).parent),
        binaries={source.binary: binary}, sha256={source.binary: digest},
        known_flags=probe_flags(binary) if engine.flags else None,
        features=linked_features(binary) | asserting,
    )  # fmt: skip


def has_assertions(binary: Path) -> bool:
    """Whether a benchmark was compiled with assertions, so that its numbers are no release's."""
    if binary.stat().st_size == 0:
        return False
    with binary.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return text.find(ASSERTIONS) >= 0


def _cached(order: _Order) -> Artifact | None:
    """The stored artifact, if its binaries are what they were."""
    record = order.folder / RECORD
    if not record.is_file():
        return None
    artifact = revived(json.loads(record.read_text()))
    binaries = {name: order.folder / name for name in artifact.binaries}
    for name, path in binaries.items():
        if not path.is_file() or file_hash(path) != artifact.sha256.get(name):
            shutil.rmtree(order.folder)
            order.workshop.on_note(f"{order.what}: {path} is not what was built; building it again")
            return None
    return replace(
        artifact, directory=str(order.folder), log=str(order.folder / LOG),
        binaries={name: str(path) for name, path in binaries.items()},
    )  # fmt: skip


def revived(stored: Mapping[str, Any]) -> Artifact:
    """An artifact from its JSON form."""
    fields = dict(stored)
    known = fields.get("known_flags")
    fields["known_flags"] = frozenset(known) if known is not None else None
    fields["features"] = frozenset(fields["features"])
    return Artifact(**fields)


def _write_record(artifact: Artifact, folder: Path) -> None:
    (folder / RECORD).write_text(json.dumps(asdict(artifact), indent=1, default=sorted))


def _failed(
    engine: Engine, ref: SourceRef, error: Exception, order: _Order | None = None
) -> Artifact:
    """What did not work: a result, under an id of its own because the next attempt may differ."""
    attempt = f"{ref.kind} {ref.ref} {time.time_ns()} {os.getpid()}"
    artifact = Artifact(
        hashlib.sha256(attempt.encode()).hexdigest()[:16], engine.name, ref.version, ref.kind,
        ref.ref, "refused" if isinstance(error, _RefusedError) else "failed", reason=_why(error),
        compiler=order.toolchain.version if order else None,
    )  # fmt: skip
    if order is None or not order.log.is_file():
        return artifact
    folder = order.workshop.cache / "artifacts-failed" / artifact.id
    folder.mkdir(parents=True)
    artifact = replace(artifact, directory=str(folder), log=str(folder / LOG))
    shutil.move(order.log, artifact.log)
    _write_record(artifact, folder)
    return artifact


def _why(error: Exception) -> str:
    """What failed and what to try on the first line; then the end of the log."""
    if not isinstance(error, BuildError | SourceError):
        return str(error)
    hint = f"; try: {error.hint}" if error.hint else ""
    tail = error.log_tail if isinstance(error, BuildError) else ""
    return f"{error.message}{hint}" + (f"\n{tail}" if tail else "")


# ---------------------------------------------------------------- one build


def _build(order: _Order) -> Artifact:
    missing = missing_packages(order.engine.build.needs.debian)
    if missing:
        error = BuildError(
            f"{order.what} cannot be built without {', '.join(missing)}",
            f"apt-get install -y {' '.join(missing)}",
        )
        return _failed(order.engine, order.ref, error)
    root = order.work.parent
    root.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(root)
    order.log.unlink(missing_ok=True)
    shutil.rmtree(order.work, ignore_errors=True)
    began = time.monotonic()
    try:
        tree = fetch(order.engine, order.ref, order.work, order.workshop.cache)
        _compile(order, tree)
        return _keep(order, tree, time.monotonic() - began)
    except (BuildError, SourceError, OSError) as error:
        return _failed(order.engine, order.ref, error, order)
    finally:
        shutil.rmtree(order.work, ignore_errors=True)


def _remove_abandoned(root: Path) -> None:
    """Work folders of processes that are gone."""
    for path in root.iterdir():
        _, _, pid = path.name.rpartition("-")
        if path.is_dir() and pid.isdigit() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(path, ignore_errors=True)


def recipe_env(engine: Engine, version: str, toolchain: Toolchain) -> dict[str, str]:
    """The recipe's environment, with what an old tree needs under a new compiler."""
    env = dict(engine.build.env)
    number = Version.parse(version)
    is_old = number is not None and number < Version((10, 4))
    if engine.name == "rocksdb" and toolchain.major >= STD_INCLUDE_FROM and is_old:
        env["EXTRA_CXXFLAGS"] = f"{env.get('EXTRA_CXXFLAGS', '')} -include cstdint".strip()
    return env


def _compile(order: _Order, tree: Tree) -> None:
    """Runs the recipe's commands in the tree, all output into one log."""
    recipe, workshop = order.engine.build, order.workshop
    env = order.toolchain.environment(order.work.parent)
    env |= recipe_env(order.engine, tree.version, order.toolchain)
    nice = ["nice", "-n", str(workshop.nice)] if workshop.nice else []
    commands = [
        [word.replace("{jobs}", str(workshop.jobs)) for word in command]
        for command in recipe.commands
    ]
    counter = re.compile(recipe.count) if recipe.count else None
    total = expected_files(commands, counter, tree.path, env) if counter else None
    done = 0
    with order.log.open("wb") as log:

        def line_printed(line: bytes) -> None:
            nonlocal done
            log.write(line)
            if counter is not None and counter.search(line.decode(errors="replace")):
                done += 1
                workshop.on_progress(done, max(total, done) if total else None)

        for argv in commands:
            try:
                status = run_logged([*nice, *argv], tree.path, env, workshop.limit_s, line_printed)
            except TimeUpError:
                what = f"{argv[0]} did not end within {workshop.limit_s:g} s"
            else:
                what = f"{argv[0]} of {order.what} failed with status {status}" if status else ""
            if what:
                log.flush()
                raise BuildError(what, log_tail=_tail(order.log))


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return "\n".join(lines[-LOG_TAIL_LINES:])


def expected_files(
    commands: list[list[str]], counter: re.Pattern[str], tree: Path, env: Mapping[str, str]
) -> int | None:
    """How many lines of progress make will print, from a dry run, if it tells."""
    total = 0
    for argv in commands:
        if Path(argv[0]).name != "make":
            continue
        try:
            dry = subprocess.run(
                [*argv, "-n"], cwd=tree, env=env, capture_output=True, text=True, errors="replace",
                stdin=subprocess.DEVNULL, timeout=_DRY_RUN_S, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return None
        lines = (re.sub("^@?echo [\"']", "", line) for line in dry.stdout.splitlines())
        total += sum(1 for line in lines if counter.search(line))
    return total or None


def _keep(order: _Order, tree: Tree, seconds: float) -> Artifact:
    """Checks a build and moves what is kept of it into the cache in one rename."""
    recipe, folder = order.engine.build, order.folder
    config = tree.path / recipe.config_file if recipe.config_file else None
    settings = config.read_text(errors="replace") if config and config.is_file() else ""
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        programs = _copied(order, tree, part)
        _check(order, settings, part, programs)
        shutil.copy2(order.log, part / LOG)
        artifact = _described(order, tree, settings, part, programs)
        artifact = replace(artifact, seconds=seconds)
        _write_record(artifact, part)
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    order.log.unlink()
    return artifact


def _copied(order: _Order, tree: Tree, part: Path) -> list[str]:
    """Names of the programs among the files that the recipe keeps."""
    for name in order.engine.build.keep:
        if not (tree.path / name).is_file():
            raise BuildError(f"the build of {order.what} made no {name}")
        shutil.copy2(tree.path / name, part / Path(name).name)
    names = [Path(name).name for name in order.engine.build.keep]
    return [name for name in names if os.access(part / name, os.X_OK)]


def _check(order: _Order, settings: str, part: Path, programs: list[str]) -> None:
    """Refuses a build whose numbers would not be those of a release."""
    log = order.log.read_text(errors="replace")
    for reason, pattern in order.engine.build.forbid.items():
        if re.search(pattern, log) or re.search(pattern, settings):
            raise _RefusedError(f"the build of {order.what} is refused: {reason}")
    for name in programs:
        if has_assertions(part / name):
            raise _RefusedError(f"the build of {order.what} is refused: assertions are enabled")


def _described(
    order: _Order, tree: Tree, settings: str, part: Path, programs: list[str]
) -> Artifact:
    engine, toolchain = order.engine, order.toolchain
    own_settings = {**toolchain.shaping, **recipe_env(engine, tree.version, toolchain)}
    features = {n for n, pattern in engine.build.features.items() if re.search(pattern, settings)}
    first = str(part / programs[0]) if programs else None
    return Artifact(
        id=order.key, engine=engine.name, version=tree.version, source=order.ref.kind,
        ref=order.ref.ref, state="built", commit=tree.commit, compiler=toolchain.version,
        directory=str(order.folder), log=str(order.folder / LOG),
        binaries={name: str(order.folder / name) for name in programs},
        sha256={name: file_hash(part / name) for name in programs},
        build_flags={**own_settings, "target": toolchain.target, **_config_entries(settings)},
        known_flags=probe_flags(first) if first and engine.flags else None,
        features=frozenset(features),
    )  # fmt: skip


def _config_entries(text: str) -> dict[str, str]:
    """``NAME=value`` lines that shape a binary."""
    wanted = ("PLATFORM_CXXFLAGS", "PLATFORM_LDFLAGS", "CXX", "PLATFORM", "OPT")
    entries = (line.partition("=") for line in text.splitlines())
    return {name: value.strip() for name, sign, value in entries if sign and name in wanted}
