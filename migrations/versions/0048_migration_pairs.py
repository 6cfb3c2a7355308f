"""Indexes for pairs of filters of migrations, and for those under way at a moment."""

from migrations.scripts import build_indexes

revision = "0048"
down_revision = "0047"


def upgrade() -> None:
    build_indexes("0048_migration_pairs.sql")
