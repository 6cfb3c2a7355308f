"""Additional events of leases: any number of them, each with a name."""

from alembic import op

from migrations.scripts import statements

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    for statement in statements("0016_additional_events.sql"):
        op.execute(statement)
