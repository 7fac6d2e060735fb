"""Artifacts as records: written beside their binaries, read back, and made of failures."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from benchrunner.building.order import LOG, RECORD
from benchrunner.errors import BenchrunnerError, BuildError
from benchrunner.model import Artifact
from benchrunner.transports import MissingFileError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchrunner.building.order import Order
    from benchrunner.building.site import BuildSite
    from benchrunner.model import SourceRef


def as_json(artifact: Artifact) -> str:
    """The form in which an artifact lies beside its binaries."""
    return json.dumps(asdict(artifact), indent=1, default=sorted)


def revived(stored: Mapping[str, Any]) -> Artifact:
    """An artifact from its JSON form."""
    fields = dict(stored)
    known = fields.get("known_flags")
    fields["known_flags"] = frozenset(known) if known is not None else None
    fields["features"] = frozenset(fields["features"])
    return Artifact(**fields)


def cached(order: Order) -> Artifact | None:
    """The artifact in the host's cache, if its binaries are what they were."""
    site, folder = order.site, order.folder
    try:
        artifact = revived(json.loads(site.transport.read(f"{folder}/{RECORD}")))
    except MissingFileError:
        return None
    binaries = {name: f"{folder}/{name}" for name in artifact.binaries}
    hashes = site.hashes(binaries.values())
    for name, path in binaries.items():
        if hashes.get(path) != artifact.sha256.get(name):
            site.script('rm -rf -- "$1"', folder)
            text = f"{order.what}: {path}{site.on_host} is not what was built; building it again"
            order.workshop.on_note(text)
            return None
    artifact = replace(artifact, directory=folder, log=f"{folder}/{LOG}", binaries=binaries)
    return artifact if site.is_here else brought_home(artifact, site, order.workshop.cache)


def brought_home(artifact: Artifact, site: BuildSite, cache: Path) -> Artifact:
    """An artifact of another host under its own id, with copies of its record and log here."""
    named = site.named(artifact)
    home = cache.absolute() / "hosts" / site.name / named.id
    if not (home / LOG).is_file():
        site.transport.get(artifact.log, home / LOG)
    named = replace(named, log=str(home / LOG))
    (home / RECORD).write_text(as_json(named))
    return named


def failed(order: Order, error: Exception, state: str = "failed") -> Artifact:
    """What did not work, with its log: kept here, wherever it was built."""
    compiler = order.site.toolchain.version
    artifact = replace(failure(order.ref, error, order.site, state), compiler=compiler)
    if not order.log.is_file():
        return artifact
    folder = order.workshop.cache.absolute() / "artifacts-failed" / artifact.id
    folder.mkdir(parents=True)
    artifact = replace(artifact, directory=str(folder), log=str(folder / LOG))
    shutil.move(order.log, artifact.log)
    (folder / RECORD).write_text(as_json(artifact))
    return artifact


def failure(ref: SourceRef, error: Exception, site: BuildSite, state: str = "failed") -> Artifact:
    """A failure as a result, under an id of its own because the next attempt may differ."""
    attempt = f"{site.name} {ref.kind} {ref.ref} {time.time_ns()} {os.getpid()}"
    return Artifact(
        hashlib.sha256(attempt.encode()).hexdigest()[:16], ref.engine, ref.version, ref.kind,
        ref.ref, "refused" if state == "refused" else "failed", reason=why(error),
        build_flags={} if site.is_here else {"host": site.name},
    )  # fmt: skip


def why(error: Exception) -> str:
    """What failed and what to try on the first line; then the end of the log."""
    if not isinstance(error, BenchrunnerError):
        return str(error)
    hint = f"; try: {error.hint}" if error.hint else ""
    tail = error.log_tail if isinstance(error, BuildError) else ""
    return f"{error.message}{hint}" + (f"\n{tail}" if tail else "")
