"""Folders on a host that are ours: claimed by a marker file, and the only ones ever deleted.

In: a transport and absolute paths. A folder without our marker is never emptied, never removed and
never written into. Each check and what it permits run in one process on the host, so that nothing
can come between them. What deletes is the supervisor (``ours.c``).
"""

from __future__ import annotations

import json
import posixpath
import re
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchrunner.errors import ConfigurationError, ForeignDirectoryError, TransportError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchrunner.transports import Completed, Transport

MARKER = ".benchrunner"
REFUSED = 4
"""Exit code of the supervisor when a folder is not ours."""
_SHORT_S = 60.0
_LONG_S = 3600.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@=,-]*\Z")

# Each script says what it found in one word on stdout. Arguments: the folder, then others.
_CLAIM = r"""
set -eu
mkdir -p -- "$1"
real=$(cd -P -- "$1" && pwd)
home=$(cd -P -- "${HOME:-/}" 2>/dev/null && pwd || echo /)
if [ "$real" = / ] || [ "$real" = "$home" ]; then echo precious
elif [ -f "$real/.benchrunner" ]; then echo ours
elif ls -A -- "$real" | grep -qvx 'lost+found'; then echo foreign
else
  printf '%s\n' "$2" >"$real/.benchrunner.$$"
  mv -f -- "$real/.benchrunner.$$" "$real/.benchrunner"
  echo claimed
fi
"""
_WRITABLE = r"""
set -eu
directory=$1
while [ ! -e "$directory" ]; do directory=$(dirname -- "$directory"); done
if [ -d "$directory" ] && [ -w "$directory" ] && [ -x "$directory" ]; then exit; fi
id -un
probe=$directory/.benchrunner-probe-$$
LC_ALL=C touch -- "$probe" 2>&1 && rm -f -- "$probe"
"""
_FREE = r"""
set -eu
directory=$1
while [ ! -d "$directory" ]; do directory=$(dirname -- "$directory"); done
exec stat -f -c '%a %S' -- "$directory"
"""


def safe_name(name: str) -> str:
    """Returns the name if it can be one part of a path, and nothing else than that.

    >>> safe_name("7.2.2-DIO")
    '7.2.2-DIO'

    Raises:
        ConfigurationError: It is empty, too long, hidden, or has a character that paths or shells
            could read in another way.
    """
    if len(name) > 128 or not _NAME.match(name):
        raise ConfigurationError(
            f"{name!r} cannot be the name of a folder",
            "letters, digits and . _ + @ = , - only, first a letter or digit, at most 128 of them",
        )
    return name


def claim(transport: Transport, path: str, what: str) -> None:
    """Makes a folder ours: a new or empty one gets the marker, one with the marker stays as it is.

    What ``mkfs`` puts into a new file system (``lost+found``) leaves it empty.

    Raises:
        ForeignDirectoryError: It holds files and no marker, or is the root or home folder.
    """
    marker = json.dumps({"what": what, "created": int(time.time())})
    found = _script(transport, _CLAIM, _absolute(path), marker)
    if found == "precious":
        raise ForeignDirectoryError(
            f"{path} on {transport.host} is the root or home folder", "name a folder below it"
        )
    if found == "foreign":
        raise _foreign(transport, path)


def ensure_ours(transport: Transport, path: str) -> None:
    """Checks that a folder carries our marker.

    Raises:
        ForeignDirectoryError: It does not, or is not there.
    """
    if transport.size(f"{_absolute(path)}/{MARKER}") is None:
        raise _foreign(transport, path)


@dataclass(frozen=True, slots=True)
class FreshFolders:
    """Folders of ours to be made empty: what was in them goes as with ``remove``."""

    folders: tuple[tuple[str, str], ...]
    """(claimed work directory, folder below it) pairs; absolute."""
    inside: tuple[str, ...]
    """Made in them; absolute."""
    what: str
    """For the marker."""

    def arguments(self) -> list[str]:
        """The supervisor's arguments for it."""
        marker = json.dumps({"what": self.what, "created": int(time.time())})
        arguments = ["--marker", marker]
        for work_dir, path in self.folders:
            arguments += ["--in", _absolute(work_dir), "--fresh", _absolute(path)]
        for path in self.inside:
            arguments += ["--make", _absolute(path)]
        return arguments


def remove(
    transport: Transport,
    supervisor: str,
    folders: Sequence[tuple[str, str]],
    lease: Sequence[str] = (),
) -> None:
    """Deletes folders of ours below work directories of ours, in one process.

    One that is not there is no error. Symbolic links are not followed and other file systems not
    entered. The marker goes last, so a removal that was cut short can be done again. An empty
    folder needs no marker.

    Args:
        transport: The host.
        supervisor: Its program there.
        folders: (work directory, folder below it) pairs; absolute.
        lease: Arguments that show the right to.

    Raises:
        ForeignDirectoryError: Anything about a folder is not as it should be; it is not touched.
    """
    argv = [supervisor, "remove", *lease]
    for work_dir, path in folders:
        argv += ["--in", _absolute(work_dir), "--folder", _absolute(path)]
    done = transport.run(argv, timeout_s=_LONG_S)
    refuse_foreign(transport.host, done)
    if done.exit_code != 0:
        why = done.stderr.decode(errors="replace").strip().removeprefix("br-supervise: ")
        raise TransportError(f"a folder on {transport.host} cannot be deleted: {why}")


def refuse_foreign(host: str, done: Completed) -> None:
    """The error for a folder that the supervisor would not touch, if that is how it ended."""
    if done.exit_code != REFUSED:
        return
    word, _, path = done.stdout.decode(errors="replace").strip().partition(" ")
    reasons = {
        "symlink": "is a symbolic link",
        "outside": "is not below the work directory",
        "precious": "holds the home folder",
        "mounted": "has a file system mounted on or below it",
        "foreign-work-dir": f"is below a work directory that has no {MARKER} file",
        "foreign": f"has no {MARKER} file",
    }
    raise ForeignDirectoryError(
        f"{path} on {host} {reasons[word]}: it is not deleted",
        "look at it, and delete it by hand if it can go",
    )


def checkpoint(
    transport: Transport, source: str, target: str, immutable_globs: Sequence[str]
) -> None:
    """Copies a folder as it stands, so that changes to either do not reach the other.

    Files that match a glob never change once written: they are hard-linked, at no cost. All others
    are copied. The target appears complete or not at all, and is on disk when this returns.

    Args:
        transport: The host.
        source: A folder that nobody writes to at the moment.
        target: A path on the same file system where nothing is yet.
        immutable_globs: Patterns of file names (``*.sst``), or of paths below the source if they
            hold a slash (``*/blob/*``).

    Raises:
        TransportError: It cannot be done: no space, another file system, the target exists.
    """
    part = f"{_absolute(target)}.{secrets.token_hex(4)}.part"
    if transport.size(target) is not None:
        raise TransportError(f"{target} on {transport.host} exists already: no checkpoint is made")
    try:
        _must(transport, ["cp", "-a", "--link", "-T", "--", _absolute(source), part])
        _must(transport, ["find", ".", *_mutable_files(immutable_globs), "-exec", "cp", "-a",
                          "--remove-destination", "--parents", "-t", part, "{}", "+"],
              cwd=source)  # fmt: skip
        _must(transport, ["sync", "-f", part])
        _must(transport, ["mv", "-n", "-T", "--", part, target])
    except BaseException:
        transport.run(["rm", "-rf", "--one-file-system", "--", part], timeout_s=_LONG_S)
        raise


def disk_free(transport: Transport, directory: str) -> int:
    """Bytes that an unprivileged user can still write there, or where the folder would be made."""
    blocks, block_bytes = _script(transport, _FREE, _absolute(directory)).split()
    return int(blocks) * int(block_bytes)


def _mutable_files(immutable_globs: Sequence[str]) -> list[str]:
    """Arguments of ``find`` for the files that have to be copied."""
    arguments = ["-type", "f"]
    for glob in immutable_globs:
        arguments += ["!", *(["-path", f"./{glob}"] if "/" in glob else ["-name", glob])]
    return arguments


def _absolute(path: str) -> str:
    """The path without ``.``, ``..`` and repeated slashes, checked for what no path of ours has."""
    if not path.startswith("/") or any(ord(character) < 32 for character in path):
        raise ConfigurationError(
            f"{path!r} is not an absolute path without control characters", "name the full path"
        )
    return posixpath.normpath("/" + path.lstrip("/"))


def _foreign(transport: Transport, path: str) -> ForeignDirectoryError:
    return ForeignDirectoryError(
        f"{path} on {transport.host} is not a folder of benchrunner: it has no {MARKER} file",
        "name a new or an empty folder",
    )


def _script(transport: Transport, script: str, *args: str, timeout_s: float = _SHORT_S) -> str:
    done = transport.run(["sh", "-c", script, "sh", *args], timeout_s=timeout_s)
    return _output(transport, done, args[0])


def _must(transport: Transport, argv: Sequence[str], cwd: str | None = None) -> None:
    _output(transport, transport.run(argv, timeout_s=_LONG_S, cwd=cwd), argv[0])


def _output(transport: Transport, done: Completed, about: str) -> str:
    if done.exit_code != 0:
        why = done.stderr.decode(errors="replace").strip() or f"exit code {done.exit_code}"
        raise TransportError(f"{about} on {transport.host}: {why.splitlines()[-1]}")
    return done.stdout.decode(errors="replace").strip()


def check_claimable(transport: Transport, path: str) -> None:
    """Checks that ``claim`` would not be refused; makes and changes nothing.

    Raises:
        ForeignDirectoryError: The folder holds files and no marker.
    """
    if transport.size(f"{_absolute(path)}/{MARKER}") is not None:
        return
    listing = transport.run(["ls", "-A", "--", path], timeout_s=_SHORT_S)
    if listing.exit_code == 0 and set(listing.stdout.splitlines()) - {b"lost+found"}:
        raise _foreign(transport, path)


def who_cannot_write(transport: Transport, path: str) -> tuple[str, str] | None:
    """The user there who cannot make a folder or write into it, and why; ``None``: we can."""
    argv = ["sh", "-c", _WRITABLE, "sh", _absolute(path)]
    user, _, said = (
        transport.run(argv, timeout_s=_SHORT_S).stdout.decode(errors="replace").partition("\n")
    )
    why = said.strip().rpartition(": ")[2]
    return (user, why[:1].lower() + why[1:]) if user else None
