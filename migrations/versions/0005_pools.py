"""Pools of hosts with a journal, shared hosts, maintenance, power, limits, notices."""

from alembic import op

from migrations.scripts import statements

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    for statement in statements("0005_pools.sql"):
        op.execute(statement)
