"""Volumes that members create without a lease."""

from migrations.scripts import alone

revision = "0066"
down_revision = "0065"


def upgrade() -> None:
    alone("0066_volumes_without_lease.sql")
