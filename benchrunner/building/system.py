"""Installed programs as artifacts, and installed libraries that a driver is compiled against."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from typing import TYPE_CHECKING

from benchrunner.binaries import linked_features, probe_flags
from benchrunner.building.keep import look_at
from benchrunner.building.record import failure
from benchrunner.errors import BuildError
from benchrunner.model import Artifact
from benchrunner.sources.system import development_ref, installed_version, remedy

if TYPE_CHECKING:
    from benchrunner.building.site import BuildSite
    from benchrunner.definitions import Engine
    from benchrunner.model import SourceRef


def library(engine: Engine, ref: SourceRef, site: BuildSite) -> SourceRef | BuildError:
    """The library that is installed on a host, with its version there; or what is missing."""
    source = next(s for s in engine.source if s.kind == "system")
    if not source.development:
        return BuildError(
            f"{engine.name}: {engine.build.driver} cannot be compiled against what is installed",
            f"benchrunner versions {engine.name} lists versions with their source",
        )
    found = development_ref(engine.name, source, site.ask)
    if found is not None:
        return replace(found, engine=ref.engine)
    return BuildError(
        f"{engine.name} {ref.version} cannot be had{site.on_host} without {source.development}",
        f"apt-get install -y {source.development}",
    )


def system_artifact(engine: Engine, ref: SourceRef, site: BuildSite) -> Artifact:
    """The installed binary; on a remote host the one that is on the ``PATH`` there."""
    source = next(s for s in engine.source if s.kind == "system")
    wanted = ref.ref if site.is_here else source.binary
    binary = site.which(wanted)
    if binary is None:
        why = BuildError(f"{wanted} is not installed{site.on_host}", remedy(source))
        artifact = failure(ref, why, site)
        return replace(artifact, id=f"system-{source.binary}") if site.is_here else artifact
    digest = site.hashes([binary])[binary]
    ((_, asserting),) = look_at(site, [binary])
    artifact = Artifact(
        id=digest[:16], engine=engine.name, version=installed_version(binary, source, site.ask),
        source="system", ref=binary, state="built", directory=posixpath.dirname(binary),
        binaries={source.binary: binary}, sha256={source.binary: digest},
        known_flags=probe_flags(binary, site.ask) if engine.flags else None,
        features=linked_features(binary, site.ask) | ({"assertions"} if asserting else set()),
    )  # fmt: skip
    return site.named(artifact)
