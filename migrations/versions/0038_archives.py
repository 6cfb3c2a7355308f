"""Archives of leases that went long ago, and the one way in which facts may leave the journal."""

from alembic import op

from migrations.scripts import build_indexes, statements

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    # First what can be repeated: the rest is undone when it fails.
    build_indexes("0038_archives_indexes.sql")
    for statement in statements("0038_archives.sql"):
        op.execute(statement)
