"""The servers of a user, for rules that place servers by their owners."""

from alembic import op

from migrations.scripts import statements

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    for statement in statements("0019_server_owners.sql"):
        op.execute(statement)
