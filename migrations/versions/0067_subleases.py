"""Sub-leases: the parent lease of each, and the hosts of reservations that are promised to them."""

from migrations.scripts import alone, build_indexes

revision = "0067"
down_revision = "0066"


def upgrade() -> None:
    alone("0067_subleases.sql")
    build_indexes("0067_subleases_indexes.sql")
