"""Identity of the storage that members of clusters have their disks on."""

from migrations.scripts import alone

revision = "0039"
down_revision = "0038"


def upgrade() -> None:
    alone("0039_member_disks.sql")
