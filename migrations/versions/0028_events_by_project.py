"""Events know their project, so that projects take turns without a look at all that is due."""

from alembic import op

from migrations.scripts import statements

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    for statement in statements("0028_events_by_project.sql"):
        op.execute(statement)
