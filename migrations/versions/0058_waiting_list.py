"""The waiting list: leases that wait for resources, and reasons to try them."""

from migrations.scripts import alone, build_indexes

revision = "0058"
down_revision = "0057"


def upgrade() -> None:
    alone("0058_waiting_list.sql")
    build_indexes("0058_waiting_list_indexes.sql")
