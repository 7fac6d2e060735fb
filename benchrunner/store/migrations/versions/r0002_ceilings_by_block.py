"""Ceilings by the size of a request: what a device can do with 4 KiB says little of 64 KiB."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column; what was measured before was measured with any size."""
    op.add_column("ceiling", sa.Column("block_bytes", sa.BigInteger(), nullable=True))
