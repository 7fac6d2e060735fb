"""Makes sure that a host has the supervisor: compiled there once for each state of its sources."""

from __future__ import annotations

import hashlib
import secrets
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.errors import BuildError, ConfigurationError, TransportError
from benchrunner.transports import ConnectionLostError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchrunner.transports import Transport

PROGRAM = "br-supervise"
COMPILE_FLAGS = ("-std=c17", "-O2")
ReadyMade = Callable[[], Path]
"""Gives a supervisor's binary on the controller."""
_COMPILE_LIMIT_S = 120.0
_SHORT_S = 20.0
_INSTALL = "apt-get install -y gcc libc6-dev"


class NoCompilerError(BuildError):
    """A host has no C compiler."""


def supervisor_sources() -> Path:
    """Folder of the supervisor's sources: of the repository, or as shipped in the package.

    Raises:
        ConfigurationError: It is in neither place.
    """
    package = Path(__file__).resolve().parents[1]
    places = (package.parent / "native" / "supervisor", package / "native" / "supervisor")
    for place in places:
        if (place / "main.c").is_file():
            return place
    raise ConfigurationError(
        f"the supervisor's sources are missing: neither {places[0]} nor {places[1]} has main.c",
        "install benchrunner again",
    )


def source_hash(source_dir: Path) -> str:
    """Hash of all that makes the binary: names and contents of the sources, and the flags."""
    digest = hashlib.sha256(" ".join(COMPILE_FLAGS).encode())
    for path in _sources(source_dir, "*.[ch]"):
        content = path.read_bytes()
        digest.update(f"\0{path.name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def ensure_supervisor(
    transport: Transport, source_dir: Path, cache_dir: str, ready_made: ReadyMade | None = None
) -> str:
    """Returns the path of the supervisor's binary on the host; compiles it if it is not cached.

    Two controllers may do so at once: each compiles in a folder of its own, and whichever rename
    comes last puts the same program in place. So no lock is needed, and none can be left behind.

    Args:
        transport: The host.
        source_dir: Of the sources, here.
        cache_dir: On the host.
        ready_made: Makes a static binary here, for a host that has no compiler.

    Raises:
        BuildError: The host has no C compiler and cannot run what is made here, or its compiler
            refuses the sources.
    """
    folder = f"{cache_dir}/supervisor/{source_hash(source_dir)}"
    program = f"{folder}/{PROGRAM}"
    if transport.size(program) is None:
        work = f"{folder}/build-{secrets.token_hex(4)}"
        try:
            try:
                _compile(transport, source_dir, work)
            except NoCompilerError as missing:
                if ready_made is None:
                    raise
                _deliver(transport, ready_made(), work, missing)
            _checked(transport, ["mv", "-f", "--", f"{work}/{PROGRAM}", program])
        finally:
            transport.run(["rm", "-rf", "--", work], timeout_s=_SHORT_S)
    return program


def _deliver(transport: Transport, binary: Path, work: str, missing: BuildError) -> None:
    """Sends a static program; it must be of the host's kind of machine."""
    transport.put(binary, f"{work}/{PROGRAM}", 0o755)
    try:
        _checked(transport, [f"{work}/{PROGRAM}", "--version"])
    except (BuildError, TransportError) as error:
        raise BuildError(
            f"{missing.message}; the one compiled here does not run there: {error.message}",
            missing.hint,
        ) from error


def _compile(transport: Transport, source_dir: Path, work: str) -> None:
    with tempfile.TemporaryDirectory(prefix="benchrunner-") as together:
        for path in _sources(source_dir, "*.[ch]"):
            shutil.copyfile(path, Path(together) / path.name)
        transport.put(Path(together), work)  # one copy, not one round trip for each file
    files = [path.name for path in _sources(source_dir, "*.c")]
    argv = ["cc", *COMPILE_FLAGS, "-o", PROGRAM, *files]
    try:
        # Static where the host has a static libc: it starts faster, and runs where libc is older.
        done = transport.run([*argv, "-static"], cwd=work, timeout_s=_COMPILE_LIMIT_S)
        if done.exit_code != 0:
            done = transport.run(argv, cwd=work, timeout_s=_COMPILE_LIMIT_S)
    except ConnectionLostError:
        raise
    except TransportError as error:
        raise NoCompilerError(
            f"the supervisor cannot be compiled on {transport.host}: {error.message}", _INSTALL
        ) from error
    if done.exit_code != 0:
        log = done.stderr.decode(errors="replace")
        raise BuildError(
            f"the supervisor does not compile on {transport.host}: {_first_error(log)}",
            f"{_INSTALL}, or see the compiler's messages",
            log_tail="\n".join(log.splitlines()[-20:]),
        )
    _checked(transport, [f"{work}/{PROGRAM}", "--version"])


def _checked(transport: Transport, argv: Sequence[str]) -> None:
    done = transport.run(argv, timeout_s=_SHORT_S)
    if done.exit_code != 0:
        raise BuildError(
            f"{' '.join(argv)} failed on {transport.host} with exit code {done.exit_code}: "
            f"{done.stderr.decode(errors='replace').strip()}"
        )


def _first_error(log: str) -> str:
    lines = log.splitlines() or ["no message"]
    return next((line for line in lines if "error" in line), lines[0])


def _sources(source_dir: Path, pattern: str) -> list[Path]:
    return sorted(source_dir.glob(pattern))
