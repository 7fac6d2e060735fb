"""A version at a source becomes an Artifact in a host's cache: fetched, built, checked, recorded.

The cache is content-addressed: the key hashes engine, source identity, recipe, compiler and
processor, so a second sweep builds nothing. A failed or refused build is an Artifact too. What is
done is the same on every host; how recipes run is in ``building.here`` and ``building.there``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from benchrunner.building.here import Here
from benchrunner.building.keep import keep
from benchrunner.building.order import LOG, RECORD, Order, RefusedError, Workshop
from benchrunner.building.recipe import cache_key, chosen, portable, recipe_env
from benchrunner.building.record import cached, failed, failure, revived
from benchrunner.building.site import BuildSite, site_of, this_machine
from benchrunner.building.system import library, system_artifact
from benchrunner.building.there import There
from benchrunner.errors import BuildError, SourceError, TransportError
from benchrunner.toolchain import NoCompilerError, missing_packages

if TYPE_CHECKING:
    from benchrunner.building.order import Place
    from benchrunner.definitions import Engine
    from benchrunner.model import Artifact, SourceRef

__all__ = [
    "LOG", "RECORD", "BuildSite", "Workshop", "build", "cache_key", "chosen", "recipe_env",
    "refused", "revived", "site_of", "this_machine",
]  # fmt: skip

_CODECS = {"lz4hc": "lz4"}
_PACKAGES = {"zlib": "zlib1g-dev", "bzip2": "libbz2-dev"}
_LOOKS = 5
"""How often a build may be taken out of our hands by other controllers."""


def build(engine: Engine, ref: SourceRef, workshop: Workshop) -> Artifact:
    """The artifact of a version on the workshop's host: from the cache, or built now.

    A failure is an artifact, too.

    Raises:
        TransportError: A remote host is out of reach. A build that was started there goes on; the
            next call waits for it.
        LaunchError: The same.
    """
    site = workshop.site or this_machine(workshop.cache)
    engine = chosen(engine, ref, workshop.driver)
    if ref.kind == "system":
        if not engine.build.driver:
            return system_artifact(engine, ref, site)
        place = site if site.is_here or site.build == "host" else workshop.here()
        installed = library(engine, ref, place)
        if isinstance(installed, BuildError):
            return failure(ref, installed, place)
        ref = installed
    if site.build == "host" or site.is_here:
        return built(engine, ref, workshop, site)
    from benchrunner.building.delivery import delivered

    artifact = built(portable(engine), ref, workshop, workshop.here())
    return delivered(engine, artifact, site, workshop.on_note)


def built(engine: Engine, ref: SourceRef, workshop: Workshop, site: BuildSite) -> Artifact:
    """The artifact of a version, compiled on a host."""
    try:
        key = cache_key(engine, ref, site.toolchain)
        order = Order(engine, ref, workshop, site, key)
        place: Place = Here(order) if site.launcher is None else There(order, site.launcher)
        with place.alone():
            return _made(order, place)
    except NoCompilerError as error:
        return failure(ref, _without_compiler(engine, ref, site, error), site)
    except _results(site) as error:
        return failure(ref, error, site)


def _results(site: BuildSite) -> tuple[type[Exception], ...]:
    """Errors that are the result of a build. On a remote host a lost connection is none."""
    common = (BuildError, SourceError, OSError)
    return (*common, TransportError) if site.is_here else common


def _made(order: Order, place: Place) -> Artifact:
    for _ in range(_LOOKS):
        artifact = cached(order)
        if artifact is not None:
            return artifact
        missing = missing_packages(order.engine.build.needs.debian, order.site.transport)
        if missing:
            return failure(order.ref, _without(order.what, order.site, missing), order.site)
        try:
            made = place.make()
            artifact = keep(order, made) if made else None
        except _results(order.site) as error:
            # Whoever waited for the same run may have kept it, and removed it under our hands.
            artifact = cached(order) or failed(order, error, _state(error))
        if artifact is not None:
            place.discard()
            return artifact
    raise BuildError(f"{order.what} was taken out of our hands {_LOOKS} times", "build it again")


def _state(error: Exception) -> str:
    return "refused" if isinstance(error, RefusedError) else "failed"


def _without_compiler(
    engine: Engine, ref: SourceRef, site: BuildSite, error: NoCompilerError
) -> BuildError:
    if site.is_here:
        return error
    packages = [*error.packages, *missing_packages(engine.build.needs.debian, site.transport)]
    return _without(f"{engine.name} {ref.version}", site, list(dict.fromkeys(packages)))


def _without(what: str, site: BuildSite, packages: list[str]) -> BuildError:
    """Names what must be installed, and the way that needs nothing installed."""
    hint = f"apt-get install -y {' '.join(packages)}"
    if not site.is_here:
        if site.which("apt-get") is None:
            hint = f"install what Debian calls {' '.join(packages)}"
        hint += f' there, or build = "controller" in hosts/{site.name}.toml, which builds here'
    return BuildError(f"{what} cannot be built{site.on_host} without {', '.join(packages)}", hint)


def refused(artifact: Artifact, compression: str) -> Artifact:
    """The artifact, refused when it was built without the compression that a workload asks for.

    A binary of unknown features (one that is installed) passes: its own warnings tell.
    """
    wanted = _CODECS.get(compression, compression)
    if artifact.state != "built" or wanted in ("", "none") or artifact.source == "system":
        return artifact
    if wanted in artifact.features:
        return artifact
    have = ", ".join(sorted(artifact.features)) or "nothing"
    package = _PACKAGES.get(wanted, f"lib{wanted}-dev")
    flags = artifact.build_flags
    where = "" if "built_on" in flags or "host" not in flags else f" on {flags['host']}"
    return replace(
        artifact, state="refused",
        reason=f"it was built without {compression} (it has {have}); "
        f"install {package} and remove {artifact.directory}{where}",
    )  # fmt: skip
