"""Connections for reads."""

from sqlalchemy import Connection, Engine


def reading(engine: Engine) -> Connection:
    """Return a connection on which each statement stands alone, as reads that need no common snapshot may.

    A transaction goes to Postgres and back twice more, for its begin and its
    end.  Where it is rolled back, which `Engine.connect` does at its end,
    psycopg also forgets all statements that were prepared on the connection.
    """
    return engine.connect().execution_options(isolation_level="AUTOCOMMIT")
