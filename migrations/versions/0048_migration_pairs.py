"""Indexes for pairs of filters of migrations, and the public keys that parent zones and top cells send."""

from migrations.scripts import alone, build_indexes

revision = "0048"
down_revision = "0047"


def upgrade() -> None:
    alone("0048_public_keys.sql")
    build_indexes("0048_migration_pairs.sql")
