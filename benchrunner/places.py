"""Where trials live on a host, and where their raw output is kept for ever.

On the host, below the claimed work directory: ``trials/<trial>/db`` (and ``wal``, ``loaded``) and
``trials/<trial>/runs/<attempt>/<NN-step>``. In the results folder: ``raw/<trial>/<attempt>/<NN-step>``,
compressed. A trial's folder on the host goes when its trial has ended; raw output never does.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from benchrunner import workdir
from benchrunner.run import Collected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchrunner.transports import Transport

PLAIN = ("command.json", "child.json", "status.json")
"""Small files that people open first stay readable as they are."""


@dataclass(frozen=True, slots=True)
class Roots:
    """Folders of one host and of the results."""

    work: str
    """On the host; claimed."""
    raw: Path
    """In the results folder."""
    databases: str | None = None
    """On the host, when databases lie on another device than ``work``; claimed."""
    wal: str | None = None
    """On the host, when write-ahead logs lie on another device; claimed."""
    keep: bool = False
    """Leave databases after their trial, for a look."""


class HostDisk:
    """The folders of trials on one host."""

    def __init__(self, transport: Transport, roots: Roots) -> None:
        self._transport = transport
        self._roots = roots

    def prepare(self) -> None:
        """Claims the work directories; to be called once before the first trial."""
        for path in self._claimed():
            workdir.claim(self._transport, path, "work directory")

    def fresh_database(self, trial_id: str) -> tuple[str, str]:
        """Empty folders for a trial; what an earlier attempt left is deleted."""
        for folder in self._trial_folders(trial_id):
            parent = str(PurePosixPath(folder).parent.parent)
            workdir.remove(self._transport, parent, folder)
            workdir.claim(self._transport, folder, f"trial {trial_id}")
        db_dir, wal_dir = self.database(trial_id)
        self._transport.run(["mkdir", "-p", db_dir, wal_dir], timeout_s=60)
        return db_dir, wal_dir

    def database(self, trial_id: str) -> tuple[str, str]:
        """Database and write-ahead log directory of a trial (the same unless WALs have a device)."""
        name = workdir.safe_name(trial_id)
        db_dir = f"{self._roots.databases or self._roots.work}/trials/{name}/db"
        wal_dir = f"{self._roots.wal}/trials/{name}/wal" if self._roots.wal else db_dir
        return db_dir, wal_dir

    def run_dir(self, trial_id: str, attempt: int, position: int, step: str) -> str:
        """Folder on the host in which the supervisor keeps one step run."""
        name, step = workdir.safe_name(trial_id), workdir.safe_name(step)
        return f"{self._roots.work}/trials/{name}/runs/{attempt}/{position:02d}-{step}"

    def keep_loaded(self, trial_id: str, immutable: Sequence[str]) -> None:
        """Sets the loaded database aside (policy ``pristine``); a second call changes nothing."""
        db_dir, _ = self.database(trial_id)
        loaded = self._loaded(trial_id)
        if self._transport.size(f"{loaded}/CHECKPOINT") is None:
            self._transport.run(["rm", "-rf", "--one-file-system", loaded], timeout_s=600)
            workdir.checkpoint(self._transport, db_dir, loaded, immutable)
            self._transport.run(["touch", f"{loaded}/CHECKPOINT"], timeout_s=60)

    def restore_loaded(self, trial_id: str, immutable: Sequence[str]) -> None:
        """Puts the loaded database back in place of whatever the last step left."""
        db_dir, _ = self.database(trial_id)
        self._transport.run(["rm", "-rf", "--one-file-system", db_dir], timeout_s=600)
        workdir.checkpoint(self._transport, self._loaded(trial_id), db_dir, immutable)
        self._transport.run(["rm", "-f", f"{db_dir}/CHECKPOINT"], timeout_s=60)

    def collect(self, run_dir: str, trial_id: str, options_glob: str) -> Collected:
        """Brings a finished run folder home, compressed; doing it twice gives the same."""
        attempt_and_step = PurePosixPath(run_dir).parts[-2:]
        raw_path = str(PurePosixPath(workdir.safe_name(trial_id), *attempt_and_step))
        target = self._roots.raw / raw_path
        if not target.is_dir():
            partial = target.with_name(target.name + ".partial")
            if partial.exists():
                shutil.rmtree(partial)
            self._transport.get(run_dir, partial)
            self._fetch_options(trial_id, options_glob, partial)
            compress(partial)
            partial.rename(target)
        options = target / "OPTIONS.gz"
        text = gzip.decompress(options.read_bytes()).decode() if options.exists() else None
        return Collected(raw_path, folder_hash(target), text)

    def remove(self, trial_id: str, run_dirs: Sequence[str]) -> None:
        """Deletes a trial's folders on the host; what was kept of it is in the results."""
        del run_dirs
        if self._roots.keep:
            return
        for folder in self._trial_folders(trial_id):
            parent = str(PurePosixPath(folder).parent.parent)
            workdir.remove(self._transport, parent, folder)

    def _fetch_options(self, trial_id: str, glob: str, into: Path) -> None:
        """The newest file that states the engine's effective options, if it writes one."""
        if not glob:
            return
        db_dir, _ = self.database(trial_id)
        done = self._transport.run(
            ["find", db_dir, "-maxdepth", "1", "-type", "f", "-name", glob], timeout_s=60
        )
        names = done.stdout.decode(errors="replace").split("\n")
        found = sorted((name for name in names if name), key=lambda name: (len(name), name))
        if found:
            (into / "OPTIONS").write_bytes(self._transport.read(found[-1]))

    def _claimed(self) -> list[str]:
        roots = (self._roots.work, self._roots.databases, self._roots.wal)
        return list(dict.fromkeys(root for root in roots if root))

    def _trial_folders(self, trial_id: str) -> list[str]:
        return [f"{root}/trials/{workdir.safe_name(trial_id)}" for root in self._claimed()]

    def _loaded(self, trial_id: str) -> str:
        return f"{self.database(trial_id)[0].removesuffix('/db')}/loaded"


def compress(folder: Path) -> None:
    """Replaces the files of a run folder by gzip files, the small JSON ones excepted.

    No file name or time goes into them: the same output gives the same bytes.
    """
    for path in sorted(folder.iterdir()):
        if not path.is_file() or path.name in PLAIN or path.suffix == ".gz":
            continue
        packed = path.with_name(path.name + ".gz")
        with (
            path.open("rb") as source,
            packed.open("wb") as file,
            gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as target,
        ):
            shutil.copyfileobj(source, target)
        path.unlink()


def folder_hash(folder: Path) -> str:
    """SHA-256 over the names and contents of a folder's files."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{content}  {path.name}\n".encode())
    return digest.hexdigest()
