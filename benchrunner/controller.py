"""Who this process is, for other controllers: its name, its store, and whether it still lives.

In: /proc of this machine, and the place of the store. Out: an ``Owner``. The results folder gets
one small file, which makes it another than every other.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

_TOKEN_FILE = ".store-id"  # noqa: S105 - nothing secret
_LONGEST_ABOUT = 300


@dataclass(frozen=True, slots=True)
class Owner:
    """One controller, as others see it."""

    id: str
    """Random, so that nobody else ever has the same."""
    store: str
    """Controllers of one store may go on with each other's steps."""
    about: str
    """For people."""
    process: str = ""
    """Tells another controller on the same machine whether this one still lives."""


def this_controller(store: str, command: str) -> Owner:
    """This process as the owner of a lease; a new one for every host.

    So two names of one machine do not share its lease: the second waits for the first.

    Args:
        store: from ``store_id``.
        command: what was asked of it, for people who wait. Logins in URLs are left out.
    """
    user = login_name()
    shown = re.sub(r"://[^/@\s]*@", "://", command)
    about = f"{user}, process {os.getpid()} on {socket.gethostname()}: {shown}"
    return Owner(secrets.token_hex(8), store, _one_line(about), _process_name(os.getpid()))


def login_name() -> str:
    """Of this process, also where no login set ``USER``."""
    try:
        return os.environ.get("USER") or pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"


def store_id(url: str, results: Path) -> str:
    """A name for a store that no two stores share, and that tells nothing about it.

    A file's is made of its place and of a random text beside it: a copied results folder is another
    store, and so is the same path on another machine of the same name. A server's is made of its
    address without the login, so that controllers on several machines have the same.
    """
    parts = urlsplit(url)
    if parts.scheme.startswith("sqlite"):
        known = [_token(results), str(results.resolve()), parts.path, socket.gethostname()]
    else:
        server = parts.hostname or ""
        here = socket.gethostname() if server in ("", "localhost", "127.0.0.1", "::1") else ""
        known = [server, str(parts.port or ""), parts.path, parts.query, here]
    return hashlib.sha256("\0".join(known).encode()).hexdigest()[:16]


def process_start(pid: int) -> int | None:
    """Start of a process in clock ticks since boot; ``None`` when it is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def _token(results: Path) -> str:
    """The random text of a results folder; whoever comes second takes the first one's."""
    path = results / _TOKEN_FILE
    if not path.exists():
        draft = path.with_name(f"{_TOKEN_FILE}.{secrets.token_hex(4)}")
        draft.write_text(secrets.token_hex(16))
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text()


def _process_name(pid: int) -> str:
    """Pid, start, boot and pid namespace: together they mean one process for ever."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return ""
    return f"{pid} {process_start(pid)} {boot} {namespace}"


def is_seen_dead(process: str | None) -> bool:
    """Whether it was a process of this machine, this boot and this namespace, and is gone."""
    parts = (process or "").split(" ")
    ours = _process_name(os.getpid()).split(" ")
    if len(parts) != 4 or parts[2:] != ours[2:]:
        return False
    return str(process_start(int(parts[0]))) != parts[1]


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)[:_LONGEST_ABOUT]
