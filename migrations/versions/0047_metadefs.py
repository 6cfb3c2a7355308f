"""Catalog of the properties of images, flavors and other resources: metadata definitions."""

from migrations.scripts import alone

revision = "0047"
down_revision = "0045"


def upgrade() -> None:
    alone("0047_metadefs.sql")
