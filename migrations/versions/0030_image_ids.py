"""Records that are never deleted: ids of images, lest one stands for another content, and the tokens of grants."""

from alembic import op

from migrations.scripts import statements

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    for statement in statements("0030_image_ids.sql"):
        op.execute(statement)
