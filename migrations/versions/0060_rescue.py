"""Rescued servers, and quota classes: a limit that nobody has set is NULL, and follows the class `default`."""

from migrations.scripts import alone

revision = "0060"
down_revision = "0059"


def upgrade() -> None:
    alone("0060_rescue.sql")
