"""The cell that a build was sent to, and its servers."""

from alembic import op

from migrations.scripts import statements

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    for statement in statements("0015_cell_builds.sql"):
        op.execute(statement)
