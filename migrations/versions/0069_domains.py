"""Domains of projects and users, and groups of users."""

from migrations.scripts import alone, build_indexes

revision = "0069"
down_revision = "0067"


def upgrade() -> None:
    alone("0069_domains.sql")
    build_indexes("0069_domains_indexes.sql")
    alone("0069_domains_names.sql")
