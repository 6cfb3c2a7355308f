"""Series of leases, and the series of each lease."""

from migrations.scripts import alone, build_indexes

revision = "0058"
down_revision = "0056"


def upgrade() -> None:
    alone("0058_series.sql")
    build_indexes("0058_series_indexes.sql")
