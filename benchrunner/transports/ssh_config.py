"""Where a host is and how one logs in there.

In: an inventory's host and OpenSSH's configuration. Out: the hops of the way to it. What the
inventory says wins over ``~/.ssh/config``. No connection is opened here.
"""

from __future__ import annotations

import getpass
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.errors import TransportError
from benchrunner.transports.ssh_include import text_with_includes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from paramiko import SSHConfig

    from benchrunner.definitions import Host

DEFAULT_PORT = 22
_USUAL_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
_USER_KNOWN_HOSTS = "~/.ssh/known_hosts ~/.ssh/known_hosts2"
_GLOBAL_KNOWN_HOSTS = "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"
_USER_CONFIG, _GLOBAL_CONFIG = "~/.ssh/config", "/etc/ssh/ssh_config"


@dataclass(frozen=True, slots=True)
class Hop:
    """One machine on the way to a host, the host itself included."""

    address: str
    port: int
    user: str
    key_files: tuple[Path, ...]
    named_keys: bool
    """Whether a person named the key files, so that a missing one is an error."""
    agent: bool
    only_these_keys: bool
    """Whether keys of the agent are tried only if they are among the key files."""
    known_as: str
    """Its name in known_hosts."""
    known_hosts: tuple[Path, ...]
    """Files that are read; the first is the one that is written."""
    hash_names: bool

    @property
    def label(self) -> str:
        """How messages call it."""
        place = f"{self.user}@{_bracketed(self.address)}"
        return place if self.port == DEFAULT_PORT else f"{place}:{self.port}"

    @property
    def ssh(self) -> str:
        """The command that goes there without us."""
        return f"ssh -p {self.port} {self.user}@{self.address}"

    @property
    def with_ssh(self) -> str:
        """What to try when a connection breaks off without a reason."""
        return f"{self.ssh} shows whether ssh gets further; why not is in sshd's log there"


@dataclass(frozen=True, slots=True)
class Written:
    """What a person writes for an address: ``[user@]host[:port]``."""

    host: str
    user: str | None = None
    port: int | None = None


class Routes:
    """Finds the way to hosts of one inventory."""

    def __init__(
        self, hosts: Mapping[str, Host], config: Path | None, known_hosts: Path | None
    ) -> None:
        self._hosts = hosts
        self._config = _load(config)
        self._known_hosts = known_hosts

    def to(self, host: Host) -> tuple[Hop, ...]:
        """The hops to a host, in the order in which they are reached; the last is the host.

        Raises:
            TransportError: The host has no address, the configuration cannot be read, or the way
                leads in a circle.
        """
        if not host.address:
            raise TransportError(
                f"host {host.name} has no address: it is this machine",
                f'write address = "..." into hosts/{host.name}.toml',
            )
        return self._to(host, (host.name,))

    def _to(self, host: Host, seen: tuple[str, ...]) -> tuple[Hop, ...]:
        written = parse_address(host.address)
        return self._way(written, host, host.jump, seen)

    def _way(
        self, written: Written, host: Host | None, jump: str, seen: tuple[str, ...]
    ) -> tuple[Hop, ...]:
        """The hops to one address; ``jump`` wins over what the configuration says."""
        settings = _settings(self._config, written.host)
        hop = self._hop(written, host, settings)
        jump = jump or str(settings.get("proxyjump", ""))
        if not jump and settings.get("proxycommand"):
            raise TransportError(
                f"{hop.label} is reached by a ProxyCommand, which is not supported",
                "say ProxyJump in ~/.ssh/config, or jump in the host's file",
            )
        if not jump or jump.lower() == "none":
            return (hop,)
        first, *others = [name.strip() for name in jump.split(",")]
        before = self._jump(first, hop, seen)
        for name in others:
            before += self._jump(name, hop, seen)[-1:]
        return (*before, hop)

    def _jump(self, name: str, to: Hop, seen: tuple[str, ...]) -> tuple[Hop, ...]:
        """The hops to a jump host."""
        if name in seen:
            way = " -> ".join((*seen, name))
            raise TransportError(f"the way to {to.label} leads in a circle: {way}", "change jump")
        inventory = self._hosts.get(name)
        if inventory is not None and inventory.address:
            return self._to(inventory, (*seen, name))
        return self._way(parse_address(name), None, "", (*seen, name))

    def _hop(self, written: Written, host: Host | None, settings: Mapping[str, object]) -> Hop:
        named = [*host.key_files] if host else []
        configured = settings.get("identityfile", [])
        assert isinstance(configured, list)  # noqa: S101 - paramiko collects them
        address = str(settings["hostname"]).lower()
        port = (host.port if host else None) or written.port or _port(settings, written.host)
        known_hosts = self._known_hosts_files(settings, address)
        return Hop(
            address=address,
            port=port,
            user=(host.user if host else "")
            or written.user
            or str(settings.get("user") or getpass.getuser()),
            key_files=tuple(Path(key).expanduser() for key in named or configured or _USUAL_KEYS),
            named_keys=bool(named),
            agent=host.agent if host else True,
            only_these_keys=_yes(settings, "identitiesonly"),
            known_as=known_name(str(settings.get("hostkeyalias") or address), port),
            known_hosts=known_hosts,
            hash_names=_yes(settings, "hashknownhosts"),
        )

    def _known_hosts_files(self, settings: Mapping[str, object], address: str) -> tuple[Path, ...]:
        if self._known_hosts is not None:
            return (self._known_hosts,)
        user = str(settings.get("userknownhostsfile") or _USER_KNOWN_HOSTS)
        everyone = str(settings.get("globalknownhostsfile") or _GLOBAL_KNOWN_HOSTS)
        names = [name for name in shlex.split(f"{user} {everyone}") if name.lower() != "none"]
        home = str(Path.home())
        expanded = [n.replace("%d", home).replace("%h", address) for n in names]
        return tuple(Path(name).expanduser() for name in expanded)


def parse_address(text: str) -> Written:
    """Takes ``[user@]host[:port]`` apart; an IPv6 address with a port stands in brackets.

    >>> parse_address("bench@nvme1:2222")
    Written(host='nvme1', user='bench', port=2222)
    >>> parse_address("[::1]:22").host, parse_address("fe80::1").host
    ('::1', 'fe80::1')
    """
    user, _, place = text.rpartition("@")
    host, port = place, ""
    if place.startswith("["):
        host, _, rest = place[1:].partition("]")
        port = rest.removeprefix(":")
    elif place.count(":") == 1:
        host, _, port = place.partition(":")
    sound = not port or (port.isascii() and port.isdigit() and 0 < int(port) < 65536)
    if not host or not sound or host.startswith("-") or set(text) & set(" \t\n\0"):
        raise TransportError(f"{text!r} is no address of a host", "write [user@]host[:port]")
    return Written(host, user or None, int(port) if port else None)


def known_name(host: str, port: int) -> str:
    """A host's name in known_hosts."""
    return host if port == DEFAULT_PORT else f"[{host}]:{port}"


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _load(config: Path | None) -> SSHConfig:
    from paramiko import ConfigParseError, SSHConfig

    if config is not None:
        files = [config]
    else:
        files = [Path(_USER_CONFIG).expanduser(), Path(_GLOBAL_CONFIG)]
    text = ""
    for file in files:
        text += text_with_includes(file, required=config is not None) + "\nHost *\n"
    try:
        return SSHConfig.from_text(text)
    except (ConfigParseError, ValueError) as error:
        where = " or ".join(str(file) for file in files)
        raise TransportError(f"{where} cannot be read: {error}", "ssh -G HOST") from error


def _settings(config: SSHConfig, host: str) -> Mapping[str, object]:
    from paramiko import ConfigParseError, CouldNotCanonicalize

    try:
        return config.lookup(host)
    except (ConfigParseError, CouldNotCanonicalize, ValueError, KeyError) as error:
        raise TransportError(
            f"OpenSSH's configuration for {host} makes no sense: {error}", f"ssh -G {host}"
        ) from error


def _port(settings: Mapping[str, object], host: str) -> int:
    text = str(settings.get("port", DEFAULT_PORT))
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise TransportError(f"Port {text!r} for {host} is no port", f"ssh -G {host}")
    return int(text)


def _yes(settings: Mapping[str, object], name: str) -> bool:
    return str(settings.get(name, "no")).lower() == "yes"
