"""Installed programs as artifacts: as they are, identified by their content."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from typing import TYPE_CHECKING

from benchrunner.binaries import linked_features, probe_flags
from benchrunner.building.keep import look_at
from benchrunner.building.record import failure
from benchrunner.errors import BuildError
from benchrunner.model import Artifact
from benchrunner.sources.system import installed_version, remedy

if TYPE_CHECKING:
    from benchrunner.building.site import BuildSite
    from benchrunner.definitions import Engine
    from benchrunner.model import SourceRef


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
