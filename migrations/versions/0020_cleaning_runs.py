"""Processes of the runs of the cleaning hook."""

from alembic import op

from migrations.scripts import statements

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    for statement in statements("0020_cleaning_runs.sql"):
        op.execute(statement)
