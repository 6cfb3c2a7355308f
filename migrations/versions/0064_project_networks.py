"""Networks that projects create, and a limit of them."""

from migrations.scripts import alone, build_indexes

revision = "0064"
down_revision = "0063"


def upgrade() -> None:
    build_indexes("0064_project_networks_indexes.sql")
    alone("0064_project_networks.sql")
