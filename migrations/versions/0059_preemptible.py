"""Preemptible reservations: which allocations give way, and the plans to take hosts."""

from migrations.scripts import alone, build_indexes

revision = "0059"
down_revision = "0058"


def upgrade() -> None:
    alone("0059_preemptible.sql")
    build_indexes("0059_preemptible_indexes.sql")
