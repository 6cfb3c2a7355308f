"""Builds over zones, where each of their servers went, and offers of this zone that parents have used."""

from alembic import op

from migrations.scripts import statements

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    for statement in statements("0011_build_plans.sql"):
        op.execute(statement)
