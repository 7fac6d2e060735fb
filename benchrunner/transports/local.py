"""This machine as a host: processes, and copies of files. The contract is in ``transports``."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchrunner.errors import TransportError
from benchrunner.transports import Completed, MissingFileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_DRAIN_S = 1.0
"""How long a killed command's pipes may stay open: a process that left its group can hold them."""


class LocalTransport:
    """This machine."""

    host = "this machine"

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        input: bytes | None = None,  # noqa: A002
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Completed:
        """See ``Transport.run``."""
        process = self._start(argv, with_input=input is not None, env=env, cwd=cwd)
        try:
            stdout, stderr = process.communicate(input, timeout_s)
        except subprocess.TimeoutExpired:
            _end_group(process)
            raise TransportError(
                f"{words_of(argv)} did not end within {timeout_s:g} s on {self.host}",
                "find out what it waits for by running it by hand",
            ) from None
        except BaseException:
            _end_group(process)
            raise
        return Completed(process.returncode, stdout, stderr)

    def _start(
        self,
        argv: Sequence[str],
        *,
        with_input: bool,
        env: Mapping[str, str] | None,
        cwd: str | None,
    ) -> subprocess.Popen[bytes]:
        if not argv:
            raise TransportError("an empty argument list cannot be run")
        try:
            return subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE if with_input else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **env} if env else None,
                cwd=cwd,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            if cwd is not None and not Path(cwd).is_dir():
                raise MissingFileError(
                    f"{words_of(argv)} cannot run in {cwd} on {self.host}: no such folder"
                ) from error
            raise TransportError(
                f"{argv[0]} was not found on {self.host}", "benchrunner doctor"
            ) from error
        except (OSError, ValueError) as error:
            why = reason(error)
            raise TransportError(f"{words_of(argv)} cannot run on {self.host}: {why}") from error

    @contextmanager
    def stream(self, argv: Sequence[str]) -> Iterator[Piped]:
        """Starts a command to talk to; it ends with the block."""
        process = self._start(argv, with_input=True, env=None, cwd=None)
        try:
            yield Piped(process)
        finally:
            _end_group(process)

    def put(self, local: Path, remote: str, mode: int | None = None) -> None:
        """See ``Transport.put``."""
        target = self._path(remote)
        with self._explained(f"{local} cannot be copied to {remote}"):
            _copy(local, target, mode)

    def get(self, remote: str, local: Path) -> None:
        """See ``Transport.get``."""
        source = self._path(remote)
        with self._explained(f"{remote} cannot be fetched to {local}"):
            _copy(source, local, None)

    def read(self, remote: str, offset: int = 0, limit: int | None = None) -> bytes:
        """See ``Transport.read``."""
        path = self._path(remote)
        with self._explained(f"{remote} cannot be read"), path.open("rb") as file:
            if offset:
                file.seek(offset)
            return file.read(limit)

    def size(self, remote: str) -> int | None:
        """See ``Transport.size``."""
        path = self._path(remote)
        with self._explained(f"{remote} cannot be looked at"):
            try:
                return path.stat().st_size
            except (FileNotFoundError, NotADirectoryError):
                return None

    def close(self) -> None:
        """Nothing is held open."""

    def _path(self, remote: str) -> Path:
        if not remote.startswith("/"):
            raise TransportError(f"{remote!r} is not an absolute path on {self.host}")
        return Path(remote)

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Turns the operating system's errors into a sentence that begins with ``what``."""
        try:
            yield
        except FileNotFoundError as error:
            missing = error.filename or "it"
            raise MissingFileError(f"{what} on {self.host}: {missing} is not there") from error
        except (OSError, ValueError) as error:
            raise TransportError(f"{what} on {self.host}: {reason(error)}") from error


class Piped:
    """A command that is talked to while it runs."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def read(self, size: int) -> bytes:
        """Output as it comes, nothing at its end."""
        output: Any = self._process.stdout
        data: bytes = output.read1(size)
        return data

    def write(self, data: bytes) -> None:
        """Sends input, as soon as the command has taken enough of what was sent before."""
        into: Any = self._process.stdin
        into.write(data)
        into.flush()


def words_of(argv: Sequence[str]) -> str:
    """A command for a message, cut when it is long."""
    text = " ".join(argv)
    return text if len(text) <= 80 else f"{text[:77]}..."


def reason(error: Exception) -> str:
    """The sentence inside an error of the operating system or of ``shutil``."""
    if isinstance(error, shutil.Error) and isinstance(error.args[0], list):
        source, _target, why = error.args[0][0]
        return f"{source}: {why}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return str(error)


def _end_group(process: subprocess.Popen[Any]) -> None:
    """Kills the command's process group and waits for the command itself."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()
    try:
        process.communicate(timeout=_DRAIN_S)
    except subprocess.TimeoutExpired:
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        process.wait()


def _copy(source: Path, target: Path, mode: int | None) -> None:
    """Copies under a temporary name in the target's own folder, then renames."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.part")
    try:
        if source.is_dir():
            _copy_folder(source, target, part)
        else:
            _copy_file(source, target, part, mode)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        part.unlink(missing_ok=True)
        raise


def _copy_file(source: Path, target: Path, part: Path, mode: int | None) -> None:
    if target.is_dir():
        raise IsADirectoryError(None, "a folder is in the way", str(target))
    shutil.copyfile(source, part)
    part.chmod(source.stat().st_mode & 0o7777 if mode is None else mode)
    part.replace(target)


def _copy_folder(source: Path, target: Path, part: Path) -> None:
    if target.exists() or target.is_symlink():
        raise FileExistsError(None, "something is there already", str(target))
    shutil.copytree(source, part, symlinks=True)
    part.rename(target)
