"""Times at which leases that could not be healed are tried again."""

from alembic import op

from migrations.scripts import statements

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    for statement in statements("0034_healing_waits.sql"):
        op.execute(statement)
