"""Members of clusters behind other compute services, and what is asked of them."""

from alembic import op

from migrations.scripts import statements

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    for statement in statements("0024_cluster_members.sql"):
        op.execute(statement)
