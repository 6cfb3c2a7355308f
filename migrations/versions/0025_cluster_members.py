"""Members of clusters behind other compute services, and what is asked of them."""

from alembic import op

from migrations.scripts import statements

revision = "0025"
down_revision = "0022"


def upgrade() -> None:
    for statement in statements("0025_cluster_members.sql"):
        op.execute(statement)
