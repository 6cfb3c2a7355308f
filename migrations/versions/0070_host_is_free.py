"""Function host_is_free: whether a host has no allocation in a window, in a snapshot taken when it is called."""

from migrations.scripts import alone

revision = "0070"
down_revision = "0069"


def upgrade() -> None:
    alone("0070_host_is_free.sql")
