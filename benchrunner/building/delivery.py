"""Programs compiled here for a host that does not compile: checked, sent once, tried there."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchrunner.binaries import PROBE_S
from benchrunner.building.fitness import Misfit, machine_of, misfits, needed_features, newest_glibc
from benchrunner.building.site import LONG_S, SHORT_S, this_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from benchrunner.building.site import BuildSite
    from benchrunner.definitions import Engine
    from benchrunner.model import Artifact

_ABSENT = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)
_TOO_OLD = re.compile(r"version [`'](\S+)' not found")
_TIME_UP = 124
_NOT_RUN = (126, 127)
_SIGNALLED = 128


def delivered(
    engine: Engine, artifact: Artifact, site: BuildSite, on_note: Callable[[str], None]
) -> Artifact:
    """An artifact of this machine on another host, or refused with what differs there."""
    artifact = site.named(artifact)
    if artifact.state != "built":
        return artifact
    flags = {**artifact.build_flags, "built_on": "controller"}
    artifact = replace(artifact, build_flags=flags)
    local = {name: Path(path) for name, path in artifact.binaries.items()}
    here = machine_of(this_machine(Path("/")))
    needs = needed_features(artifact, engine, here)
    glibc = [newest_glibc(path) for path in local.values()]
    for misfit in misfits(here, machine_of(site), needs, glibc, site.name):
        return _refused(artifact, site, misfit)
    binaries = {name: f"{site.cache}/binaries/{artifact.sha256[name]}/{name}" for name in local}
    _send(artifact, binaries, site, on_note)
    for path in binaries.values():
        tried = _tried(path, site)
        if tried is not None:
            return _refused(artifact, site, tried)
    return replace(artifact, binaries=binaries)


def _refused(artifact: Artifact, site: BuildSite, misfit: Misfit) -> Artifact:
    reason = f"what was built here cannot run on {site.name}: {misfit.what}; try: {misfit.hint}"
    return replace(artifact, state="refused", reason=reason)


def _send(
    artifact: Artifact, binaries: dict[str, str], site: BuildSite, on_note: Callable[[str], None]
) -> None:
    """Puts what the host's cache has not under the name of its content."""
    there = site.hashes(binaries.values())
    for name, path in binaries.items():
        if there.get(path) == artifact.sha256[name]:
            continue
        if path in there:
            on_note(f"{path} on {site.name} is not what was sent; sending it again")
        site.transport.put(Path(artifact.binaries[name]), path, 0o755)


def _tried(path: str, site: BuildSite) -> Misfit | None:
    """Why a program does not start on a host: its libraries, or anything else."""
    linked = site.ask(["ldd", path])
    text = "\n".join(linked or ())
    absent = list(dict.fromkeys(_ABSENT.findall(text)))
    if absent:
        return Misfit(f"the host has no {', '.join(absent)}", _install(absent))
    too_old = sorted(set(_TOO_OLD.findall(text)))
    if too_old:
        return Misfit(
            f"its libraries there are too old ({', '.join(too_old)})",
            f'build = "host" in hosts/{site.name}.toml',
        )
    limited = ["timeout", "-k", "5", str(PROBE_S), path, "--help"]
    done = site.transport.run(limited, timeout_s=PROBE_S + SHORT_S, env=site.env)
    signalled = done.exit_code < 0 or done.exit_code > _SIGNALLED
    if done.exit_code == _TIME_UP or (not signalled and done.exit_code not in _NOT_RUN):
        return None
    why = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    how = f"ended with {done.exit_code}" + (f" ({why})" if why else "")
    return Misfit(f"its --help {how} there", f"run it by hand there: {shlex.quote(path)} --help")


def _install(libraries: Iterable[str]) -> str:
    """The command that installs libraries there, by the packages that have them here."""
    here = this_machine(Path("/"))
    query = ["env", "dpkg-query", "-S", *(f"*/{library}" for library in libraries)]
    done = here.transport.run(query, timeout_s=LONG_S)
    lines = done.stdout.decode(errors="replace").splitlines()
    packages = dict.fromkeys(line.partition(":")[0] for line in lines)
    if not packages:
        return "install these libraries there"
    return f"apt-get install -y {' '.join(packages)} there"
