"""Config drives of servers, and the cloudpipes of projects: certificate authorities and what they have signed."""

from alembic import op

from migrations.scripts import statements

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    for statement in statements("0026_cloudpipes.sql"):
        op.execute(statement)
