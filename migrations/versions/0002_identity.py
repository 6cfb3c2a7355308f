"""The first tables of the identity service."""

from alembic import op

from migrations.scripts import statements

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    for statement in statements("0002_identity.sql"):
        op.execute(statement)
