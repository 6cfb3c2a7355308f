"""Processes of the runs of the cleaning hook."""

from alembic import op

from migrations.scripts import statements

revision = "0025"
down_revision = "0017"


def upgrade() -> None:
    for statement in statements("0025_cleaning_runs.sql"):
        op.execute(statement)
