"""Addresses that are granted over the queue of a network host, and what allocators are told."""

from alembic import op

from migrations.scripts import statements

revision = "0026"
down_revision = "0022"


def upgrade() -> None:
    for statement in statements("0026_network_messages.sql"):
        op.execute(statement)
