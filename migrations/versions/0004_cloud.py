"""The bundled cloud grows up: aggregates, groups, decisions, and what the scheduler's snapshot is kept fresh by."""

from alembic import op

from migrations.scripts import statements

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    for statement in statements("0004_cloud.sql"):
        op.execute(statement)
