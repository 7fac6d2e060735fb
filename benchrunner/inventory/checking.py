"""Everything that a host of the inventory needs, looked at in the order in which it is needed.

In: a session and a host. Out: checks whose remedies can be pasted into a terminal here. Nothing is
installed or changed; what comes after a failed step of the way is named as not checked.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchrunner import workdir
from benchrunner.errors import (
    BenchrunnerError,
    ConfigurationError,
    ForeignDirectoryError,
    TransportError,
)
from benchrunner.host_places import reach, roots
from benchrunner.inventory.showing import route
from benchrunner.probes.check import Check
from benchrunner.probes.remedies import as_typed, is_command, is_harmless
from benchrunner.transports import (
    ChangedHostKeyError,
    ConnectionLostError,
    UnknownHostKeyError,
    UnreachableError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchrunner.definitions import Host
    from benchrunner.places import Roots
    from benchrunner.session import Session
    from benchrunner.transports import Transport
    from benchrunner.transports.ssh_config import Hop

REACH, HOST_KEY, LOGIN, FILES = "reach", "host-key", "login", "file-transfer"
_STAGES = (REACH, HOST_KEY, LOGIN, FILES)
_MACHINE = "space, compiler, libraries, tools, clock, devices, settings"
_SHORT_S = 60.0


@dataclass(frozen=True, slots=True)
class Examined:
    """How a host stands."""

    checks: tuple[Check, ...]
    """In the order in which they were made; remedies can be pasted here."""
    not_checked: tuple[str, ...]
    """What could not be looked at because something before it failed."""
    mending: str | None
    """One command that installs all that is missing."""

    @property
    def is_usable(self) -> bool:
        """Whether nothing is missing that every sweep needs."""
        failed = any(check.required and check.ok is False for check in self.checks)
        return not failed and not self.not_checked


def examine(session: Session, host: Host) -> Examined:
    """Walks from the network to the settings of a host.

    Raises:
        TransportError: The connection broke in the middle.
    """
    if not host.address:
        transport = reach(session, host)
        pasting = Pasting("", is_root=_is_root(transport))
        checks, mending = _machine(session, host, transport, pasting)
        return Examined(checks, (), mending)
    try:
        hops = route(session, host)
    except TransportError as error:
        return _stopped([_failed(REACH, error)])
    try:
        transport = reach(session, host)
    except TransportError as error:
        return _stopped(_turned_away(session, host, hops, error))
    try:
        return _inside(session, host, hops, transport)
    finally:
        transport.close()


# ---------------------------------------------------------------- the way


def _turned_away(
    session: Session, host: Host, hops: Sequence[Hop], error: TransportError
) -> list[Check]:
    """Up to which stage we came, from the error that ended it."""
    if isinstance(error, UnreachableError | ConnectionLostError):
        return [_failed(REACH, error)]
    reached = _reached(hops)
    if len(hops) > 1:  # what failed may be a jump host's
        evidence = f"{hops[-1].label} is seen once all hosts before it let us through"
        reached = Check(REACH, None, evidence)
    if isinstance(error, UnknownHostKeyError | ChangedHostKeyError):
        check = _failed(HOST_KEY, error)
        if "hosts trust" in error.hint:
            check = replace(check, remedy_command=trust_command(session, host))
        return [reached, check]
    return [reached, _known(hops), _failed(LOGIN, error)]


def _stopped(checks: list[Check]) -> Examined:
    left = _STAGES[_STAGES.index(checks[-1].name) + 1 :]
    return Examined(tuple(checks), (*left, _MACHINE), None)


def _failed(name: str, error: BenchrunnerError) -> Check:
    return Check(name, ok=False, evidence=error.message, remedy_command=error.hint)


def _reached(hops: Sequence[Hop]) -> Check:
    by = ", ".join(hop.label for hop in hops[:-1])
    evidence = f"{hops[-1].label} answers" + (f", by way of {by}" if by else "")
    return Check(REACH, ok=True, evidence=evidence)


def _known(hops: Sequence[Hop]) -> Check:
    """Where the key of the host, which was found to be the known one, is written."""
    from benchrunner.transports.host_keys import read_known

    hop = hops[-1]
    plain = re.sub(r"^\[(.*)\]:\d+$", r"\1", hop.known_as)
    lines = [one for one in read_known(hop.known_hosts) if not one.marker]
    found = [one for name in (hop.known_as, plain) for one in lines if one.is_for(name)]
    where = f": {found[0].file}:{found[0].line}" if found else ""
    return Check(HOST_KEY, ok=True, evidence=f"it is the known one{where}")


def trust_command(session: Session, host: Host) -> str:
    """The command that shows a host's key and asks whether it is right."""
    catalog = session.settings.catalog
    more = ["--catalog", str(catalog)] if catalog is not None else []
    return shlex.join(["benchrunner", "hosts", "trust", host.name, *more])


# ---------------------------------------------------------------- the host itself


def _inside(session: Session, host: Host, hops: Sequence[Hop], transport: Transport) -> Examined:
    logged_in = Check(LOGIN, ok=True, evidence=f"logged in as {hops[-1].user}")
    checks = [_reached(hops), _known(hops), logged_in]
    try:
        transport.size("/")
    except ConnectionLostError:
        raise
    except TransportError as error:
        return _stopped([*checks, _failed(FILES, error)])
    checks.append(Check(FILES, ok=True, evidence="SFTP answers"))
    pasting = Pasting(ssh_command(host, hops), is_root=_is_root(transport))
    more, mending = _machine(session, host, transport, pasting)
    return Examined((*checks, *more), (), mending)


def _is_root(transport: Transport) -> bool:
    return transport.run(["id", "-u"], timeout_s=_SHORT_S).stdout.strip() == b"0"


def _machine(
    session: Session, host: Host, transport: Transport, pasting: Pasting
) -> tuple[tuple[Check, ...], str | None]:
    from benchrunner.probes.doctor import Needs, host_checks, mending_command
    from benchrunner.probes.facts import collect_facts

    places, checks = _places(session, host)
    if places is not None:
        host = host.model_copy(update={"work_dir": places.work})
        checks += _claimable(transport, (*places.claimed, *host.data, *host.wal))
        checks.append(_left_over(transport, host, places.work))
    directory = (places.databases or places.work) if places else next(iter(host.data), "/")
    facts = collect_facts(transport, [directory], host.name).facts
    catalog = session.catalog
    engines = [catalog.engine(name) for name in catalog.names("engines")]
    packages = {p: f"building {e.title}" for e in engines for p in e.build.needs.debian}
    checks += host_checks(transport, host, Needs(packages=packages), facts)
    mending = mending_command(checks)
    pasted = tuple(pasting.applied(check) for check in checks)
    return pasted, None if mending is None else pasting.command(mending)


def _places(session: Session, host: Host) -> tuple[Roots | None, list[Check]]:
    """The folders of a host, and what is wrong with its definition."""
    from benchrunner.probes.settings import check_settings

    checks = []
    try:
        check_settings(host.tune, f"hosts/{host.name}.toml: tune")
    except ConfigurationError as error:
        checks.append(_failed("tune", error))
    try:
        return roots(session, host, session.settings.choices), checks
    except ConfigurationError as error:
        return None, [*checks, _failed("work-dir", error)]


def _claimable(transport: Transport, paths: Sequence[str]) -> Iterator[Check]:
    """Whether each folder is ours or can become so."""
    for path in dict.fromkeys(paths):
        try:
            workdir.check_claimable(transport, path)
        except ForeignDirectoryError as error:
            yield _failed("ours", error)
            continue
        state = "is benchrunner's" if transport.size(path) is not None else "will be made"
        yield Check("ours", ok=True, evidence=f"{path} {state}")


def _left_over(transport: Transport, host: Host, work_dir: str) -> Check:
    """Whether a crashed controller has left changed settings."""
    from benchrunner.probes.tuning import HostSettings, pending

    left = pending(HostSettings(transport, work_dir))
    if not left:
        return Check("settings", ok=True, evidence="no setting is left changed", required=False)
    names = ", ".join(dict.fromkeys(entry.setting for entry in left))
    evidence = f"{names} changed by {left[0].by}, who has not put it back (or still runs)"
    remedy = f"benchrunner hosts restore {host.name}"
    return Check("settings", ok=False, evidence=evidence, remedy_command=remedy, required=False)


# ---------------------------------------------------------------- remedies


@dataclass(frozen=True, slots=True)
class Pasting:
    """Turns commands for a host into commands for a terminal here. Advice stays as it is."""

    ssh: str
    """``ssh -p 2222 bench@nvme1``; empty: the host is this machine."""
    is_root: bool
    """Whether we are root there. Minimal systems have no sudo then."""

    def applied(self, check: Check) -> Check:
        """A check whose remedy can be pasted."""
        if not is_command(check.remedy_command):
            return check
        return replace(check, remedy_command=self.command(check.remedy_command))

    def command(self, remedy: str) -> str:
        """A command for the host, as it is typed here.

        >>> Pasting("ssh bench@nvme1", is_root=False).command("sysctl kernel.io_uring_disabled=0")
        "ssh -t bench@nvme1 'sudo sysctl kernel.io_uring_disabled=0'"
        >>> Pasting("ssh root@nvme1", is_root=True).command("sudo mkdir -p /d && sudo mount /d")
        "ssh root@nvme1 'mkdir -p /d && mount /d'"
        """
        typed = as_typed(remedy, is_root=self.is_root)
        if not self.ssh:
            return typed
        # A terminal there, for the password that sudo may ask for.
        is_asked = not (self.is_root or is_harmless(remedy))
        ssh = self.ssh.replace("ssh ", "ssh -t ", 1) if is_asked else self.ssh
        return f"{ssh} {shlex.quote(typed)}"


def ssh_command(host: Host, hops: Sequence[Hop]) -> str:
    """How a person logs in to a host: aliases stay aliases, so that ~/.ssh/config goes on helping.

    Args:
        host: Its definition.
        hops: The way to it.
    """
    from benchrunner.transports.ssh_config import parse_address

    written = parse_address(host.address)
    port, user = host.port or written.port, host.user or written.user
    argv = ["ssh"]
    for key in host.key_files:
        argv += ["-i", key]
    if host.jump:
        argv += ["-J", ",".join(_jump(hop) for hop in hops[:-1])]
    if port is not None:
        argv += ["-p", str(port)]
    return shlex.join([*argv, f"{user}@{written.host}" if user else written.host])


def _jump(hop: Hop) -> str:
    """A hop as ``ssh -J`` takes it."""
    return f"{hop.label}:{hop.port}" if not hop.label.endswith(f":{hop.port}") else hop.label
