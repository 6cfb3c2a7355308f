"""Whether servers are moved away from hosts that drain, and from those that are worked on."""

from alembic import op

from migrations.scripts import statements

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    for statement in statements("0037_move_servers.sql"):
        op.execute(statement)
