"""Archives of leases that went long ago, and the one way in which facts may leave the journal."""

from alembic import op

from migrations.scripts import statements

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    for statement in statements("0038_archives.sql"):
        op.execute(statement)
