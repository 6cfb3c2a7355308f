"""Progress of the comparison of rows with the journal."""

from alembic import op

from migrations.scripts import statements

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    for statement in statements("0032_journal_checks.sql"):
        op.execute(statement)
