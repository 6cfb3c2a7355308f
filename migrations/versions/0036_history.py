"""Indexes with which nothing that is asked reads leases that are over."""

from alembic import op

from migrations.scripts import statements

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    for statement in statements("0036_history.sql"):
        op.execute(statement)
