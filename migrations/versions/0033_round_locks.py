"""Locks of the rounds, as rows that expire."""

from alembic import op

from migrations.scripts import statements

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    for statement in statements("0033_round_locks.sql"):
        op.execute(statement)
