"""Ports that exist without a server, and a limit of them."""

from migrations.scripts import alone, build_indexes

revision = "0062"
down_revision = "0061"


def upgrade() -> None:
    alone("0062_ports.sql")
    build_indexes("0062_ports_indexes.sql")
