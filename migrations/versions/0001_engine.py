"""The first tables of the engine."""

from alembic import op

from migrations.scripts import statements

revision = "0001"
down_revision = None


def upgrade() -> None:
    for statement in statements("0001_engine.sql"):
        op.execute(statement)
