"""Numbers of the requests that parent cells have sent for leases here."""

from alembic import op

from migrations.scripts import statements

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    for statement in statements("0017_lease_fences.sql"):
        op.execute(statement)
