"""Connections to PostgreSQL, and its clock."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, overload

import psycopg
from psycopg import Column
from psycopg.pq import ExecStatus, TransactionStatus
from sqlalchemy import Connection, Engine, create_engine, event, func, select

OPTIONS = (
    "-c timezone=UTC -c statement_timeout=5s -c lock_timeout=3s -c idle_in_transaction_session_timeout=30s "
    # With a concrete window the planner may choose a scan of a whole index: 190 ms instead of 0.1.
    "-c plan_cache_mode=force_generic_plan "
    # The statements take milliseconds, but JIT compilation takes a hundred when the estimates are off.
    "-c jit=off"
)


LINE: Mapping[str, int] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""Keepalive options of a connection, in seconds except the last in milliseconds, to detect a vanished database soon."""

SERVER_LINE = "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3 -c tcp_user_timeout=10s"
"""The same options of the server, which release the locks of a vanished client soon."""

UNSYNCED = "-c synchronous_commit=off"
"""Option of connections whose commits do not wait for the disk."""


def connect(
    url: str, *, pool_size: int = 10, application: str = "climate", options: str = "", autocommit: bool = False
) -> Engine:
    """Return an engine for `url`: UTC, statement time-outs, and plans that do not depend on the window.

    `autocommit`: connections commit each statement. As an execution option, that costs more than a short statement.
    """
    engine = create_engine(
        url.replace("postgres://", "postgresql://", 1),
        **({"isolation_level": "AUTOCOMMIT"} if autocommit else {}),
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_timeout=10,
        # The connection that was used last has its statements prepared and its pages cached.
        pool_use_lifo=True,
        pool_pre_ping=False,
        hide_parameters=True,
        connect_args={
            "application_name": application,
            "cursor_factory": Cursor,
            "options": f"{OPTIONS} {SERVER_LINE} {options}".strip(),
            "prepare_threshold": 0,
            **LINE,
        },
    )
    event.listen(engine, "do_connect", _do_connect)
    return engine


def _do_connect(dialect: object, record: object, args: Sequence[Any], given: Mapping[str, Any]) -> psycopg.Connection:
    return PreparedConnection.connect(*args, **given)


IN_TRANSACTION = (TransactionStatus.INTRANS, TransactionStatus.INERROR)


def line(url: str, application: str) -> psycopg.Connection[tuple[object, ...]]:
    """Return a connection for `url` outside pool and transactions: to listen, or to hold a lock."""
    known: dict[str, Any] = dict(LINE)
    return psycopg.connect(url, autocommit=True, application_name=application, options=SERVER_LINE, **known)


_CLOCK = select(func.clock_timestamp())


def database_time(conn: Connection) -> datetime:
    """Return the present time of the database's clock, in UTC."""
    return conn.scalar(_CLOCK) or _never()


def _never() -> datetime:
    raise AssertionError("the database has a clock")


class PreparedConnection(psycopg.Connection[Any]):
    """Connection that keeps its prepared statements when a transaction is rolled back.

    PostgreSQL keeps them too, because PREPARE is not transactional. psycopg deallocates all of them, in case the
    transaction had changed the schema. Each statement after a refused request would then be parsed and planned again.
    """

    def rollback(self) -> None:
        """Roll back the transaction, if there is one."""
        if self.pgconn.transaction_status not in IN_TRANSACTION:
            super().rollback()
            return
        with self.lock:
            result = self.pgconn.exec_(b"ROLLBACK")
        if result.status != ExecStatus.COMMAND_OK:
            raise psycopg.OperationalError(f"the rollback failed: {self.pgconn.get_error_message()}")


class Cursor(psycopg.Cursor[object]):
    """Cursor that describes the columns of its result on demand.

    SQLAlchemy asks each result whether it has a description, but reads it only for the first result of a statement.
    """

    @property
    def description(self) -> Any:
        """Return the columns of the result, or None if it has none."""
        result = self.pgresult
        return Columns(self) if result is not None and result.nfields else super().description

    def described(self) -> list[Column]:
        """Return the columns of the result as psycopg makes them."""
        return super().description or []


class Columns(Sequence[Column]):
    """Columns of the current result of a cursor."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor

    def __len__(self) -> int:
        return len(self._cursor.described())

    def __iter__(self) -> Iterator[Column]:
        return iter(self._cursor.described())

    @overload
    def __getitem__(self, index: int) -> Column: ...
    @overload
    def __getitem__(self, index: slice) -> list[Column]: ...
    def __getitem__(self, index: int | slice) -> Column | list[Column]:
        return self._cursor.described()[index]
