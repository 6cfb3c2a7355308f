"""Connections: the columns of a result are described when somebody looks at them, and as psycopg does it."""

from datetime import datetime
from typing import Any

import psycopg
import pytest
from psycopg import Column
from sqlalchemy import Connection, Engine, column, create_engine, text
from sqlalchemy.exc import DBAPIError

from climate.database.connections import reading
from climate.store.engine import LINE, Cursor, connect, line


def described(url: str, statement: str, kind: type[psycopg.Cursor[Any]]) -> Any:
    with psycopg.connect(url.replace("postgres://", "postgresql://", 1), cursor_factory=kind) as conn:
        cursor = conn.execute(statement)
        return None if cursor.description is None else [tuple(one) for one in cursor.description]


@pytest.mark.parametrize(
    "statement", ["SELECT 1 AS one, 'x'::text AS \"zw€i\", now()", "SELECT", "CREATE TEMP TABLE t (a int)", ""]
)
def test_description_is_that_of_psycopg(database_url: str, statement: str) -> None:
    assert described(database_url, statement, Cursor) == described(database_url, statement, psycopg.Cursor)


def test_description_is_a_sequence(engine: Engine) -> None:
    with engine.connect() as conn:
        cursor = conn.connection.cursor()
        cursor.execute("SELECT 1 AS a, 2 AS b, 3 AS c")
        columns: Any = cursor.description
        assert (len(columns), columns[0].name, [one.name for one in columns[-2:]]) == (3, "a", ["b", "c"])
        cursor.execute("SELECT 4 AS d")
        assert [one.name for one in cursor.description] == ["d"]


def test_columns_of_a_statement_are_described_once(database_url: str) -> None:
    class Counting(Cursor):
        def described(self) -> list[Column]:
            counted.append(1)
            return super().described()

    counted: list[int] = []
    url = database_url.replace("postgres://", "postgresql://", 1)
    engine = create_engine(url, connect_args={"cursor_factory": Counting})
    known = text("SELECT :a AS a").columns(column("a"))
    with engine.connect() as conn:
        asked = []
        for number in range(3):
            assert conn.execute(known, {"a": str(number)}).mappings().one() == {"a": str(number)}
            asked.append(len(counted))
    engine.dispose()
    assert asked[0] > 0
    assert asked[1:] == asked[:1] * 2


PREPARED = "SELECT prepare_time FROM pg_prepared_statements WHERE starts_with(statement, 'SELECT 1 + ')"


def prepared(conn: Connection) -> list[datetime]:
    """When the server prepared the sums that it knows on this connection."""
    return list(conn.exec_driver_sql(PREPARED).scalars())


@pytest.mark.parametrize("refused", [False, True], ids=["left", "refused by the server"])
def test_rolled_back_transaction_keeps_prepared_statements(database_url: str, refused: bool) -> None:
    engine = connect(database_url, pool_size=1)
    with engine.connect() as conn:
        assert conn.execute(text("SELECT 1 + :b"), {"b": 2}).scalar_one() == 3
        known = prepared(conn)
        if refused:
            with pytest.raises(DBAPIError):
                conn.exec_driver_sql("SELECT 1 / 0")
    with engine.connect() as conn:
        assert conn.execute(text("SELECT 1 + :b"), {"b": 4}).scalar_one() == 5
        assert prepared(conn) == known
    engine.dispose()
    assert len(known) == 1


def test_statement_prepared_on_a_table_that_was_rolled_back_is_usable(database_url: str) -> None:
    engine = connect(database_url, pool_size=1)
    for value in (7, 8):
        with engine.connect() as conn:
            conn.exec_driver_sql("CREATE TABLE fleeting (a int PRIMARY KEY)")
            conn.execute(text("INSERT INTO fleeting VALUES (:a)"), {"a": value})
            assert conn.execute(text("SELECT a FROM fleeting")).scalars().all() == [value]
    engine.dispose()


def test_connection_lost_within_a_transaction_is_replaced(database_url: str) -> None:
    engine, other = connect(database_url, pool_size=1), connect(database_url, pool_size=1)
    with engine.connect() as conn:
        pid = conn.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        with other.connect() as killer:
            killer.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})
        with pytest.raises(DBAPIError) as caught:
            conn.rollback()
        assert caught.value.connection_invalidated
    with engine.connect() as conn:
        assert conn.exec_driver_sql("SELECT pg_backend_pid()").scalar_one() != pid
    engine.dispose()
    other.dispose()


def test_read_takes_no_transaction(engine: Engine) -> None:
    with reading(engine) as conn:
        first = conn.exec_driver_sql("SELECT transaction_timestamp()").scalar_one()
        assert conn.exec_driver_sql("SELECT transaction_timestamp()").scalar_one() > first


def test_what_a_vanished_client_holds_is_free_again_soon(server_url: str) -> None:
    """Both ends ask over TCP whether the other is there; a Unix socket has no such settings."""
    pooled = connect(server_url, pool_size=1)
    plain = server_url.replace("postgres://", "postgresql://", 1).replace("+psycopg", "")
    names = ("tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout")
    with pooled.connect() as one, line(plain, "test") as other:
        raw = one.connection.driver_connection
        assert raw is not None
        for conn in (raw, other):
            if conn.info.host.startswith("/"):
                pytest.skip("the server is reached by a Unix socket")
            assert [conn.execute(f"SHOW {name}").fetchone()[0] for name in names] == ["5", "2", "3", "10000"]
            assert {name: int(conn.info.get_parameters()[name]) for name in LINE} == LINE
    pooled.dispose()
