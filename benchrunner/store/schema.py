"""The tables of the store, as SQLAlchemy metadata. ``docs/store.md`` says what each column means.

A change here needs a migration in ``migrations/versions`` and its number at the end of
``glance.REVISIONS``; a test compares the two. No query and no connection is made here.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    false,
)
from sqlalchemy.types import TypeDecorator

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

Identifier = BigInteger().with_variant(Integer(), "sqlite")
"""SQLite numbers rows by itself only when the type is spelt INTEGER."""


class PlainText(TypeDecorator[str]):
    """Text from programs and people: what no database can hold becomes U+FFFD, visibly."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Any) -> str | None:
        """Replaces NUL and undecodable bytes."""
        del dialect
        if value is None or (value.isascii() and "\0" not in value):
            return value
        return "".join(
            "\N{REPLACEMENT CHARACTER}" if c == "\0" or "\ud800" <= c <= "\udfff" else c
            for c in value
        )


def _text(name: str, **more: Any) -> Column[Any]:
    return Column(name, PlainText, nullable=False, **more)


def _json(name: str) -> Column[Any]:
    return Column(name, JSON(none_as_null=True), nullable=False)


def _json_or_null(name: str) -> Column[Any]:
    return Column(name, JSON(none_as_null=True))


def _time(name: str) -> Column[Any]:
    return Column(name, Double)


def _to(target: str) -> ForeignKey:
    return ForeignKey(f"{target}.id")


sweep = Table(
    "sweep",
    metadata,
    Column("id", Identifier, primary_key=True),
    _text("name"),
    Column("created_at", Double, nullable=False),
    _json("spec"),
    _json("baseline"),
    _json("command_line"),
    _text("benchrunner_version"),
    _json("expected"),
)

artifact = Table(
    "artifact",
    metadata,
    Column("id", PlainText, primary_key=True),
    _text("engine"),
    _text("version"),
    _text("source"),
    _text("ref"),
    _text("state"),
    Column("commit", PlainText),
    Column("compiler", PlainText),
    _text("directory"),
    _json("binaries"),
    _json("sha256"),
    _json("build_flags"),
    _json("features"),
    _json_or_null("known_flags"),
    Column("seconds", Double),
    _text("log"),
    _text("reason"),
    Column("created_at", Double, nullable=False),
)

host_facts = Table(
    "host_facts",
    metadata,
    Column("id", PlainText, primary_key=True),
    _text("host"),
    Column("taken_at", Double, nullable=False),
    _text("boot_id"),
    _json("facts"),
)

job = Table(
    "job",
    metadata,
    Column("id", PlainText, primary_key=True),
    _text("workload"),
    _text("engine"),
    _text("version"),
    _text("version_key"),
    _json("source"),
    _text("variant"),
    _text("host"),
    _text("scale"),
    _json("params"),
    _json("axes"),
    _text("axes_key", index=True),
    _json("steps"),
    _text("policy"),
    Column("as_shipped", Boolean, nullable=False),
    _text("server", server_default=""),
    Index(None, "workload", "host", "scale"),
)

trial = Table(
    "trial",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("sweep_id", Identifier, _to("sweep"), nullable=False),
    Column("job_id", PlainText, _to("job"), nullable=False),
    Column("repetition", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    _text("state"),
    _text("reason", server_default=""),
    Column("attempt", Integer, nullable=False, server_default="1"),
    Column("artifact_id", PlainText, _to("artifact")),
    Column("facts_id", PlainText, _to("host_facts")),
    Column("fence", BigInteger),
    _time("started_at"),
    _time("ended_at"),
    Column("server_address", PlainText),
    Column("server_facts_id", PlainText, _to("host_facts")),
    UniqueConstraint("sweep_id", "position"),
    UniqueConstraint("sweep_id", "job_id", "repetition"),
    Index(None, "sweep_id", "state"),
    Index(None, "job_id", "state", "sweep_id"),
)

step_run = Table(
    "step_run",
    metadata,
    Column("id", Identifier, primary_key=True),
    Column("trial_id", PlainText, _to("trial"), nullable=False),
    Column("attempt", Integer, nullable=False),
    _text("step"),
    Column("position", Integer, nullable=False),
    _text("state", index=True),
    _text("reason", server_default=""),
    _json("argv"),
    _json("env"),
    _json("flags"),
    _text("run_dir"),
    Column("pid", BigInteger),
    Column("start_time", BigInteger),
    _time("started_at"),
    _time("ended_at"),
    Column("exit_code", Integer),
    Column("signal", Integer),
    _json_or_null("status"),
    Column("raw_path", PlainText),
    Column("raw_sha256", PlainText),
    _json_or_null("options"),
    Column("parser", PlainText),
    Column("parser_version", PlainText),
    _time("parsed_at"),
    _json_or_null("problems"),
    _json_or_null("facts"),
    Column("superseded", Boolean, nullable=False, server_default=false()),
    Column("host", PlainText),
    UniqueConstraint("trial_id", "attempt", "step"),
)

measurement_key = Table(
    "measurement_key",
    metadata,
    Column("id", Integer, primary_key=True),
    _text("phase"),
    Column("run", Integer, nullable=False),
    _text("role"),
    _text("metric"),
    _json("axes"),
    _text("axes_key"),
    UniqueConstraint("metric", "phase", "run", "role", "axes_key"),
)

measurement = Table(
    "measurement",
    metadata,
    Column("step_run_id", Identifier, _to("step_run"), primary_key=True, autoincrement=False),
    Column("key_id", Integer, _to("measurement_key"), primary_key=True, autoincrement=False),
    Column("value", Double, nullable=False),
    sqlite_with_rowid=False,
)

series = Table(
    "series",
    metadata,
    Column("step_run_id", Identifier, _to("step_run"), primary_key=True, autoincrement=False),
    Column("name", PlainText, primary_key=True),
    _json("points"),
)

taint = Table(
    "taint",
    metadata,
    Column("id", Identifier, primary_key=True),
    Column("step_run_id", Identifier, _to("step_run"), index=True),
    Column("trial_id", PlainText, _to("trial"), index=True),
    _text("name"),
    _text("evidence"),
    _text("remedy"),
    _text("origin"),
)

event = Table(
    "event",
    metadata,
    Column("id", Identifier, primary_key=True),
    Column("at", Double, nullable=False),
    Column("sweep_id", Identifier, _to("sweep"), index=True),
    Column("trial_id", PlainText, _to("trial"), index=True),
    Column("step_run_id", Identifier, _to("step_run")),
    _text("what"),
    _json("detail"),
)

lease = Table(
    "lease",
    metadata,
    Column("host", PlainText, primary_key=True),
    Column("owner", PlainText),
    Column("pid", BigInteger),
    Column("hostname", PlainText),
    Column("start_time", BigInteger),
    Column("fence", BigInteger, nullable=False),
    _time("since"),
    _time("heartbeat_at"),
)

ceiling = Table(
    "ceiling",
    metadata,
    Column("id", Identifier, primary_key=True),
    _text("host"),
    _text("device"),
    _text("metric"),
    Column("value", Double, nullable=False),
    Column("step_run_id", Identifier, _to("step_run")),
    Column("taken_at", Double, nullable=False),
    Column("block_bytes", BigInteger),
    Index(None, "host", "device", "metric"),
)

setting = Table(
    "setting",
    metadata,
    Column("key", PlainText, primary_key=True),
    _json("value"),
)
