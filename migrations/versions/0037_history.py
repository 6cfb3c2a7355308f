"""Indexes with which nothing that is asked reads leases that are over."""

from alembic import op

from migrations.scripts import statements

revision = "0037"
down_revision = "0031"


def upgrade() -> None:
    for statement in statements("0037_history.sql"):
        op.execute(statement)
