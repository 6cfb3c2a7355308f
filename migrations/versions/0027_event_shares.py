"""Shares of events, one for each resource type of a lease that has several."""

from alembic import op

from migrations.scripts import statements

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    for statement in statements("0027_event_shares.sql"):
        op.execute(statement)
