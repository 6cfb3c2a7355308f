"""Usage: host hours of leases, and the times at which servers ran on leased hosts."""

from migrations.scripts import alone

revision = "0056"
down_revision = "0055"


def upgrade() -> None:
    alone("0056_usage.sql")
