"""Connections for reads."""

from sqlalchemy import Connection, Engine


def reading(engine: Engine) -> Connection:
    """A connection for one statement: without a transaction, which would go to Postgres and back twice more."""
    return engine.connect().execution_options(isolation_level="AUTOCOMMIT")
