"""Calendar feeds, and the index by which they read the leases of a project."""

from migrations.scripts import alone, build_indexes

revision = "0054"
down_revision = "0050"


def upgrade() -> None:
    alone("0054_calendar_feeds.sql")
    build_indexes("0054_calendar_feeds_indexes.sql")
