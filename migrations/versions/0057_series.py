"""Series of leases, and the series of each lease."""

from migrations.scripts import alone, build_indexes

revision = "0057"
down_revision = "0056"


def upgrade() -> None:
    alone("0057_series.sql")
    build_indexes("0057_series_indexes.sql")
