"""Indexes with which nothing that is asked reads leases that are over."""

from migrations.scripts import build_indexes

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    build_indexes("0036_history.sql")
