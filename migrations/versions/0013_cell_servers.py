"""Servers in a tree of cells: the top cell's table of all servers, and what a child has reported."""

from alembic import op

from migrations.scripts import statements

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    for statement in statements("0013_cell_servers.sql"):
        op.execute(statement)
