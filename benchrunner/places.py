"""Where trials live on a host, and where their raw output is kept for ever.

On the host, below the claimed work directory: ``trials/<trial>/db`` (``wal``, ``db-loaded``) and
``trials/<trial>/runs/<attempt>/<NN-step>``. In the results: ``raw/<trial>/<attempt>/<NN-step>``,
compressed. A trial's folder on the host goes when its trial has ended; raw output never does.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import shutil
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from benchrunner import workdir
from benchrunner.errors import ResultsDiskFullError, TransportError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchrunner.transports import Transport

_LEVEL = 6
_PACK_BYTES = 16 << 20
"""Run folders up to this size come home in one piece, through memory."""
_PACK_LIMIT_S = 600.0
_NOTHING: Mapping[str, bytes] = MappingProxyType({})
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

    @property
    def claimed(self) -> tuple[str, ...]:
        """Those on the host that must be ours."""
        return tuple(dict.fromkeys(root for root in (self.work, self.databases, self.wal) if root))

    def claim(self, transport: Transport) -> None:
        """Makes them ours; once before the first trial, and before anything else is put there."""
        for path in self.claimed:
            workdir.claim(transport, path, "work directory")


@dataclass(frozen=True, slots=True)
class Collected:
    """A run folder brought home: where it is, its hash, and the options that really applied."""

    raw_path: str
    sha256: str
    options_text: str | None


class HostDisk:
    """The folders of trials on one host."""

    def __init__(
        self, transport: Transport, roots: Roots, supervisor: str, lease: Sequence[str] = ()
    ) -> None:
        """Takes the host; ``lease`` are arguments that show the right to delete things there."""
        self._transport = transport
        self.roots = roots
        self._supervisor = supervisor
        self._lease = tuple(lease)

    def fresh(self, trial_id: str, attempt: int) -> workdir.FreshFolders:
        """Empty folders for a trial, to be had from its first start; earlier attempts are deleted.

        So a database needs no round trip of its own, and none is emptied under a running step.
        """
        runs = str(PurePosixPath(self.run_dir(trial_id, attempt, 1, "any")).parent)
        inside = tuple(dict.fromkeys((*self.database(trial_id), runs)))
        return workdir.FreshFolders(self._trial_folders(trial_id), inside, f"trial {trial_id}")

    def has_database(self, trial_id: str) -> bool:
        """Whether a trial's database folders are there: somebody may have cleaned up."""
        return all(self._transport.size(path) is not None for path in self.database(trial_id))

    def database(self, trial_id: str) -> tuple[str, str]:
        """Database and write-ahead log directory of a trial; the same unless WALs have a device."""
        name = workdir.safe_name(trial_id)
        db_dir = f"{self.roots.databases or self.roots.work}/trials/{name}/db"
        wal_dir = f"{self.roots.wal}/trials/{name}/wal" if self.roots.wal else db_dir
        return db_dir, wal_dir

    def run_dir(self, trial_id: str, attempt: int, position: int, step: str) -> str:
        """Folder on the host in which the supervisor keeps one step run."""
        name, step = workdir.safe_name(trial_id), workdir.safe_name(step)
        return f"{self.roots.work}/trials/{name}/runs/{attempt}/{position:02d}-{step}"

    def empty_database(self, trial_id: str) -> None:
        """Leaves a trial's database folders as they were before its first step."""
        script = 'rm -rf --one-file-system -- "$@" && mkdir -p -- "$@"'
        self._checked(["sh", "-c", script, "sh", *dict.fromkeys(self.database(trial_id))])

    def keep_loaded(self, trial_id: str, immutable: Sequence[str]) -> None:
        """Sets the loaded database aside (policy ``pristine``); a second call changes nothing."""
        for live, kept in self._checkpoints(trial_id):
            if self._transport.size(kept) is None:
                workdir.checkpoint(self._transport, live, kept, immutable)

    def restore_loaded(self, trial_id: str, immutable: Sequence[str]) -> None:
        """Puts the loaded database back in place of whatever the last step left."""
        for live, kept in self._checkpoints(trial_id):
            self._checked(["rm", "-rf", "--one-file-system", "--", live])
            workdir.checkpoint(self._transport, kept, live, immutable)

    def collect(
        self,
        run_dir: str,
        trial_id: str,
        options_glob: str,
        more: Mapping[str, bytes] = _NOTHING,
        packed: bytes | None = None,
    ) -> Collected:
        """Brings a finished run folder home, compressed; doing it twice gives the same.

        Args:
            run_dir: on the host.
            trial_id: whose it is.
            options_glob: name of the file in the database that states the effective options.
            more: files to be kept with it, name -> content.
            packed: what ``pack_arguments`` made the host send, if it did already.

        Raises:
            ResultsDiskFullError: No space is left there; the run folder on the host stays.
        """
        attempt_and_step = PurePosixPath(run_dir).parts[-2:]
        raw_path = str(PurePosixPath(workdir.safe_name(trial_id), *attempt_and_step))
        target = self.roots.raw / raw_path
        stored: dict[str, bytes] | None = None
        if not target.is_dir():
            partial = target.with_name(target.name + ".partial")
            with _room_for(target, partial):
                files = self._files(run_dir, packed or self._pack(run_dir, trial_id, options_glob))
                if files is None:
                    self._transport.get(run_dir, partial)
                    self._fetch_options(trial_id, options_glob, partial)
                    compress(partial)
                else:
                    partial.mkdir(parents=True)
                    stored = {}
                for name, content in {**(files or {}), **more}.items():
                    kept, packed_content = _as_kept(name, content)
                    (partial / kept).write_bytes(packed_content)
                    if stored is not None:
                        stored[kept] = packed_content
                partial.rename(target)
        options = target / "OPTIONS.gz"
        text = gzip.decompress(options.read_bytes()).decode() if options.exists() else None
        return Collected(raw_path, _hash_of(stored) if stored else folder_hash(target), text)

    def printed(self, run_dir: str, limit: int) -> str:
        """The end of what a process of a run folder has written, its errors last."""
        texts = []
        for name in ("stdout", "stderr"):
            path = f"{run_dir}/{name}"
            size = self._transport.size(path)
            if size:
                content = self._transport.read(path, max(0, size - limit), limit)
                texts.append(content.decode(errors="replace"))
        return "\n".join(texts)

    def sync(self, raw_path: str) -> None:
        """Puts a step's raw output on the disk, where a power failure does not reach it."""
        folder = self.roots.raw / raw_path
        with ExitStack() as opened:
            # One after the other, beside the parsing: more threads would take more than they save.
            descriptors: list[int] = []
            for path in (*folder.iterdir(), folder, folder.parent):
                descriptors.append(os.open(path, os.O_RDONLY))
                opened.callback(os.close, descriptors[-1])
            for descriptor in descriptors:
                # Begins to write the first page, so that small files share a commit of the file
                # system's journal; a range of one byte drops nothing from the page cache.
                os.posix_fadvise(descriptor, 0, 1, os.POSIX_FADV_DONTNEED)
            for descriptor in descriptors:
                os.fsync(descriptor)

    def is_intact(self, raw_path: str, sha256: str | None) -> bool:
        """Whether raw output is there as it was collected."""
        folder = self.roots.raw / raw_path
        return folder.is_dir() and folder_hash(folder) == sha256

    def remove(self, trial_id: str) -> None:
        """Deletes a trial's folders on the host; what was kept of it is in the results."""
        if self.roots.keep:
            return
        folders = self._trial_folders(trial_id)
        workdir.remove(self._transport, self._supervisor, folders, self._lease)

    def pack_arguments(self, trial_id: str, glob: str) -> tuple[str, ...]:
        """What a run folder is sent with: its limit, and the file of effective options."""
        limit = ("--limit", str(_PACK_BYTES))
        return (
            (*limit, "--newest-in", self.database(trial_id)[0], "--glob", glob) if glob else limit
        )

    def _pack(self, run_dir: str, trial_id: str, glob: str) -> bytes:
        """A run folder in one round trip."""
        more = self.pack_arguments(trial_id, glob)
        argv = [self._supervisor, "pack", "--run-dir", run_dir, *more]
        done = self._transport.run(argv, timeout_s=_PACK_LIMIT_S)
        if done.exit_code != 0:
            why = done.stderr.decode(errors="replace").strip().removeprefix("br-supervise: ")
            raise TransportError(f"{run_dir} on {self._transport.host}: {why}")
        return done.stdout

    def _files(self, run_dir: str, packed: bytes) -> dict[str, bytes] | None:
        """The files that were sent: none when they are too large for that, or not plain files."""
        line, _, content = packed.partition(b"\n")
        index = json.loads(line)
        if not index["sent"]:
            return None
        files: dict[str, bytes] = {}
        start = 0
        for file in index["files"]:
            files[file["name"]] = content[start : start + file["size"]]
            start += file["size"]
        if start != len(content):
            raise TransportError(
                f"{run_dir} on {self._transport.host}: {len(content)} bytes came and "
                f"{start} were announced",
                "benchrunner resume fetches it again",
            )
        if index["newest"] is not None:
            files["OPTIONS"] = files.pop(index["newest"])
        return files

    def _fetch_options(self, trial_id: str, glob: str, into: Path) -> None:
        """The newest file that states the engine's effective options, if it writes one."""
        if not glob:
            return
        db_dir, _ = self.database(trial_id)
        listing = self._checked(["find", db_dir, "-maxdepth", "1", "-type", "f", "-name", glob])
        names = [name for name in listing.split("\n") if name]
        if names:
            newest = max(names, key=lambda name: (len(name), name))
            (into / "OPTIONS").write_bytes(self._transport.read(newest))

    def _checked(self, argv: Sequence[str]) -> str:
        """What a command on the host prints; its failure is an error."""
        done = self._transport.run(argv, timeout_s=600)
        if done.exit_code != 0:
            why = done.stderr.decode(errors="replace").strip()
            raise TransportError(f"{argv[0]} on {self._transport.host}: {why}")
        return done.stdout.decode(errors="surrogateescape")

    def _trial_folders(self, trial_id: str) -> tuple[tuple[str, str], ...]:
        """Claimed directories, each with the folder of a trial in it."""
        name = workdir.safe_name(trial_id)
        return tuple((root, f"{root}/trials/{name}") for root in self.roots.claimed)

    def _checkpoints(self, trial_id: str) -> list[tuple[str, str]]:
        """Folders that are the state of a database, each with the place of its checkpoint."""
        live = dict.fromkeys(self.database(trial_id))
        return [(path, f"{path}-loaded") for path in live]


@contextmanager
def _room_for(target: Path, partial: Path) -> Iterator[None]:
    """Nothing half-made before and after; a full disk in one sentence."""
    shutil.rmtree(partial, ignore_errors=True)
    try:
        yield
    except (OSError, TransportError) as error:
        shutil.rmtree(partial, ignore_errors=True)
        if not _is_full(error if isinstance(error, OSError) else error.__cause__):
            raise
        raise ResultsDiskFullError(
            f"no space is left for the raw output {target}",
            "free some space, then benchrunner resume",
        ) from error


def _is_full(error: BaseException | None) -> bool:
    if isinstance(error, shutil.Error):
        # Copying a folder: (source, target, sentence) of each file that failed.
        return any(os.strerror(errno.ENOSPC) in str(failed) for failed in error.args[0])
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _as_kept(name: str, content: bytes) -> tuple[str, bytes]:
    """Name and content of a file as raw output is kept."""
    if name in PLAIN:
        return name, content
    return f"{name}.gz", gzip.compress(content, _LEVEL, mtime=0)


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
            gzip.GzipFile(
                filename="", mode="wb", compresslevel=_LEVEL, fileobj=file, mtime=0
            ) as target,
        ):
            shutil.copyfileobj(source, target)
        path.unlink()


def folder_hash(folder: Path) -> str:
    """SHA-256 over the names and contents of a folder's files."""
    contents: dict[str, str] = {}
    for path in folder.iterdir():
        with path.open("rb", buffering=0) as file:
            contents[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return _hash_of_hashes(contents)


def _hash_of(files: Mapping[str, bytes]) -> str:
    """The same of files that were just written, name -> content."""
    return _hash_of_hashes({name: hashlib.sha256(files[name]).hexdigest() for name in files})


def _hash_of_hashes(contents: Mapping[str, str]) -> str:
    lines = (f"{contents[name]}  {name}\n" for name in sorted(contents))
    return hashlib.sha256("".join(lines).encode()).hexdigest()
