"""Domains of projects and users, groups of users, and roles that imply others."""

from migrations.scripts import alone, build_indexes

revision = "0069"
down_revision = "0067"


def upgrade() -> None:
    alone("0069_domains.sql")
    build_indexes("0069_domains_indexes.sql")
    alone("0069_domains_names.sql")
