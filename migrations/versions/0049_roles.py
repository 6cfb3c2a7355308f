"""Roles besides the default ones, roles in the system; parents, tags and further attributes of projects and users."""

from migrations.scripts import alone

revision = "0049"
down_revision = "0048"


def upgrade() -> None:
    alone("0049_roles.sql")
