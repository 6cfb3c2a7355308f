"""Hosts that are drained before they are kept for leases, how the reservation pool is filled, pools of reservations."""

from alembic import op

from migrations.scripts import statements

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    for statement in statements("0018_pools.sql"):
        op.execute(statement)
