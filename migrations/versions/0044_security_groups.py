"""Security groups of projects, their rules, and the groups of servers."""

from migrations.scripts import alone

revision = "0044"
down_revision = "0043"


def upgrade() -> None:
    alone("0044_security_groups.sql")
