"""Disk configuration of servers, and the time that deleted ones ran."""

from migrations.scripts import alone

revision = "0050"
down_revision = "0049"


def upgrade() -> None:
    alone("0050_servers.sql")
