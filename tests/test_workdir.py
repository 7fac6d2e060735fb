"""Folders of ours: claimed, checked, removed, copied; real files, and real mounts where allowed."""

from __future__ import annotations

import atexit
import functools
import getpass
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrunner import workdir
from benchrunner.errors import ConfigurationError, ForeignDirectoryError, TransportError
from benchrunner.launchers.supervisor import ensure_supervisor, supervisor_sources
from benchrunner.transports.local import LocalTransport

HOST = LocalTransport()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A claimed work directory."""
    folder = tmp_path / "work dir"
    workdir.claim(HOST, str(folder), "tests")
    return folder


def ours(path: Path) -> Path:
    """A folder of ours with a file, a deep file, an odd name and a link to what must survive."""
    workdir.claim(HOST, str(path), "trial")
    (path / "deep" / "er").mkdir(parents=True)
    (path / "deep" / "er" / "file").write_text("x")
    (path / "-rf odd\nname").write_text("x")
    return path


@functools.cache
def supervisor() -> str:
    """The program that deletes, compiled once."""
    folder = tempfile.mkdtemp(prefix="benchrunner-tests-")
    atexit.register(shutil.rmtree, folder)
    return ensure_supervisor(HOST, supervisor_sources(), folder)


def remove(work_dir: Path | str, path: Path | str) -> None:
    workdir.remove(HOST, supervisor(), [(str(work_dir), str(path))])


def assert_refused(work_dir: Path | str, path: Path | str, reason: str) -> None:
    with pytest.raises(ForeignDirectoryError, match=f"{reason}.*: it is not deleted") as caught:
        remove(work_dir, path)
    assert caught.value.hint == "look at it, and delete it by hand if it can go"


# ---------------------------------------------------------------- names


@pytest.mark.parametrize("name", ["7.2.2", "rocksdb-flash", "a", "0_x+y@z=1,2", "n" * 128])
def test_names_that_are_safe(name: str) -> None:
    assert workdir.safe_name(name) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "-rf", "a/b", "a b", "a\n", "ä", "$x", "~", "n" * 129]
)
def test_names_that_are_not(name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be the name of a folder"):
        workdir.safe_name(name)


@given(st.text())
def test_a_safe_name_is_one_part_of_a_path(name: str) -> None:
    try:
        safe = workdir.safe_name(name)
    except ConfigurationError:
        return
    assert os.path.normpath(f"/work/{safe}") == f"/work/{safe}"
    assert Path(f"/work/{safe}").parent == Path("/work")


# ---------------------------------------------------------------- claim


def test_a_new_folder_is_claimed_and_says_what_for(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b c"
    workdir.claim(HOST, str(folder), 'work "1"')
    marker = json.loads((folder / ".benchrunner").read_text())
    assert marker["what"] == 'work "1"'
    assert marker["created"] > 1_700_000_000
    assert [path.name for path in folder.iterdir()] == [".benchrunner"]
    workdir.ensure_ours(HOST, str(folder))


def test_claiming_again_changes_nothing(work: Path) -> None:
    before = (work / ".benchrunner").read_text()
    (work / "file").write_text("x")
    workdir.claim(HOST, str(work), "something else")
    assert (work / ".benchrunner").read_text() == before


def test_a_folder_with_other_files_is_not_claimed(tmp_path: Path) -> None:
    (tmp_path / ".hidden").write_text("x")
    expected = r"on this machine is not a folder of benchrunner: it has no \.benchrunner file"
    with pytest.raises(ForeignDirectoryError, match=expected) as caught:
        workdir.claim(HOST, str(tmp_path), "tests")
    assert caught.value.hint == "name a new or an empty folder"
    assert [path.name for path in tmp_path.iterdir()] == [".hidden"]


def test_a_new_file_system_is_empty(tmp_path: Path) -> None:
    (tmp_path / "disk" / "lost+found").mkdir(parents=True)
    workdir.check_claimable(HOST, str(tmp_path / "disk"))
    workdir.claim(HOST, str(tmp_path / "disk"), "databases")
    assert (tmp_path / "disk" / workdir.MARKER).exists()
    (tmp_path / "other" / "lost+found2").mkdir(parents=True)
    with pytest.raises(ForeignDirectoryError):
        workdir.check_claimable(HOST, str(tmp_path / "other"))
    with pytest.raises(ForeignDirectoryError):
        workdir.claim(HOST, str(tmp_path / "other"), "databases")


def test_who_cannot_write_is_said(tmp_path: Path) -> None:
    assert workdir.who_cannot_write(HOST, str(tmp_path / "new" / "er")) is None
    (tmp_path / "file").write_text("")
    refused = workdir.who_cannot_write(HOST, str(tmp_path / "file" / "below"))
    assert refused == (getpass.getuser(), "not a directory")


def test_root_and_home_are_not_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in ("/", "//", "/usr/..", str(tmp_path)):
        with pytest.raises(ForeignDirectoryError, match="is the root or home folder"):
            workdir.claim(HOST, path, "tests")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["relative", "", "~/x", "/a\nb", "/a\0b"])
def test_paths_must_be_absolute_and_printable(path: str) -> None:
    for attempt in (workdir.ensure_ours, workdir.disk_free):
        with pytest.raises(ConfigurationError, match="is not an absolute path"):
            attempt(HOST, path)


def test_whether_a_claim_would_be_refused_can_be_asked(work: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (work, tmp_path / "empty", tmp_path / "new"):
        workdir.check_claimable(HOST, str(path))
    with pytest.raises(ForeignDirectoryError, match="is not a folder of benchrunner"):
        workdir.check_claimable(HOST, str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "work dir"]
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_an_error() -> None:
    with pytest.raises(TransportError, match="/proc/x on this machine: mkdir: cannot create"):
        workdir.claim(HOST, "/proc/x", "tests")


def test_what_is_not_ours_is_told(tmp_path: Path) -> None:
    with pytest.raises(ForeignDirectoryError, match="is not a folder of benchrunner"):
        workdir.ensure_ours(HOST, str(tmp_path))


# ---------------------------------------------------------------- remove


def test_a_folder_of_ours_is_removed_and_what_it_links_to_stays(work: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    trial = ours(work / "trial 1")
    (trial / "link").symlink_to(precious)
    (trial / "deep" / "link").symlink_to(precious / "file")
    remove(work, trial)
    assert not trial.exists()
    assert (precious / "file").read_text() == "x"
    remove(work, trial)


def test_an_empty_folder_needs_no_marker(work: Path) -> None:
    (work / "empty").mkdir()
    remove(work, work / "empty")
    assert not (work / "empty").exists()


def test_without_a_marker_nothing_is_deleted(work: Path) -> None:
    trial = ours(work / "trial")
    (trial / ".benchrunner").unlink()
    assert_refused(work, trial, r"has no \.benchrunner file")
    assert (trial / "deep" / "er" / "file").exists()


def test_a_marker_that_is_a_link_does_not_count(work: Path) -> None:
    trial = ours(work / "trial")
    (trial / ".benchrunner").unlink()
    (trial / ".benchrunner").symlink_to(work / ".benchrunner")
    assert_refused(work, trial, r"has no \.benchrunner file")


def test_below_a_work_directory_that_is_not_ours_nothing_is_deleted(work: Path) -> None:
    trial = ours(work / "trial")
    (work / ".benchrunner").unlink()
    assert_refused(work, trial, r"is below a work directory that has no \.benchrunner file")
    assert trial.exists()


def test_outside_the_work_directory_nothing_is_deleted(work: Path, tmp_path: Path) -> None:
    other = ours(tmp_path / "other")
    alike = ours(tmp_path / "work dir 2")
    for path in (other, f"{work}/../other", alike, work, f"{work}/.", tmp_path, "/"):
        assert_refused(work, path, "is not below the work directory")
    assert other.exists()
    assert alike.exists()


def test_a_link_in_the_way_is_not_followed(work: Path, tmp_path: Path) -> None:
    other = ours(tmp_path / "other")
    ours(other / "inner")
    (work / "link").symlink_to(other)
    assert_refused(work, work / "link", "is a symbolic link")
    assert_refused(work, work / "link" / "inner", "is not below the work directory")
    assert (other / "inner").exists()


def test_the_home_folder_is_safe_even_below_a_work_directory(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = ours(work / "users")
    home = ours(users / "me")
    monkeypatch.setenv("HOME", str(home))
    for path in (home, users):
        assert_refused(work, path, "holds the home folder")


def test_a_mounted_file_system_is_left_alone(work: Path) -> None:
    trial = ours(work / "trial")
    (trial / "mounted here").mkdir()
    script = f"""
        mount -t tmpfs none "$1/mounted here" || exit 77
        touch "$1/mounted here/file"
        PYTHONPATH={Path.cwd()} exec "$0" -c '
import sys
from benchrunner import workdir
from benchrunner.errors import ForeignDirectoryError
from benchrunner.launchers.supervisor import ensure_supervisor, supervisor_sources
from benchrunner.transports.local import LocalTransport
for path in (sys.argv[2], sys.argv[2] + "/mounted here"):
    try:
        workdir.remove(LocalTransport(), sys.argv[3], [(sys.argv[1], path)])
    except ForeignDirectoryError as error:
        print(error.message.rpartition(" on this machine ")[2])
' "{work}" "$1" "{supervisor()}"
    """
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, sys.executable, str(trial)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("mounting is not permitted here")
    assert done.stdout.splitlines() == [
        "has a file system mounted on or below it: it is not deleted",
        "has no .benchrunner file: it is not deleted",
    ]
    assert (trial / "deep" / "er" / "file").exists()


def test_several_folders_go_at_once_and_a_deep_one_too(work: Path, tmp_path: Path) -> None:
    other = tmp_path / "other work"
    workdir.claim(HOST, str(other), "tests")
    deep = ours(work / "trial")
    for _ in range(150):
        deep = deep / "d"
        deep.mkdir()
    folders = [(str(work), str(work / "trial")), (str(other), str(ours(other / "trial")))]
    workdir.remove(HOST, supervisor(), folders)
    assert [path.name for path in (*work.iterdir(), *other.iterdir())] == [".benchrunner"] * 2


def test_what_cannot_be_deleted_is_named_and_the_marker_stays(work: Path) -> None:
    file = work / "trial"
    file.write_text("a file, not a folder")
    with pytest.raises(TransportError, match=r"cannot be deleted: .*trial: Not a directory"):
        remove(work, file)
    assert file.exists()


# ---------------------------------------------------------------- checkpoint, disk_free


@pytest.fixture
def database(work: Path) -> Path:
    """A folder like a database's: two immutable files, others that change."""
    folder = ours(work / "db")
    (folder / "000012.sst").write_bytes(b"table")
    (folder / "deep" / "000013.sst").write_bytes(b"table 2")
    (folder / "blob").mkdir()
    (folder / "blob" / "7").write_bytes(b"blob")
    (folder / "CURRENT").write_text("MANIFEST-1")
    (folder / "current").symlink_to("CURRENT")
    (folder / "CURRENT").chmod(0o640)
    return folder


def test_a_checkpoint_links_what_never_changes_and_copies_the_rest(
    database: Path, work: Path
) -> None:
    target = work / "loaded"
    workdir.checkpoint(HOST, str(database), str(target), ["*.sst", "blob/*"])
    names = sorted(path.relative_to(database) for path in database.rglob("*"))
    assert sorted(path.relative_to(target) for path in target.rglob("*")) == names
    linked = {
        str(name) for name in names
        if (target / name).is_file() and not (target / name).is_symlink()
        and (target / name).samefile(database / name)
    }  # fmt: skip
    assert linked == {"000012.sst", "deep/000013.sst", "blob/7"}
    assert (target / "CURRENT").stat().st_mode & 0o777 == 0o640
    assert (target / "current").readlink() == Path("CURRENT")
    (database / "CURRENT").write_text("MANIFEST-2")
    assert (target / "CURRENT").read_text() == "MANIFEST-1"
    remove(work, database)
    assert (target / "000012.sst").read_bytes() == b"table"
    remove(work, target)


def test_without_globs_everything_is_copied(database: Path, work: Path) -> None:
    workdir.checkpoint(HOST, str(database), str(work / "copy"), [])
    assert (work / "copy" / "000012.sst").stat().st_nlink == 1


def test_a_checkpoint_replaces_nothing(database: Path, work: Path) -> None:
    (work / "there").mkdir()
    with pytest.raises(TransportError, match="there on this machine exists already"):
        workdir.checkpoint(HOST, str(database), str(work / "there"), [])


def test_a_failed_checkpoint_leaves_nothing(work: Path) -> None:
    with pytest.raises(TransportError, match="cp on this machine: cp: cannot stat"):
        workdir.checkpoint(HOST, str(work / "missing"), str(work / "target"), ["*.sst"])
    assert [path.name for path in work.iterdir()] == [".benchrunner"]


def test_free_space_is_that_of_the_nearest_folder(tmp_path: Path) -> None:
    before = os.statvfs(tmp_path)
    free = workdir.disk_free(HOST, str(tmp_path / "not" / "made" / "yet"))
    assert abs(free - before.f_bavail * before.f_frsize) < 2**30
