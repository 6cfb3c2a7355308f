"""Disk configuration of servers."""

from migrations.scripts import alone

revision = "0050"
down_revision = "0049"


def upgrade() -> None:
    alone("0050_disk_config.sql")
