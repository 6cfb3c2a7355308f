"""Floating addresses that can be reserved."""

from alembic import op

from migrations.scripts import statements

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    for statement in statements("0007_floating_ips.sql"):
        op.execute(statement)
