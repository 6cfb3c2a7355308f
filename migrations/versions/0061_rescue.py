"""Rescued servers, and quota classes: a limit that nobody has set is NULL, and follows the class `default`."""

from migrations.scripts import alone

revision = "0061"
down_revision = "0059"


def upgrade() -> None:
    alone("0061_rescue.sql")
