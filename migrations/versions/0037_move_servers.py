"""Settings to move servers away from hosts that drain and from hosts in maintenance."""

from migrations.scripts import alone

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    alone("0037_move_servers.sql")
