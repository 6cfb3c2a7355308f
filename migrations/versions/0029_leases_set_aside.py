"""Leases that the pollers have set aside, since their rows cannot be read or written."""

from alembic import op

from migrations.scripts import statements

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    for statement in statements("0029_leases_set_aside.sql"):
        op.execute(statement)
