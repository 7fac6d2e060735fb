"""The first schema: sweeps, jobs, trials, step runs, what they measured, and the journal.

Frozen once released: it describes the store of its day, so it takes nothing from ``schema``.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def identifier() -> sa.types.TypeEngine[int]:
    """A row number that SQLite assigns by itself."""
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Creates every table; those that others refer to come first."""
    create_artifact()
    create_host_facts()
    create_job()
    create_lease()
    create_measurement_key()
    create_setting()
    create_sweep()
    create_trial()
    create_step_run()
    create_ceiling()
    create_event()
    create_measurement()
    create_series()
    create_taint()


def create_artifact() -> None:
    """Creates the table ``artifact``."""
    op.create_table(
        "artifact",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("engine", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("ref", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("commit", sa.Text(), nullable=True),
        sa.Column("compiler", sa.Text(), nullable=True),
        sa.Column("directory", sa.Text(), nullable=False),
        sa.Column("binaries", sa.JSON(), nullable=False),
        sa.Column("sha256", sa.JSON(), nullable=False),
        sa.Column("build_flags", sa.JSON(), nullable=False),
        sa.Column("features", sa.JSON(), nullable=False),
        sa.Column("known_flags", sa.JSON(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("log", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_artifact")),
    )


def create_host_facts() -> None:
    """Creates the table ``host_facts``."""
    op.create_table(
        "host_facts",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("taken_at", sa.Double(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_host_facts")),
    )


def create_job() -> None:
    """Creates the table ``job``."""
    op.create_table(
        "job",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workload", sa.Text(), nullable=False),
        sa.Column("engine", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("version_key", sa.Text(), nullable=False),
        sa.Column("source", sa.JSON(), nullable=False),
        sa.Column("variant", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("scale", sa.Text(), nullable=False),
        sa.Column("params", sa.JSON(), nullable=False),
        sa.Column("axes", sa.JSON(), nullable=False),
        sa.Column("axes_key", sa.Text(), nullable=False),
        sa.Column("steps", sa.JSON(), nullable=False),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("as_shipped", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
    )
    op.create_index(op.f("ix_job_axes_key"), "job", ["axes_key"], unique=False)
    op.create_index(
        op.f("ix_job_workload_host_scale"), "job", ["workload", "host", "scale"], unique=False
    )


def create_lease() -> None:
    """Creates the table ``lease``."""
    op.create_table(
        "lease",
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("pid", sa.BigInteger(), nullable=True),
        sa.Column("hostname", sa.Text(), nullable=True),
        sa.Column("start_time", sa.BigInteger(), nullable=True),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("since", sa.Double(), nullable=True),
        sa.Column("heartbeat_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("host", name=op.f("pk_lease")),
    )


def create_measurement_key() -> None:
    """Creates the table ``measurement_key``."""
    op.create_table(
        "measurement_key",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("axes", sa.JSON(), nullable=False),
        sa.Column("axes_key", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_measurement_key")),
        sa.UniqueConstraint(
            "metric",
            "phase",
            "run",
            "role",
            "axes_key",
            name=op.f("uq_measurement_key_metric_phase_run_role_axes_key"),
        ),
    )


def create_setting() -> None:
    """Creates the table ``setting``."""
    op.create_table(
        "setting",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_setting")),
    )


def create_sweep() -> None:
    """Creates the table ``sweep``."""
    op.create_table(
        "sweep",
        sa.Column("id", identifier(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("baseline", sa.JSON(), nullable=False),
        sa.Column("command_line", sa.JSON(), nullable=False),
        sa.Column("benchrunner_version", sa.Text(), nullable=False),
        sa.Column("expected", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sweep")),
    )


def create_trial() -> None:
    """Creates the table ``trial``."""
    op.create_table(
        "trial",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("sweep_id", identifier(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("repetition", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="1", nullable=False),
        sa.Column("artifact_id", sa.Text(), nullable=True),
        sa.Column("facts_id", sa.Text(), nullable=True),
        sa.Column("fence", sa.BigInteger(), nullable=True),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["artifact_id"], ["artifact.id"], name=op.f("fk_trial_artifact_id")
        ),
        sa.ForeignKeyConstraint(["facts_id"], ["host_facts.id"], name=op.f("fk_trial_facts_id")),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_trial_job_id")),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_trial_sweep_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trial")),
        sa.UniqueConstraint(
            "sweep_id", "job_id", "repetition", name=op.f("uq_trial_sweep_id_job_id_repetition")
        ),
        sa.UniqueConstraint("sweep_id", "position", name=op.f("uq_trial_sweep_id_position")),
    )
    op.create_index(
        op.f("ix_trial_job_id_state_sweep_id"),
        "trial",
        ["job_id", "state", "sweep_id"],
        unique=False,
    )
    op.create_index(op.f("ix_trial_sweep_id_state"), "trial", ["sweep_id", "state"], unique=False)


def create_step_run() -> None:
    """Creates the table ``step_run``."""
    op.create_table(
        "step_run",
        sa.Column("id", identifier(), nullable=False),
        sa.Column("trial_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("argv", sa.JSON(), nullable=False),
        sa.Column("env", sa.JSON(), nullable=False),
        sa.Column("flags", sa.JSON(), nullable=False),
        sa.Column("run_dir", sa.Text(), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=True),
        sa.Column("start_time", sa.BigInteger(), nullable=True),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("signal", sa.Integer(), nullable=True),
        sa.Column("status", sa.JSON(), nullable=True),
        sa.Column("raw_path", sa.Text(), nullable=True),
        sa.Column("raw_sha256", sa.Text(), nullable=True),
        sa.Column("options", sa.JSON(), nullable=True),
        sa.Column("parser", sa.Text(), nullable=True),
        sa.Column("parser_version", sa.Text(), nullable=True),
        sa.Column("parsed_at", sa.Double(), nullable=True),
        sa.Column("problems", sa.JSON(), nullable=True),
        sa.Column("facts", sa.JSON(), nullable=True),
        sa.Column("superseded", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.ForeignKeyConstraint(["trial_id"], ["trial.id"], name=op.f("fk_step_run_trial_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_step_run")),
        sa.UniqueConstraint(
            "trial_id", "attempt", "step", name=op.f("uq_step_run_trial_id_attempt_step")
        ),
    )
    op.create_index(op.f("ix_step_run_state"), "step_run", ["state"], unique=False)


def create_ceiling() -> None:
    """Creates the table ``ceiling``."""
    op.create_table(
        "ceiling",
        sa.Column("id", identifier(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("step_run_id", identifier(), nullable=True),
        sa.Column("taken_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["step_run_id"], ["step_run.id"], name=op.f("fk_ceiling_step_run_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ceiling")),
    )
    op.create_index(
        op.f("ix_ceiling_host_device_metric"), "ceiling", ["host", "device", "metric"], unique=False
    )


def create_event() -> None:
    """Creates the table ``event``."""
    op.create_table(
        "event",
        sa.Column("id", identifier(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("sweep_id", identifier(), nullable=True),
        sa.Column("trial_id", sa.Text(), nullable=True),
        sa.Column("step_run_id", identifier(), nullable=True),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["step_run_id"], ["step_run.id"], name=op.f("fk_event_step_run_id")
        ),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_event_sweep_id")),
        sa.ForeignKeyConstraint(["trial_id"], ["trial.id"], name=op.f("fk_event_trial_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
    )
    op.create_index(op.f("ix_event_sweep_id"), "event", ["sweep_id"], unique=False)
    op.create_index(op.f("ix_event_trial_id"), "event", ["trial_id"], unique=False)


def create_measurement() -> None:
    """Creates the table ``measurement``."""
    op.create_table(
        "measurement",
        sa.Column("step_run_id", identifier(), autoincrement=False, nullable=False),
        sa.Column("key_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["key_id"], ["measurement_key.id"], name=op.f("fk_measurement_key_id")
        ),
        sa.ForeignKeyConstraint(
            ["step_run_id"], ["step_run.id"], name=op.f("fk_measurement_step_run_id")
        ),
        sa.PrimaryKeyConstraint("step_run_id", "key_id", name=op.f("pk_measurement")),
        sqlite_with_rowid=False,
    )


def create_series() -> None:
    """Creates the table ``series``."""
    op.create_table(
        "series",
        sa.Column("step_run_id", identifier(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("points", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["step_run_id"], ["step_run.id"], name=op.f("fk_series_step_run_id")
        ),
        sa.PrimaryKeyConstraint("step_run_id", "name", name=op.f("pk_series")),
    )


def create_taint() -> None:
    """Creates the table ``taint``."""
    op.create_table(
        "taint",
        sa.Column("id", identifier(), nullable=False),
        sa.Column("step_run_id", identifier(), nullable=True),
        sa.Column("trial_id", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("remedy", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["step_run_id"], ["step_run.id"], name=op.f("fk_taint_step_run_id")
        ),
        sa.ForeignKeyConstraint(["trial_id"], ["trial.id"], name=op.f("fk_taint_trial_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_taint")),
    )
    op.create_index(op.f("ix_taint_step_run_id"), "taint", ["step_run_id"], unique=False)
    op.create_index(op.f("ix_taint_trial_id"), "taint", ["trial_id"], unique=False)
