"""Options of the test run."""

from __future__ import annotations

import gc
import signal
import sys
from typing import TYPE_CHECKING

import pytest
from fault_support import Bench
from hypothesis import HealthCheck, settings

from benchrunner.cli import main
from benchrunner.host_right import LOCK_DIR_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# Other work on the machine makes examples slow, and nothing wrong: no test depends on time.
settings.register_profile("any", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A background job of a plain shell ignores Ctrl-C, and so would every program that tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-snapshots",
        action="store_true",
        help="write tests/snapshots anew from what the code makes now; look at the difference",
    )


@pytest.fixture(scope="session", autouse=True)
def own_lock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """This machine's lock is the test run's own: a sweep that runs beside it is not waited for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOCK_DIR_VARIABLE, str(tmp_path_factory.mktemp("lock")))
        yield


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build cache that the tests of the whole program share: one supervisor is compiled."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def in_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., tuple[int, str, str]]]:
    """The command line, in an empty folder: exit code, standard output, standard error."""
    thresholds, handler = gc.get_threshold(), signal.getsignal(signal.SIGTERM)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["benchrunner", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        assert isinstance(stopped.value.code, int)
        return stopped.value.code, printed.out, printed.err

    yield run
    gc.set_threshold(*thresholds)
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture
def bench(tmp_path: Path, cache: Path) -> Bench:
    """The program on a results folder of its own."""
    return Bench(tmp_path, cache)
