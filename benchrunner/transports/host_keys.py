"""Which key a host is known by: known_hosts files read, compared with an offered key, and written.

In: the text of those files and the public key that a host offers. Out: known, unknown or changed.
Nothing here talks to a host, and nothing is ever trusted without being asked to.
"""

from __future__ import annotations

import base64
import binascii
import fnmatch
import hashlib
import hmac
import os
import re
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from benchrunner.errors import TransportError
from benchrunner.transports import ChangedHostKeyError, UnknownHostKeyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ALGORITHMS = {
    "ssh-ed25519": ("ssh-ed25519",),
    "ecdsa-sha2-nistp256": ("ecdsa-sha2-nistp256",),
    "ecdsa-sha2-nistp384": ("ecdsa-sha2-nistp384",),
    "ecdsa-sha2-nistp521": ("ecdsa-sha2-nistp521",),
    "ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256"),
}
"""Type of a host key -> the signatures that it can be asked for, best first."""
_HASHED = "|1|"


@dataclass(frozen=True, slots=True)
class KnownKey:
    """One line of a known_hosts file."""

    file: Path
    line: int
    marker: str
    """``@revoked``, ``@cert-authority`` or nothing."""
    names: tuple[str, ...]
    key_type: str
    key: bytes

    def is_for(self, name: str) -> bool:
        """Whether the line speaks of a host; negated patterns exclude, as in OpenSSH."""
        matched = False
        for pattern in self.names:
            if pattern.startswith("!") and _matches(pattern[1:], name):
                return False
            matched = matched or _matches(pattern, name)
        return matched


@dataclass(frozen=True, slots=True)
class OfferedKey:
    """The key that a host offers, and what is known of it."""

    host: str
    """How messages call the host: it may be a jump host on the way."""
    name_in_known_hosts: str
    key_type: str
    key: bytes
    """Public, as it is sent."""
    known: Literal["unknown", "same", "changed", "revoked"]
    before: KnownKey | None = None
    """What is known instead, or the very same."""
    hash_names: bool = False

    @property
    def fingerprint(self) -> str:
        """As OpenSSH prints it."""
        return fingerprint(self.key)

    @property
    def line(self) -> int | None:
        """Where in a known_hosts file it, or another one in its place, is known."""
        return self.before.line if self.before else None


def fingerprint(key: bytes) -> str:
    """A public key's SHA-256 as OpenSSH prints it."""
    digest = base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")
    return f"SHA256:{digest}"


def read_known(files: Iterable[Path]) -> list[KnownKey]:
    """The lines of known_hosts files; files that are not there, and odd lines, say nothing.

    Raises:
        TransportError: A file is there and cannot be read.
    """
    found: list[KnownKey] = []
    for file in files:
        try:
            content = file.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise TransportError(f"{file} cannot be read: {error.strerror}") from error
        found += _parse(file, content)
    return found


def algorithms_for(known: Iterable[KnownKey], name: str) -> list[str]:
    """Signatures to ask a host for: those of the keys that it is known by come first.

    A host known by its ed25519 key would else look like a stranger when it offers an ECDSA key.
    """
    types = {entry.key_type for entry in known if not entry.marker and entry.is_for(name)}
    ordered = sorted(ALGORITHMS, key=lambda key_type: key_type not in types)
    return [algorithm for key_type in ordered for algorithm in ALGORITHMS[key_type]]


def judge(
    known: Sequence[KnownKey], names: Sequence[str], key: bytes
) -> tuple[Literal["unknown", "same", "changed", "revoked"], KnownKey | None]:
    """What is known of a host's key, and the line that says so.

    ``names``: the host's name, then the one without its port, under which OpenSSH accepts a key
    but never calls one changed. Since a host is asked for the types that it is known by, a key of
    another type counts as changed.
    """
    for entry in known:
        if entry.marker == "@revoked" and entry.key == key and entry.is_for(names[0]):
            return "revoked", entry
    plain = [entry for entry in known if not entry.marker]
    for name in names:
        for entry in plain:
            if entry.key == key and entry.is_for(name):
                return "same", entry
    others = [e for e in plain if e.is_for(names[0]) and e.key_type in ALGORITHMS]
    return ("changed", others[0]) if others else ("unknown", None)


def must_be_known(offered: OfferedKey, inventory_name: str) -> None:
    """Raises unless the key is the one that the host is known by.

    Raises:
        UnknownHostKeyError: Nobody has trusted a key of this host yet.
        ChangedHostKeyError: The host is known by another key, or this key is revoked.
    """
    kind = offered.key_type.removeprefix("ssh-")
    trust = f"benchrunner hosts trust {inventory_name}"
    if offered.known == "unknown":
        raise UnknownHostKeyError(
            f"the {kind} key of {offered.host} is not known: {offered.fingerprint}",
            f"compare it with ssh-keygen -lf /etc/ssh/ssh_host_{_file_word(kind)}_key.pub there,"
            f" then {trust}",
        )
    if offered.before is None or offered.known == "same":
        return
    where = f"{offered.before.file}:{offered.before.line}"
    if offered.known == "revoked":
        raise ChangedHostKeyError(
            f"the {kind} key of {offered.host}, {offered.fingerprint}, is revoked by {where}",
            "do not use this host before its keys are replaced",
        )
    raise ChangedHostKeyError(
        f"the key of {offered.host} has changed: {where} knows"
        f" {fingerprint(offered.before.key)}, the host offers {offered.fingerprint}:"
        " it was installed anew, or somebody is in between",
        f"ask whoever runs the host; only if the new key is right: {trust}",
    )


def trust(offered: OfferedKey, known_hosts: Path) -> None:
    """Writes a key into a known_hosts file, in place of those that the host had there before.

    Other lines stay as they are, byte for byte; the file changes as a whole or not at all.

    Raises:
        TransportError: The key is revoked, or the file cannot be written.
    """
    if offered.known == "revoked":
        raise TransportError(f"the key {offered.fingerprint} of {offered.host} is revoked")
    target = Path(os.path.realpath(known_hosts))
    name = offered.name_in_known_hosts
    written = hashed(name, secrets.token_bytes(20)) if offered.hash_names else name
    line = f"{written} {offered.key_type} {base64.b64encode(offered.key).decode()}\n"
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        before = target.read_bytes() if target.exists() else b""
        _replace(target, _without(before, name) + line.encode())
    except OSError as error:
        why = error.strerror or str(error)
        raise TransportError(f"{known_hosts} cannot be written: {why}") from error


def hashed(name: str, salt: bytes) -> str:
    """A host's name as known_hosts keeps it when ``HashKnownHosts`` is on."""
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return f"{_HASHED}{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


def _parse(file: Path, content: bytes) -> Iterator[KnownKey]:
    for number, line in enumerate(content.decode(errors="surrogateescape").split("\n"), 1):
        fields = line.split()
        marker = fields.pop(0) if fields and fields[0].startswith("@") else ""
        if len(fields) < 3 or fields[0].startswith("#"):
            continue
        try:
            key = base64.b64decode(fields[2], validate=True)
        except (binascii.Error, ValueError):
            continue
        yield KnownKey(file, number, marker, tuple(fields[0].split(",")), fields[1], key)


def _matches(pattern: str, name: str) -> bool:
    if pattern.startswith(_HASHED):
        try:
            salt, _ = (base64.b64decode(part, validate=True) for part in pattern[3:].split("|"))
        except (binascii.Error, ValueError):
            return False
        return hmac.compare_digest(hashed(name, salt).encode(), pattern.encode())
    # Brackets are letters here ([host]:port), not sets of characters.
    return fnmatch.fnmatchcase(name.lower(), pattern.lower().replace("[", "[[]"))


def _without(content: bytes, name: str) -> bytes:
    """A known_hosts file without the keys of one name; names that share a line stay."""
    kept = []
    for line in re.split(rb"(?<=\n)", content):
        fields = line.split()
        if not fields or fields[0].startswith((b"#", b"@")):
            kept.append(line)
            continue
        names = fields[0].decode(errors="surrogateescape").split(",")
        others = [n for n in names if n.lower() != name.lower() and not _is_hash_of(n, name)]
        if len(others) == len(names):
            kept.append(line)
        elif others:
            shorter = ",".join(others).encode(errors="surrogateescape")
            kept.append(line.replace(fields[0], shorter, 1))
    text = b"".join(kept)
    return text if not text or text.endswith(b"\n") else text + b"\n"


def _is_hash_of(pattern: str, name: str) -> bool:
    return pattern.startswith(_HASHED) and _matches(pattern, name)


def _replace(target: Path, content: bytes) -> None:
    """Writes a file under another name beside it (mode 600), then renames."""
    handle, part = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(part).replace(target)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def _file_word(kind: str) -> str:
    return "ecdsa" if kind.startswith("ecdsa") else kind
