"""Connections for reads, and what goes along with the statements of others."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, Engine


def reading(engine: Engine) -> Connection:
    """Return a connection on which each statement stands alone, as reads that need no common snapshot may.

    A transaction goes to Postgres and back twice more, for its begin and its
    end.  Where it is rolled back, which `Engine.connect` does at its end,
    psycopg also forgets all statements that were prepared on the connection.
    """
    return engine.connect().execution_options(isolation_level="AUTOCOMMIT")


def alone(engine: Engine) -> Connection:
    """Return a connection on which each statement is a transaction of its own: for a change of one statement."""
    return reading(engine)


@dataclass(frozen=True, slots=True)
class Insert:
    """An INSERT that is run as a part of the statement of another room, and hence in its transaction."""

    sql: str
    """With RETURNING for what the other one needs to know."""
    parameters: Mapping[str, str]
