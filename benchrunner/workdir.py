"""Folders on a host that are ours: claimed by a marker file, and the only ones ever deleted.

In: a transport and absolute paths. A folder without our marker is never emptied, never removed and
never written into. Each check and what it permits run in one script on the host, so that nothing
can come between them.
"""

from __future__ import annotations

import json
import posixpath
import re
import secrets
import time
from typing import TYPE_CHECKING

from benchrunner.errors import ConfigurationError, ForeignDirectoryError, TransportError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchrunner.transports import Completed, Transport

MARKER = ".benchrunner"
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
elif [ -n "$(ls -A -- "$real")" ]; then echo foreign
else
  printf '%s\n' "$2" >"$real/.benchrunner.$$"
  mv -f -- "$real/.benchrunner.$$" "$real/.benchrunner"
  echo claimed
fi
"""
_REMOVE = r"""
set -eu
if [ -L "$2" ]; then echo symlink; exit; fi
if [ ! -e "$2" ]; then echo absent; exit; fi
home=/
if cd -P -- "${HOME:-/}" 2>/dev/null; then home=$PWD; fi
cd -P -- "$1"; work=$PWD
cd -P -- "$2"; real=$PWD
case $real in "$work"/?*) ;; *) echo outside; exit ;; esac
case $home/ in "$real"/*) echo precious; exit ;; esac
if [ ! -f "$work/.benchrunner" ]; then echo foreign-work-dir; exit; fi
if [ ! -f "$real/.benchrunner" ] || [ -L "$real/.benchrunner" ]; then
  cd /
  if rmdir -- "$real" 2>/dev/null; then echo removed; else echo foreign; fi
  exit
fi
if awk -v below="$real" '
    { point = $5; gsub(/\\040/, " ", point); gsub(/\\134/, "\\", point) }
    point == below || index(point, below "/") == 1 { found = 1 }
    END { exit !found }' /proc/self/mountinfo; then echo mounted; exit; fi
find . -xdev -depth -mindepth 1 ! -path ./.benchrunner -delete
cd /
echo removed
exec rm -r -- "$real"
"""
_RENEW = rf"""
set -eu
if [ ! -f "$1/.benchrunner" ]; then echo foreign-work-dir; exit; fi
if [ -e "$2" ] || [ -L "$2" ]; then
  found=$({_REMOVE})
  if [ "$found" != removed ]; then echo "$found"; exit; fi
fi
mkdir -p -- "$2"
cd -P -- "$1"; work=$PWD
cd -P -- "$2"; real=$PWD
cd /
case $real in "$work"/?*) ;; *) rmdir -- "$real"; echo outside; exit ;; esac
printf '%s\n' "$3" >"$real/.benchrunner"
shift 3
[ $# -eq 0 ] || mkdir -p -- "$@"
echo claimed
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


def remove(transport: Transport, work_dir: str, path: str) -> None:
    """Deletes a folder of ours below a work directory of ours. One that is not there is no error.

    Symbolic links are not followed and other file systems not entered. The marker goes last, so a
    removal that was cut short can be done again. An empty folder needs no marker.

    Raises:
        ForeignDirectoryError: Anything about the folder is not as it should be; nothing is deleted.
    """
    found = _script(transport, _REMOVE, _absolute(work_dir), _absolute(path), timeout_s=_LONG_S)
    _refuse(transport, found, work_dir, path)


def renew(
    transport: Transport, work_dir: str, path: str, what: str, folders: Sequence[str]
) -> None:
    """Makes an empty folder of ours below a work directory of ours, in one round trip.

    What was there goes as with ``remove``.

    Args:
        transport: The host.
        work_dir: Claimed before.
        path: The folder.
        what: For the marker.
        folders: Made in it; absolute.

    Raises:
        ForeignDirectoryError: What is there may not be deleted; nothing is.
    """
    marker = json.dumps({"what": what, "created": int(time.time())})
    inside = [_absolute(folder) for folder in folders]
    where = (_absolute(work_dir), _absolute(path))
    found = _script(transport, _RENEW, *where, marker, *inside, timeout_s=_LONG_S)
    _refuse(transport, found, work_dir, path)


def _refuse(transport: Transport, found: str, work_dir: str, path: str) -> None:
    """The error for what a script found, unless all is well."""
    reasons = {
        "symlink": "is a symbolic link",
        "outside": f"is not below the work directory {work_dir}",
        "precious": "holds the home folder",
        "mounted": "has a file system mounted on or below it",
        "foreign-work-dir": f"is below {work_dir}, which has no {MARKER} file",
        "foreign": f"has no {MARKER} file",
    }
    if found in reasons:
        raise ForeignDirectoryError(
            f"{path} on {transport.host} {reasons[found]}: it is not deleted",
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
    return _output(transport, done, args[1] if script in (_REMOVE, _RENEW) else args[0])


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
    if listing.exit_code == 0 and listing.stdout.strip():
        raise _foreign(transport, path)
