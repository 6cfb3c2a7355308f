"""Child zones, what services report of themselves, and servers that were placed in child zones."""

from alembic import op

from migrations.scripts import statements

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    for statement in statements("0010_zones.sql"):
        op.execute(statement)
