"""The first tables of the bundled cloud."""

from alembic import op

from migrations.scripts import statements

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    for statement in statements("0003_compute.sql"):
        op.execute(statement)
