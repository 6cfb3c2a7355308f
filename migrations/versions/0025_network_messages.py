"""Addresses that are granted over the queue of a network host, and the messages to allocators."""

from alembic import op

from migrations.scripts import statements

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    for statement in statements("0025_network_messages.sql"):
        op.execute(statement)
