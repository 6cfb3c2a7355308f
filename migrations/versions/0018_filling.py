"""The pool of hosts that are drained before they are kept for leases, and how that for leases is filled."""

from alembic import op

from migrations.scripts import statements

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    for statement in statements("0018_filling.sql"):
        op.execute(statement)
