"""Networks that have a name and no range yet."""

from alembic import op

from migrations.scripts import statements

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    for statement in statements("0008_network_outlines.sql"):
        op.execute(statement)
