"""Logging in by key: an agent's keys and key files, passphrases asked for. Never a password.

Nothing secret leaves this module: messages name files and fingerprints, and ``repr`` shows none.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from benchrunner.errors import TransportError
from benchrunner.transports import ConnectionLostError, LoginRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from paramiko import PKey, Transport

    from benchrunner.transports.ssh_config import Hop

_PASSPHRASE_TRIES = 3
_FEW_KEYS = 3
"""Nobody ends a connection after so few wrong keys: it broke."""


class Keys:
    """The keys of a person, read once: no passphrase is asked for again, whatever host wants it.

    Hosts that are connected to at the same time share it, and ask one after another.
    """

    def __init__(self, ask: Callable[[str], str] | None = None) -> None:
        """``ask`` asks the person for a passphrase; the prompt names the file."""
        self._ask = ask
        self._asking = threading.Lock()
        self._read: dict[Path, PKey] = {}
        self._given_up: set[Path] = set()
        self.asking_s = 0.0
        """How long a person took to answer, so that it counts against no time limit."""

    def log_in(self, wire: Transport, hop: Hop) -> None:
        """Logs in on a connection whose host key has been checked.

        Raises:
            LoginRefusedError: No key is accepted, or the host takes none at all.
            TransportError: A key file cannot be read.
        """
        from paramiko import Agent

        agent = Agent() if hop.agent else None
        try:
            agent_keys = list(agent.get_keys()) if agent else []
            tried: list[str] = []
            self._try_all(wire, hop, agent_keys, tried)
        except ConnectionLostError as error:
            if len(tried) <= _FEW_KEYS:
                raise
            raise LoginRefusedError(
                f"{hop.label} ended the connection after {len(tried)} wrong keys",
                "name the right one as key_files in the host's file",
            ) from error
        finally:
            if agent:
                agent.close()

    def _try_all(
        self, wire: Transport, hop: Hop, agent_keys: Sequence[PKey], tried: list[str]
    ) -> None:
        locked: list[Path] = []
        for what, key in self._candidates(hop, agent_keys, locked):
            tried.append(what)
            if _accepted(wire, hop, key):
                return
        for path in locked:
            opened = self._unlocked(path)
            if opened is not None:
                tried.append(str(path))
                if _accepted(wire, hop, opened):
                    return
        self._refuse(wire, hop, tried, [path for path in locked if str(path) not in tried])

    def _candidates(
        self, hop: Hop, agent_keys: Sequence[PKey], locked: list[Path]
    ) -> Iterator[tuple[str, PKey]]:
        """Keys to try, in order; files that need a passphrase are put into ``locked``.

        Keys that a person named for this host come before the agent's: hosts end the connection
        after a few wrong ones.
        """
        wanted = {_public_half(path) for path in hop.key_files}
        first = [key for key in agent_keys if key.asbytes() in wanted]
        rest = [] if hop.only_these_keys else [key for key in agent_keys if key not in first]
        offered = {key.asbytes() for key in agent_keys}
        yield from (("the agent", key) for key in first)
        if not hop.named_keys:
            yield from (("the agent", key) for key in rest)
        for path in hop.key_files:
            if _public_half(path) in offered - {b""}:
                continue
            key = self._plain(path, hop, locked)
            if key is not None:
                yield str(path), key
        if hop.named_keys:
            yield from (("the agent", key) for key in rest)

    def _plain(self, path: Path, hop: Hop, locked: list[Path]) -> PKey | None:
        """The key in a file that needs no passphrase, or whose passphrase was given before."""
        from paramiko import PasswordRequiredException, SSHException

        if path in self._read:
            return self._read[path]
        try:
            self._read[path] = _load(path, None)
        except FileNotFoundError:
            if hop.named_keys:
                raise TransportError(
                    f"the key file {path} for {hop.label} is not there",
                    "correct key_files in the host's file, or make one with ssh-keygen",
                ) from None
            return None
        except PasswordRequiredException:
            locked.append(path)
            return None
        except OSError as error:
            raise TransportError(f"the key file {path} cannot be read: {error.strerror}") from error
        except SSHException as error:
            raise TransportError(
                f"the key file {path} holds no private key of a kind that can be used",
                "ssh-keygen -t ed25519 makes one that can",
            ) from error
        return self._read[path]

    def _unlocked(self, path: Path) -> PKey | None:
        """The key in a file whose passphrase is asked for; ``None`` when it is not given."""
        if self._ask is None:
            return None
        began = time.monotonic()
        with self._asking:
            try:
                if path not in self._read and path not in self._given_up:
                    self._ask_for(path, self._ask)
            finally:
                self.asking_s += time.monotonic() - began
        return self._read.get(path)

    def _ask_for(self, path: Path, ask: Callable[[str], str]) -> None:
        """Asks until a passphrase fits, or somebody has had enough."""
        from paramiko import SSHException

        prompt = f"Passphrase for {path}: "
        for _ in range(_PASSPHRASE_TRIES):
            passphrase = ask(prompt)
            if not passphrase:
                break
            try:
                self._read[path] = _load(path, passphrase)
            except SSHException:
                prompt = f"That was not it. Passphrase for {path}: "
                continue
            return
        self._given_up.add(path)

    def _refuse(self, wire: Transport, hop: Hop, tried: list[str], locked: list[Path]) -> None:
        """Raises the error that says why no key has let us in."""
        ways = _ways_offered(wire, hop)
        if "publickey" not in ways:
            raise LoginRefusedError(
                f"{hop.label} lets nobody in by key, only by {' or '.join(ways) or 'nothing'};"
                " benchrunner uses keys and nothing else",
                "set PubkeyAuthentication yes in /etc/ssh/sshd_config there",
            )
        if locked:
            raise LoginRefusedError(
                f"{hop.label} accepts no key that is at hand, and {locked[0]} needs its passphrase",
                f"ssh-add {locked[0]}",
            )
        if not tried:
            raise LoginRefusedError(
                f"there is no key to log in to {hop.label} with",
                "ssh-keygen -t ed25519 makes one; ssh-copy-id takes it there",
            )
        names = ", ".join(dict.fromkeys(tried))
        copied = next((name for name in tried if name != "the agent"), "")
        option = f"-i {copied}.pub " if copied else ""
        raise LoginRefusedError(
            f"{hop.label} accepts no key that was tried: {names}",
            f"ssh-copy-id {option}-p {hop.port} {hop.user}@{hop.address}",
        )


def _accepted(wire: Transport, hop: Hop, key: PKey) -> bool:
    """Whether the host lets us in with a key."""
    from paramiko import AuthenticationException, BadAuthenticationType, SSHException

    try:
        more = wire.auth_publickey(hop.user, key)
    except BadAuthenticationType:
        return False
    except AuthenticationException as error:
        if not wire.is_active():
            raise _dropped(hop) from error
        return False
    except (SSHException, EOFError, OSError) as error:
        raise _dropped(hop) from error
    if more:
        raise LoginRefusedError(
            f"{hop.label} takes the key and wants {' or '.join(more)} as well",
            "use an account that a key is enough for",
        )
    return True


def _dropped(hop: Hop) -> TransportError:
    return ConnectionLostError(f"the connection to {hop.label} broke during login", hop.with_ssh)


def _ways_offered(wire: Transport, hop: Hop) -> list[str]:
    """Ways to log in that the host names."""
    from paramiko import BadAuthenticationType, SSHException

    try:
        wire.auth_none(hop.user)
    except BadAuthenticationType as error:
        return [str(way) for way in error.allowed_types]
    except (SSHException, EOFError, OSError) as error:
        raise _dropped(hop) from error
    return []


def _load(path: Path, passphrase: str | None) -> PKey:
    """The private key in a file, of whichever kind."""
    from paramiko import ECDSAKey, Ed25519Key, PasswordRequiredException, RSAKey, SSHException

    failed: SSHException | None = None
    for kind in (Ed25519Key, ECDSAKey, RSAKey):
        try:
            return kind.from_private_key_file(str(path), passphrase)
        except PasswordRequiredException:
            raise
        except (SSHException, ValueError, IndexError) as error:
            # A file of another kind, a wrong passphrase, or no key: told apart by none of them.
            failed = SSHException(str(error))
    assert failed is not None  # noqa: S101
    raise failed


def _public_half(path: Path) -> bytes:
    """What stands in the file beside a private key; nothing when there is none."""
    import base64
    import binascii

    try:
        fields = path.with_name(path.name + ".pub").read_bytes().split()
        return base64.b64decode(fields[1], validate=True)
    except (OSError, IndexError, binascii.Error, ValueError):
        return b""
