"""Ports that exist without a server, and a limit of them."""

from migrations.scripts import alone, build_indexes

revision = "0063"
down_revision = "0060"


def upgrade() -> None:
    alone("0063_ports.sql")
    build_indexes("0063_ports_indexes.sql")
