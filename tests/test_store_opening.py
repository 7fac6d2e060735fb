"""Opening a store: new, older, newer, foreign, damaged, locked, full; and its documentation."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event
from test_store_support import (
    add_sweep,
    make_job,
    make_plan,
    postgresql_binaries,
    postgresql_database,
    postgresql_server,
    run_trial,
)

from benchrunner.errors import (
    EXIT_TRIAL_FAILED,
    MissingStoreError,
    ResultsDiskFullError,
    StoreError,
)
from benchrunner.store import canonical, failures, migrate, open_store
from benchrunner.store.engine import connect, locate
from benchrunner.store.glance import REVISIONS, newest_sweeps
from benchrunner.store.schema import metadata

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent


def python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in another process."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *arguments],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
    )  # fmt: skip


# ---------------------------------------------------------------- where it is


def test_a_missing_store_is_made_with_its_folder_or_refused(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "results"
    with pytest.raises(StoreError, match=f"there is no store at {folder}/store.db") as caught:
        open_store(folder, create=False)
    assert "benchrunner sweep" in caught.value.hint
    assert not folder.exists()
    open_store(folder).close()
    open_store(folder / "store.db", create=False).close()
    open_store(f"sqlite:///{folder}/store.db", create=False).close()


def test_an_empty_file_becomes_a_store_only_when_one_may_be_made(tmp_path: Path) -> None:
    (tmp_path / "store.db").touch()
    with pytest.raises(StoreError, match="is an empty database"):
        open_store(tmp_path, create=False)
    with open_store(tmp_path) as store:
        assert store.sweeps() == ()


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("sqlite://", "in memory would lose"),
        ("mysql://db/x", "a store in mysql is not supported"),
        ("://", "is not a database URL"),
        ("postgresql://bench@127.0.0.1:1/x", "cannot be used: .*refused"),
    ],
)
def test_a_url_that_cannot_be_a_store(where: str, text: str) -> None:
    with pytest.raises(StoreError, match=text):
        open_store(where)


def test_a_missing_driver_is_named_with_the_command_that_installs_it() -> None:
    done = python("""
        import sys
        sys.modules["psycopg"] = None
        from benchrunner.store import open_store
        open_store("postgresql://db/x")
    """)
    assert "needs the Python package psycopg" in done.stderr
    assert "pip install 'benchrunner[postgresql]'" in done.stderr


def test_status_loads_no_heavy_module(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        jobs = [make_job(id=f"job-{number}") for number in range(100)]
        store.add_sweep(make_plan(*jobs, repeat=100), {})
    done = python(
        """
        import sys
        from benchrunner.store import open_store
        with open_store(sys.argv[1], create=False) as store:
            print(store.counts_by_state(store.latest_sweep().id)["planned"])
        print({"alembic", "pydantic", "pandas", "sqlalchemy.orm", "psycopg"} & sys.modules.keys())
        """,
        str(tmp_path),
    )
    assert done.stdout.split() == ["10000", "set()"], done.stderr


def test_a_glance_says_what_the_store_says_and_loads_no_database_library(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        for _ in range(3):
            add_sweep(store, repeat=2)
        run_trial(store, store.trials(2)[0].id)
        said = [(row.id, row.name, row.created_at, row.unfinished) for row in store.sweeps()]
        counts = [store.counts_by_state(row.id) for row in store.sweeps()]
    for where in (str(tmp_path), f"sqlite:///{tmp_path}/store.db"):
        seen = newest_sweeps(where, 10)
        assert [(g.id, g.name, g.created_at, g.unfinished) for g in seen] == said
        assert [g.counts for g in seen] == counts
        assert newest_sweeps(where, 2) == seen[:2]
    done = python(
        """
        import sys
        from benchrunner.store.glance import newest_sweeps
        print(len(newest_sweeps(sys.argv[1], 10)), "sqlalchemy" in sys.modules)
        """,
        str(tmp_path),
    )
    assert done.stdout.split() == ["3", "False"], done.stderr


def test_a_glance_at_what_is_no_store_says_what_the_store_says(tmp_path: Path) -> None:
    with pytest.raises(MissingStoreError, match="there is no store at"):
        newest_sweeps(str(tmp_path), 10)
    (tmp_path / "store.db").write_text("a shopping list")
    with pytest.raises(StoreError, match="is not a database"):
        newest_sweeps(str(tmp_path), 10)
    older = tmp_path / "older.db"
    open_store(older).close()
    connection = sqlite3.connect(older)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="has schema revision 9999"):
        newest_sweeps(str(older), 10)


# ---------------------------------------------------------------- what is wrong with it


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("a shopping list")
    with pytest.raises(StoreError, match=r"store\.db is not a database") as caught:
        open_store(tmp_path)
    assert "raw output stays" in caught.value.hint


def test_a_damaged_database(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    path = tmp_path / "store.db"
    content = bytearray(path.read_bytes())
    content[100:4096] = b"\xff" * 3996
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"store\.db is damaged") as caught:
        open_store(tmp_path)
    assert ".recover" in caught.value.hint
    content[18:] = b"\xff" * len(content[18:])
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"store\.db is not a database"):
        open_store(tmp_path)


def test_a_database_of_something_else(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("CREATE TABLE recipes (id)")
    connection.close()
    with pytest.raises(StoreError, match=r"something else than a store \(table recipes\)"):
        open_store(tmp_path)


def test_a_newer_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0999'")
    connection.close()
    before = (tmp_path / "store.db").read_bytes()
    with pytest.raises(StoreError, match=r"revision 0999.* \(its own is 0003\)") as caught:
        open_store(tmp_path)
    assert caught.value.hint == "upgrade benchrunner; a store is never downgraded"
    assert (tmp_path / "store.db").read_bytes() == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a tmpfs is not permitted")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_stops_the_write_and_keeps_what_was_stored(small_disk: Path) -> None:
    with open_store(small_disk) as store:
        sweep_id = add_sweep(store)
        with pytest.raises(ResultsDiskFullError, match="no space is left for the store") as caught:
            store.save_setting("big", "x" * 2**21)
        assert (caught.value.exit_code, caught.value.hint) == (
            EXIT_TRIAL_FAILED, "free some space, then benchrunner resume",
        )  # fmt: skip
        assert store.setting("big") is None
        run_trial(store, store.trials(sweep_id)[0].id)
    with open_store(small_disk, create=False) as store:
        assert store.sweep(sweep_id).unfinished == 0


def test_a_disk_that_is_full_from_the_start(small_disk: Path) -> None:
    with (small_disk / "ballast").open("wb") as ballast:
        os.posix_fallocate(ballast.fileno(), 0, 2**20 - 2**13)
    with pytest.raises(ResultsDiskFullError, match="no space is left for the store"):
        open_store(small_disk)


def test_a_disk_without_room_for_a_folder() -> None:
    error = failures.from_os(OSError(errno.ENOSPC, "No space left on device"), "the folder x")
    assert isinstance(error, ResultsDiskFullError)
    assert error.message == "no space is left for the folder x"


def test_a_read_only_store(small_disk: Path) -> None:
    open_store(small_disk).close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StoreError, match="cannot be written: ") as caught:
        open_store(small_disk)
    assert caught.value.hint == "check owner and permissions of the file and its folder"
    with pytest.raises(StoreError, match=r"the results folder .*/new cannot be used: Read-only"):
        open_store(small_disk / "new")


def test_a_file_size_limit_reads_like_a_full_disk(tmp_path: Path) -> None:
    done = python(
        """
        import resource, sys
        from benchrunner.store import open_store
        with open_store(sys.argv[1]) as store:
            resource.setrlimit(resource.RLIMIT_FSIZE, (2**19, 2**19))
            store.save_setting("big", "x" * 2**21)
        """,
        str(tmp_path),
    )
    assert "ResultsDiskFullError: no space is left for the store" in done.stderr


def test_a_path_that_cannot_be_a_folder_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"the results folder .*/file is a file"):
        open_store(tmp_path / "file")
    (tmp_path / "store.db").mkdir()
    with pytest.raises(StoreError, match=r"the store .*store\.db cannot be used: Is a directory"):
        open_store(tmp_path)


def test_a_lock_held_too_long_names_the_process(tmp_path: Path) -> None:
    program = """
        import sqlite3, sys
        connection = sqlite3.connect(sys.argv[1], isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        print("locked", flush=True)
        sys.stdin.read()
    """
    with open_store(tmp_path, lock_timeout_s=0.05) as store:
        path = str(tmp_path / "store.db")
        holder = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program), path],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(StoreError, match=f"was locked by process {holder.pid} for too long"):
            add_sweep(store)
        assert store.sweeps() == ()
        holder.communicate(b"")
        assert failures.lock_holder(path) is None
        add_sweep(store)
    assert failures.lock_holder(str(tmp_path / "elsewhere")) is None


# ---------------------------------------------------------------- migrations


def test_the_revisions_that_can_be_opened_are_those_of_the_scripts() -> None:
    scripts = [script.revision for script in migrate.scripts().walk_revisions()]
    assert tuple(reversed(scripts)) == REVISIONS


def differences(where: str) -> list[object]:
    """What the migrations made that is not in the metadata, and the other way round."""
    database = connect(locate(where), create=True, lock_timeout_s=5)
    with database.engine.connect() as connection:
        found = compare_metadata(MigrationContext.configure(connection), metadata)
    database.close()
    return list(found)


def test_migrations_make_what_the_metadata_says(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    assert differences(str(tmp_path)) == []


@pytest.mark.skipif(postgresql_binaries() is None, reason="no PostgreSQL server is installed")
def test_migrations_make_what_the_metadata_says_on_postgresql() -> None:
    pytest.importorskip("psycopg")
    for server in postgresql_server():
        where = postgresql_database(server, "empty")
        with pytest.raises(StoreError, match="is an empty database"):
            open_store(where, create=False)
        open_store(where).close()
        open_store(where, create=False).close()
        assert differences(where) == []
        with pytest.raises(StoreError, match='database "absent" does not exist'):
            open_store(f"{server}/absent")


def test_an_older_store_is_brought_up_in_one_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(tmp_path / "data") as store:
        run_trial(store, store.trials(add_sweep(store))[0].id)
        before = store.trials()
    folder = Path(str(migrate.__file__)).parent / "migrations"
    shutil.copytree(folder, tmp_path / "migrations")
    third = tmp_path / "migrations" / "versions" / "r0004_colour.py"
    third.write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n"
        "revision = '0004'\ndown_revision = '0003'\n"
        "def upgrade():\n"
        "    op.add_column('trial', sa.Column('colour', sa.Text()))\n"
        "    op.execute('UPDATE trial SET colour = state')\n"
        "    raise_or_not()\n"
        "def raise_or_not():\n    raise RuntimeError('half way')\n"
    )
    monkeypatch.setattr(migrate, "__file__", str(tmp_path / "migrate.py"))
    monkeypatch.setattr("benchrunner.store.engine.REVISIONS", (*REVISIONS, "0004"))
    with pytest.raises(RuntimeError, match="half way"):
        open_store(tmp_path / "data")
    assert columns(tmp_path / "data")[-1] != "colour"
    third.write_text(third.read_text().replace("raise RuntimeError('half way')", "pass"))
    with open_store(tmp_path / "data") as store:
        assert store.trials() == before
    assert columns(tmp_path / "data")[-1] == "colour"


def test_a_store_of_the_first_schema_keeps_its_ceilings(tmp_path: Path) -> None:
    database = connect(locate(tmp_path), create=True, lock_timeout_s=5)
    with database.write("migrate") as connection:
        migrate.upgrade(connection, "0001")
        connection.exec_driver_sql(
            "INSERT INTO ceiling (host, device, metric, value, taken_at) "
            "VALUES ('a', 'b', 'read_iops', 9.0, 1.0)"
        )
    database.close()
    with open_store(tmp_path) as store:
        (ceiling,) = store.ceilings("a")
    assert (ceiling.value, ceiling.block_bytes) == (9.0, None)
    assert columns(tmp_path, "ceiling")[-1] == "block_bytes"


def test_a_store_of_the_first_revision_keeps_what_it_has(tmp_path: Path) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    with open_store(new) as store:
        run_trial(store, store.trials(add_sweep(store))[0].id)
        stored = store.trials()
    database = connect(locate(old), create=True, lock_timeout_s=5)
    with database.write("migrate") as connection:
        migrate.upgrade(connection, "0001")
    database.close()
    copy = sqlite3.connect(old)
    copy.execute("ATTACH ? AS new", (str(new),))
    for table in ("artifact", "host_facts", "job", "sweep", "trial", "step_run"):
        info = copy.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
        names = ", ".join(f'"{row[0]}"' for row in info)
        copy.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM new.{table}")  # noqa: S608
    copy.commit()
    copy.close()
    with open_store(old) as store:
        assert store.trials() == stored
        assert [row.host for row in store.step_runs(stored[0].id)] == [None]
    assert differences(str(old)) == []


def columns(folder: Path, table: str = "trial") -> list[str]:
    """Columns of a table."""
    connection = sqlite3.connect(folder / "store.db")
    rows = connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
    connection.close()
    return [row[0] for row in rows]


def test_two_controllers_that_find_no_store_make_one(tmp_path: Path) -> None:
    program = (
        "import sys; from benchrunner.store import open_store; open_store(sys.argv[1]).close()"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    assert [process.communicate()[1] for process in both] == [b"", b""]
    open_store(tmp_path, create=False).close()


# ---------------------------------------------------------------- queries and pages


def test_no_query_of_a_page_or_of_status_reads_a_whole_table(tmp_path: Path) -> None:
    """Small tables may be read whole; those that grow with the history may not."""
    with open_store(tmp_path) as store:
        for row in store.trials(add_sweep(store, repeat=3)):
            run_trial(store, row.id)
        asked: list[tuple[str, Any]] = []

        @event.listens_for(store._database.engine, "before_cursor_execute")
        def note(*arguments: Any) -> None:
            asked.append((str(arguments[2]), arguments[3]))

        store.page_rows("rocksdb-flash", host="local", scale="smoke")
        store.counts_by_state(1)
        store.unfinished_sweeps()
        store.running_steps()
        store.measurements(1)
        store.events(1)
        selects = [(s, p) for s, p in asked if s.startswith("SELECT")]
    connection = sqlite3.connect(tmp_path / "store.db")
    plans = [
        step[3]
        for statement, parameters in selects
        for step in connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
    ]
    connection.close()
    assert len(selects) > 10
    growing = r"SCAN (trial|step_run|measurement|taint|event|job|series)\b"
    assert [plan for plan in plans if re.search(growing, plan)] == []


def test_every_table_and_column_is_documented() -> None:
    page = (ROOT / "docs" / "store.md").read_text(encoding="utf-8")
    for table in metadata.tables.values():
        section = page.partition(f"### `{table.name}`")[2].partition("\n### ")[0]
        missing = [c.name for c in table.columns if f"| `{c.name}` |" not in section]
        assert missing == [], f"docs/store.md, table {table.name}"


@given(
    st.lists(st.integers(0, 10**9), min_size=1, max_size=4),
    st.lists(st.integers(0, 10**9), min_size=1, max_size=4),
)
def test_version_keys_order_like_versions(left: list[int], right: list[int]) -> None:
    keys = [canonical.version_key(".".join(map(str, version))) for version in (left, right)]
    assert (keys[0] < keys[1]) == (left < right)


@given(st.dictionaries(st.text(), st.integers() | st.text()))
def test_an_axes_key_does_not_depend_on_the_order(axes: dict[str, int | str]) -> None:
    backwards = dict(reversed(axes.items()))
    assert canonical.axes_key(axes) == canonical.axes_key(backwards)
