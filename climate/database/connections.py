"""Autocommit connections, and statements that run as parts of other statements."""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

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
class KeptConnections:
    """Connections of an autocommit engine that are not returned to its pool between statements; thread-safe.

    To check a connection out of the pool and in again takes half as long as a short statement.
    """

    engine: Engine
    _idle: deque[Connection] = field(default_factory=deque)

    @contextmanager
    def one(self) -> Iterator[Connection]:
        """Yield a connection. After an error it is returned to the pool with all idle ones, which may be lost too."""
        try:
            conn = self._idle.pop()
        except IndexError:
            conn = self.engine.connect()
        try:
            yield conn
        except BaseException:
            conn.close()
            self.close()
            raise
        self._idle.append(conn)

    def close(self) -> None:
        """Return the idle connections to the pool."""
        while self._idle:
            self._idle.pop().close()


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
