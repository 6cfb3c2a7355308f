"""Autocommit connections, and statements that run as parts of other statements."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, Subquery


def reading(engine: Engine) -> Connection:
    """Return an autocommit connection, for reads that need no common snapshot.

    A transaction costs two more round trips, for its begin and its end. When `Engine.connect` rolls it back, psycopg
    also deallocates all prepared statements of the connection.
    """
    return engine.connect().execution_options(isolation_level="AUTOCOMMIT")


def alone(engine: Engine) -> Connection:
    """Return an autocommit connection for a change of one statement."""
    return reading(engine)


@dataclass(frozen=True, slots=True)
class Insert:
    """An INSERT that runs as a part of another component's statement, and hence in its transaction."""

    sql: str
    """SQL with RETURNING for the values that the other statement needs."""
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Query:
    """A query that runs as a part of another component's statement."""

    rows: Subquery
    """Always the same object, so that the statement around it is built once."""
    parameters: Mapping[str, object]
