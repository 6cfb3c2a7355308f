"""Revocations that are read by what has changed, and failures that are counted by login."""

from alembic import op

from migrations.scripts import statements

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    for statement in statements("0031_identity.sql"):
        op.execute(statement)
