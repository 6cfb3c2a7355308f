"""Tags of servers."""

from migrations.scripts import alone

revision = "0043"
down_revision = "0041"


def upgrade() -> None:
    alone("0043_server_tags.sql")
