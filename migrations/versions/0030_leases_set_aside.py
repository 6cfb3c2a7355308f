"""Leases that the pollers have set aside, since their rows cannot be read or written."""

from alembic import op

from migrations.scripts import statements

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    for statement in statements("0030_leases_set_aside.sql"):
        op.execute(statement)
