"""The database's tables through time, for Alembic."""
