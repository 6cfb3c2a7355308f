"""Sharing of leases: the projects and users of each, also of the capacity that is granted to them."""

from migrations.scripts import alone, build_indexes

revision = "0064"
down_revision = "0063"


def upgrade() -> None:
    alone("0064_sharing.sql")
    build_indexes("0064_sharing_indexes.sql")
