"""What the contract suites run against: a transport is one line in ``TRANSPORTS``, a launcher one
line in ``LAUNCHERS``; each launcher runs on each transport."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sshd_support import Sshd, running_sshd

from benchrunner.launchers.direct import DirectLauncher
from benchrunner.launchers.supervisor import ensure_supervisor, supervisor_sources
from benchrunner.transports.local import LocalTransport
from benchrunner.transports.served import ServedTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from benchrunner.launchers import Launcher
    from benchrunner.transports import Transport

TRANSPORTS: Mapping[str, Callable[[pytest.FixtureRequest], Transport]] = {
    "local": lambda _request: LocalTransport(),
    "served": lambda request: _served(request.getfixturevalue("supervisor_cache")),
    "ssh": lambda request: request.getfixturevalue("shared_sshd").connect(),
}


def _served(cache: str) -> Transport:
    """This machine through a server, as sweeps use it."""
    local = LocalTransport()
    return ServedTransport(local, ensure_supervisor(local, supervisor_sources(), cache))


@pytest.fixture(scope="session")
def shared_sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """One sshd for the contract tests of the whole test run."""
    yield from running_sshd(tmp_path_factory.mktemp("ssh") / "sshd")


@pytest.fixture(
    params=[pytest.param(name, marks=[pytest.mark.ssh] * (name == "ssh")) for name in TRANSPORTS]
)
def transport(request: pytest.FixtureRequest) -> Iterator[Transport]:
    """A transport to a host whose /tmp is this machine's: tests look at files from both sides."""
    opened = TRANSPORTS[request.param](request)
    yield opened
    opened.close()


LAUNCHERS: Mapping[str, Callable[[Transport, str], Launcher]] = {
    "direct": DirectLauncher,
}


@pytest.fixture(scope="session")
def supervisor_cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder for compiled supervisors that the whole test run shares."""
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def supervisor(transport: Transport, supervisor_cache: str) -> str:
    """The real supervisor on the host."""
    return ensure_supervisor(transport, supervisor_sources(), supervisor_cache)


@pytest.fixture(params=LAUNCHERS)
def launcher(request: pytest.FixtureRequest, transport: Transport, supervisor: str) -> Launcher:
    """A launcher on each host."""
    return LAUNCHERS[request.param](transport, supervisor)
