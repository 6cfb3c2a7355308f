"""The waiting list: leases that wait for resources, and reasons to try them."""

from migrations.scripts import alone, build_indexes

revision = "0057"
down_revision = "0058"


def upgrade() -> None:
    alone("0057_waiting_list.sql")
    build_indexes("0057_waiting_list_indexes.sql")
