"""What the inventory says about hosts, and the way to one of them. No connection is opened.

In: the catalog, OpenSSH's configuration, the store. Out: values that hold nothing secret.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchrunner.errors import ConfigurationError
from benchrunner.host_files import HostFiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchrunner.definitions import Definition, Host
    from benchrunner.session import Session
    from benchrunner.transports.ssh_config import Hop

_SECRET_NAME = re.compile(r"pass|secret|token|credential|api_?key|private", re.IGNORECASE)
_LOGIN_IN_URL = re.compile(r"://[^/@\s]*@")
HIDDEN = "(not shown)"


@dataclass(frozen=True, slots=True)
class Entry:
    """One host of the inventory."""

    name: str
    address: str
    work_dir: str
    tags: tuple[str, ...]
    roles: tuple[str, ...]
    file: str | None
    """``None``: the host ``local``, which needs no file."""
    problem: str = ""
    """Why the file cannot be used."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of a host's definition."""

    key: str
    """``limits.connect_s`` for one of a table."""
    value: Any
    is_given: bool
    """Whether the file says it; otherwise it is the default."""


def entries(session: Session) -> tuple[Entry, ...]:
    """Every host; a file that cannot be used keeps nobody from seeing the others."""
    return tuple(_entry(session, name) for name in session.catalog.names("hosts"))


def _entry(session: Session, name: str) -> Entry:
    path = session.catalog.where("hosts", name)
    file = None if path is None else str(path)
    try:
        host = session.catalog.host(name)
    except ConfigurationError as error:
        return Entry(name, "", "", (), (), file, error.message)
    return Entry(name, host.address, host.work_dir, tuple(host.tags), tuple(host.roles), file)


def settings(host: Host) -> tuple[Setting, ...]:
    """Every key with its value, those that are left at their default included."""
    return tuple(_settings(host))


def _settings(model: Definition, above: str = "") -> Iterator[Setting]:
    for name in type(model).model_fields:
        value, key = getattr(model, name), f"{above}{name}"
        if hasattr(value, "model_fields_set"):
            yield from _settings(value, f"{key}.")
        else:
            shown = shown_environment(value) if key == "env" else value
            yield Setting(key, shown, name in model.model_fields_set)


def shown_environment(env: Mapping[str, str]) -> dict[str, str]:
    """An environment without what may be secret: values of telling names, logins in URLs.

    >>> shown_environment({"API_TOKEN": "x1", "PROXY": "http://me:x1@proxy", "LANG": "C"})
    {'API_TOKEN': '(not shown)', 'PROXY': 'http://...@proxy', 'LANG': 'C'}
    """
    return {
        name: HIDDEN if _SECRET_NAME.search(name) else _LOGIN_IN_URL.sub("://...@", value)
        for name, value in env.items()
    }


def route(session: Session, host: Host) -> tuple[Hop, ...]:
    """The hops to a host, jump hosts first; none to this machine.

    Raises:
        TransportError: OpenSSH's configuration makes no sense, or the way leads in a circle.
    """
    if not host.address:
        return ()
    from benchrunner.transports.ssh_config import Routes

    return Routes(inventory(session), None, None).to(host)


def inventory(session: Session) -> Mapping[str, Host]:
    """Every host by name, for jump hosts; a file is read when its host is asked for."""
    return HostFiles(session.catalog)
