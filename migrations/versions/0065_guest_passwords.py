"""Passwords that guests post to the metadata service, encrypted by their public keys."""

from migrations.scripts import alone

revision = "0065"
down_revision = "0064"


def upgrade() -> None:
    alone("0065_guest_passwords.sql")
