"""Indexes for the filters of migrations, and for the deletion of old ones."""

from migrations.scripts import build_indexes

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    build_indexes("0040_migration_lists.sql")
