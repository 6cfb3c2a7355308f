"""Floating addresses that are made for one project, outside of what their pool hands out."""

from alembic import op

from migrations.scripts import statements

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    for statement in statements("0009_single_addresses.sql"):
        op.execute(statement)
