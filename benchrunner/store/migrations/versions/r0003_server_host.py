"""Services may run on another host than the steps: which, where it is reached, what is known of it.

Frozen once released: it takes nothing from ``schema``.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# As SQL, which SQLite and PostgreSQL read alike: Alembic would add the reference in a second
# statement, and SQLite knows none that could.
_SERVER_FACTS = (
    "ALTER TABLE trial ADD COLUMN server_facts_id TEXT"
    " CONSTRAINT fk_trial_server_facts_id REFERENCES host_facts (id)"
)


def upgrade() -> None:
    """Adds the columns; what is stored ran with services beside its steps."""
    op.add_column("job", sa.Column("server", sa.Text(), server_default="", nullable=False))
    op.add_column("trial", sa.Column("server_address", sa.Text(), nullable=True))
    op.execute(_SERVER_FACTS)
    op.add_column("step_run", sa.Column("host", sa.Text(), nullable=True))
