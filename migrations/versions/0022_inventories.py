"""Inventories: pools of countable resources, and who holds how much of them."""

from alembic import op

from migrations.scripts import statements

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    for statement in statements("0022_inventories.sql"):
        op.execute(statement)
