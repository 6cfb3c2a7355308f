"""Projects that images are shared with; images that wait for their import, and deactivated ones."""

from migrations.scripts import alone

revision = "0045"
down_revision = "0044"


def upgrade() -> None:
    alone("0045_image_members.sql")
