"""Cells: the neighbours of this deployment, and the messages from and to them."""

from alembic import op

from migrations.scripts import statements

revision = "0012"
down_revision = "0009"


def upgrade() -> None:
    for statement in statements("0012_cells.sql"):
        op.execute(statement)
