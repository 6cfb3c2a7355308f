"""Networks that projects create, and a limit of them."""

from migrations.scripts import alone, build_indexes

revision = "0063"
down_revision = "0062"


def upgrade() -> None:
    build_indexes("0063_project_networks_indexes.sql")
    alone("0063_project_networks.sql")
