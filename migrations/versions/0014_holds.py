"""Shares of reservations that lie in child zones."""

from alembic import op

from migrations.scripts import statements

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    for statement in statements("0014_holds.sql"):
        op.execute(statement)
