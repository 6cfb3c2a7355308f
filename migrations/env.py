"""Alembic's door to the schema: the connection is handed in, see `climate.database.schema_upgrade.upgrade`."""

from alembic import context

connection = context.config.attributes["connection"]
# Each migration is committed by itself: its locks are free before the next one waits for others.
context.configure(connection=connection, transaction_per_migration=True)
with context.begin_transaction():
    context.run_migrations()
