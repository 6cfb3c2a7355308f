"""Migrations of servers between nodes, and the drivers of nodes."""

from alembic import op

from migrations.scripts import statements

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    for statement in statements("0023_migrations.sql"):
        op.execute(statement)
