"""A version at a source becomes an Artifact in the cache: fetched, built, checked, recorded.

The cache is content-addressed: the key hashes engine, source identity, recipe, compiler and
processor, so a second sweep builds nothing. A failed or refused build is an Artifact too.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from benchrunner.errors import BuildError, SourceError
from benchrunner.model import Artifact, SourceRef
from benchrunner.sources import fetch
from benchrunner.sources.system import installed_version
from benchrunner.toolchain import STD_INCLUDE_FROM, Toolchain, find_toolchain, missing_packages
from benchrunner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from benchrunner.definitions import Engine
    from benchrunner.sources.tree import Tree

RECORD = "artifact.json"
LOG = "build.log"
LOG_TAIL_LINES = 15
_FLAG = re.compile(r"^\s+-(\w+) \(", re.MULTILINE)
_PROBE_S = 30.0

Progress = "Callable[[int, int | None], None]"


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where and how builds happen."""

    cache: Path
    jobs: int
    on_progress: Callable[[int, int | None], None] = lambda _done, _total: None


def build(engine: Engine, ref: SourceRef, workshop: Workshop) -> Artifact:
    """The artifact of a version: from the cache, or built now. A failure is an artifact, too."""
    if ref.kind == "system":
        return system_artifact(engine, ref)
    try:
        toolchain = find_toolchain()
        key = cache_key(engine, ref, toolchain)
        folder = workshop.cache / "artifacts" / key
        with _locked(folder):
            found = _cached(folder)
            return found or _build(engine, ref, workshop, toolchain, folder)
    except (BuildError, SourceError) as error:
        tail = getattr(error, "log_tail", "")
        reason = error.message + (f"\n{tail}" if tail else "")
        identity = hashlib.sha256(f"{ref.kind} {ref.ref} {time.time_ns()}".encode()).hexdigest()
        return Artifact(
            identity[:16], engine.name, ref.version, ref.kind, ref.ref, "failed", reason=reason
        )


def cache_key(engine: Engine, ref: SourceRef, toolchain: Toolchain) -> str:
    """Hash of all that makes the binary what it is."""
    content = {
        "engine": engine.name,
        "source": [ref.kind, ref.ref, ref.note],
        "commands": engine.build.commands,
        "env": engine.build.env,
        "keep": engine.build.keep,
        "toolchain": toolchain.identity,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def refused(artifact: Artifact, compression: str) -> Artifact:
    """The artifact, refused when it was built without the compression that a workload asks for.

    A binary of unknown features (one that is installed) passes: its own warnings tell.
    """
    wanted = {"bzip2": "bzip2", "lz4hc": "lz4"}.get(compression, compression)
    if artifact.state != "built" or wanted in ("", "none") or artifact.source == "system":
        return artifact
    if wanted in artifact.features:
        return artifact
    have = ", ".join(sorted(artifact.features)) or "nothing"
    return replace(
        artifact, state="refused",
        reason=f"it was built without {compression} (it has {have}); install lib{wanted}-dev",
    )  # fmt: skip


def system_artifact(engine: Engine, ref: SourceRef) -> Artifact:
    """An installed binary as an artifact: identified by its content."""
    source = next(s for s in engine.source if s.kind == "system")
    binary = shutil.which(source.binary) if ref.ref in ("system", source.binary) else ref.ref
    if binary is None or not Path(binary).is_file():
        return Artifact(
            f"system-{source.binary}", engine.name, ref.version, "system", ref.ref, "failed",
            reason=f"{source.binary} is not installed; apt-get install -y {source.debian}",
        )  # fmt: skip
    digest = file_hash(Path(binary))
    flags = probe_flags(binary) if engine.flags else None
    return Artifact(
        id=digest[:16], engine=engine.name, version=installed_version(binary, source.version_argv),
        source="system", ref=binary, state="built", directory=str(Path(binary).parent),
        binaries={source.binary: binary}, sha256={source.binary: digest}, known_flags=flags,
        features=_linked_features(binary),
    )  # fmt: skip


def probe_flags(binary: str) -> frozenset[str] | None:
    """Flags that a program lists with gflags' ``--help``; ``None`` when it lists none."""
    try:
        done = subprocess.run(
            [binary, "--help"], capture_output=True, text=True, errors="replace",
            stdin=subprocess.DEVNULL, timeout=_PROBE_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return listed_flags(done.stdout + done.stderr)


def listed_flags(text: str) -> frozenset[str] | None:
    """Flag names in gflags' help.

    >>> sorted(listed_flags("    -num (Number of keys) type: int64 default: 1\\n"))
    ['num']
    """
    return frozenset(_FLAG.findall(text)) or None


def file_hash(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---------------------------------------------------------------- the cache


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One builder of a key at a time; others wait. The lock dies with its process."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _cached(folder: Path) -> Artifact | None:
    """The stored artifact, if its binaries are what they were."""
    record = folder / RECORD
    if not record.is_file():
        return None
    artifact = revived(json.loads(record.read_text()))
    for name, path in artifact.binaries.items():
        if not Path(path).is_file() or file_hash(Path(path)) != artifact.sha256.get(name):
            shutil.rmtree(folder)
            return None
    return artifact


def revived(stored: Mapping[str, Any]) -> Artifact:
    """An artifact from its JSON form."""
    fields = dict(stored)
    known = fields.get("known_flags")
    fields["known_flags"] = frozenset(known) if known is not None else None
    fields["features"] = frozenset(fields["features"])
    return Artifact(**fields)


def _as_json(artifact: Artifact) -> str:
    return json.dumps(asdict(artifact), indent=1, default=sorted)


# ---------------------------------------------------------------- one build


def _build(
    engine: Engine, ref: SourceRef, workshop: Workshop, toolchain: Toolchain, folder: Path
) -> Artifact:
    missing = missing_packages(engine.build.needs.debian)
    if missing:
        raise BuildError(
            f"{engine.name} {ref.version} cannot be built here; run: apt-get install -y {' '.join(missing)}"
        )
    root = workshop.cache / "builds"
    root.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(root)
    work = root / f"{folder.name}-{os.getpid()}"
    shutil.rmtree(work, ignore_errors=True)
    began = time.monotonic()
    try:
        tree = fetch(engine, ref, work, workshop.cache)
        log = root / f"{folder.name}.log"
        _compile(engine, tree, workshop, toolchain, log)
        return _keep(engine, ref, tree, toolchain, folder, log, time.monotonic() - began)
    finally:
        shutil.rmtree(work, ignore_errors=True)


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


def _compile(
    engine: Engine, tree: Tree, workshop: Workshop, toolchain: Toolchain, log: Path
) -> None:
    env = toolchain.environment(tree.path.parent)
    env |= recipe_env(engine, tree.version, toolchain)
    total = sum(1 for _ in tree.path.rglob("*.cc")) or None
    counter = re.compile(engine.build.count.encode()) if engine.build.count else None
    done = 0
    with log.open("wb") as output:
        for command in engine.build.commands:
            argv = [word.replace("{jobs}", str(workshop.jobs)) for word in command]
            for line in _lines(argv, tree.path, env, engine.name, log):
                output.write(line)
                if counter is not None and counter.search(line):
                    done += 1
                    workshop.on_progress(done, max(total, done) if total else None)


def _lines(
    argv: list[str], cwd: Path, env: dict[str, str], engine: str, log: Path
) -> Iterator[bytes]:
    """Output of a command in its own process group, which ends with us whatever happens."""
    process = subprocess.Popen(
        argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    recent: list[bytes] = []
    try:
        assert process.stdout is not None  # noqa: S101
        for line in process.stdout:
            recent = [*recent[1 - LOG_TAIL_LINES :], line]
            yield line
    finally:
        if process.poll() is None and process.stdout is not None and not process.stdout.closed:
            _end_group(process)
        process.wait()
    if process.returncode != 0:
        tail = b"".join(recent).decode(errors="replace").rstrip()
        raise BuildError(
            f"{argv[0]} of {engine} failed with status {process.returncode}; the log is {log}",
            "look at the last lines", tail,
        )  # fmt: skip


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends a build that is left half-way; one that has just ended needs nothing."""
    try:
        process.wait(timeout=0.5)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)


def _keep(
    engine: Engine,
    ref: SourceRef,
    tree: Tree,
    toolchain: Toolchain,
    folder: Path,
    log: Path,
    seconds: float,
) -> Artifact:
    """Checks a build and moves what is kept of it into the cache in one rename."""
    config = tree.path / engine.build.config_file
    config_text = config.read_text(errors="replace") if engine.build.config_file else ""
    text = log.read_text(errors="replace")
    for reason, pattern in engine.build.forbid.items():
        if re.search(pattern, text) or re.search(pattern, config_text):
            raise BuildError(f"the result is refused: {reason}")
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    names = [Path(name).name for name in engine.build.keep]
    for name in engine.build.keep:
        if not (tree.path / name).is_file():
            raise BuildError(f"the build made no {name}; the log is {log}")
        shutil.copy2(tree.path / name, part / Path(name).name)
    shutil.copy2(log, part / LOG)
    programs = [n for n in names if os.access(part / n, os.X_OK) and n != engine.build.config_file]
    state: Literal["built"] = "built"
    artifact = Artifact(
        id=folder.name, engine=engine.name, version=tree.version, source=ref.kind, ref=ref.ref,
        state=state, commit=tree.commit, compiler=toolchain.version, directory=str(folder),
        binaries={name: str(folder / name) for name in programs},
        sha256={name: file_hash(part / name) for name in programs},
        build_flags={**recipe_env(engine, tree.version, toolchain), **_config_entries(config_text)},
        known_flags=probe_flags(str(part / programs[0])) if programs and engine.flags else None,
        features=frozenset(n for n, p in engine.build.features.items() if re.search(p, config_text)),
        seconds=seconds, log=str(folder / LOG),
    )  # fmt: skip
    (part / RECORD).write_text(_as_json(artifact))
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)
    log.unlink()
    return artifact


def _config_entries(text: str) -> dict[str, str]:
    """``NAME=value`` lines that shape a binary."""
    wanted = ("PLATFORM_CXXFLAGS", "PLATFORM_LDFLAGS", "CXX", "PLATFORM", "OPT")
    entries = (line.partition("=") for line in text.splitlines())
    return {name: value.strip() for name, sign, value in entries if sign and name in wanted}


def _linked_features(binary: str) -> frozenset[str]:
    """Compression and allocator libraries that an installed binary is linked with."""
    if shutil.which("ldd") is None:
        return frozenset()
    done = subprocess.run(["ldd", binary], capture_output=True, text=True, check=False)
    libraries = {
        "snappy": "libsnappy", "zlib": "libz.", "bzip2": "libbz2", "lz4": "liblz4",
        "zstd": "libzstd", "jemalloc": "libjemalloc", "io_uring": "liburing", "numa": "libnuma",
        "gflags": "libgflags",
    }  # fmt: skip
    return frozenset(name for name, library in libraries.items() if library in done.stdout)
