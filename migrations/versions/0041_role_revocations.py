"""Revocations of a user's tokens for one project."""

from migrations.scripts import alone

revision = "0041"
down_revision = "0040"


def upgrade() -> None:
    alone("0041_role_revocations.sql")
