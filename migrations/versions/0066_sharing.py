"""Sharing of leases: the projects and users of each, also of the capacity that is granted to them."""

from migrations.scripts import alone, build_indexes

revision = "0066"
down_revision = "0060"


def upgrade() -> None:
    alone("0066_sharing.sql")
    build_indexes("0066_sharing_indexes.sql")
