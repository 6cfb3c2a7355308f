"""Alembic's door to the schema: the connection is handed in, see `climate.bootstrap.upgrade`."""

from alembic import context

from climate.advisory_locks import MIGRATION

connection = context.config.attributes["connection"]
context.configure(connection=connection, transaction_per_migration=False)
with context.begin_transaction():
    # Two processes that start at once must not both create the tables.
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION})")
    context.run_migrations()
