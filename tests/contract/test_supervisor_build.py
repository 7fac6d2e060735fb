"""The supervisor is compiled on the host, once for each state of its sources."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchrunner.errors import BuildError, ConfigurationError, LaunchError
from benchrunner.launchers import LaunchRequest, supervisor
from benchrunner.launchers.direct import DirectLauncher
from benchrunner.launchers.supervisor import ensure_supervisor, source_hash, supervisor_sources
from benchrunner.model import Command
from benchrunner.transports.local import LocalTransport

if TYPE_CHECKING:
    from benchrunner.transports import Transport

pytestmark = pytest.mark.native

TINY = 'int main(void) { puts("tiny"); return 0; }\n'


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Sources that compile at once."""
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "main.c").write_text('#include "all.h"\n' + TINY)
    (folder / "all.h").write_text("#include <stdio.h>\n")
    return folder


def test_the_sources_are_found_and_their_program_answers(
    transport: Transport, supervisor_cache: str
) -> None:
    program = ensure_supervisor(transport, supervisor_sources(), supervisor_cache)
    done = transport.run([program, "--version"], timeout_s=10)
    assert done.stdout.startswith(b"br-supervise ")


def test_the_shipped_sources_are_found_where_the_repository_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "benchrunner"
    monkeypatch.setattr(supervisor, "__file__", str(package / "launchers" / "supervisor.py"))
    with pytest.raises(ConfigurationError, match="the supervisor's sources are missing") as caught:
        supervisor_sources()
    assert caught.value.hint == "install benchrunner again"
    shipped = package / "native" / "supervisor"
    shipped.mkdir(parents=True)
    (shipped / "main.c").touch()
    assert supervisor_sources() == shipped


def test_it_is_compiled_once(transport: Transport, sources: Path, tmp_path: Path) -> None:
    first = ensure_supervisor(transport, sources, str(tmp_path / "cache"))
    inode = Path(first).stat().st_ino
    assert ensure_supervisor(transport, sources, str(tmp_path / "cache")) == first
    assert Path(first).stat().st_ino == inode
    assert [path.name for path in Path(first).parent.iterdir()] == ["br-supervise"]


def test_a_change_of_any_source_is_another_program(sources: Path) -> None:
    before = source_hash(sources)
    (sources / "README.md").write_text("not a source")
    assert source_hash(sources) == before
    (sources / "all.h").write_text("#include <stdio.h>\n\n")
    assert source_hash(sources) != before


def test_sources_that_do_not_compile(transport: Transport, sources: Path, tmp_path: Path) -> None:
    (sources / "main.c").write_text("int main(void) { return missing; }\n")
    with pytest.raises(
        BuildError, match=r"does not compile on .*error: .missing. undeclared"
    ) as caught:
        ensure_supervisor(transport, sources, str(tmp_path / "cache"))
    assert "apt-get install -y gcc libc6-dev" in caught.value.hint
    assert "missing" in caught.value.log_tail
    assert list((tmp_path / "cache").rglob("build-*")) == []


def test_a_program_that_does_not_run_is_not_kept(
    transport: Transport, sources: Path, tmp_path: Path
) -> None:
    (sources / "main.c").write_text("int main(void) { return 9; }\n")
    with pytest.raises(BuildError, match=r"br-supervise --version failed on .* with exit code 9"):
        ensure_supervisor(transport, sources, str(tmp_path / "cache"))
    assert list((tmp_path / "cache").rglob("br-supervise")) == []


def test_without_a_compiler_the_package_is_named(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("rm", "mv"):
        (programs / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(
        BuildError, match=r"cannot be compiled on .*: cc was not found on"
    ) as caught:
        ensure_supervisor(LocalTransport(), sources, str(tmp_path / "cache"))
    assert caught.value.hint == "apt-get install -y gcc libc6-dev"


def test_a_program_that_is_no_supervisor(
    transport: Transport, sources: Path, tmp_path: Path
) -> None:
    program = ensure_supervisor(transport, sources, str(tmp_path / "cache"))
    request = LaunchRequest(str(tmp_path / "run"), "x", Command(("true",)), cwd=str(tmp_path))
    with pytest.raises(LaunchError, match=r"answered b'tiny\\n'") as caught:
        DirectLauncher(transport, program).start(request)
    assert caught.value.hint == "remove that file: it is compiled again"
