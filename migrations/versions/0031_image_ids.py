"""The ids of all images that there ever were, so that none comes to stand for another content."""

from alembic import op

from migrations.scripts import statements

revision = "0031"
down_revision = "0022"


def upgrade() -> None:
    for statement in statements("0031_image_ids.sql"):
        op.execute(statement)
