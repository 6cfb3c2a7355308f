"""Networks with managers and hosts, interfaces of servers, floating addresses."""

from alembic import op

from migrations.scripts import statements

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    for statement in statements("0006_networks.sql"):
        op.execute(statement)
