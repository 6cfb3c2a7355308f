"""Connections: the columns of a result are described when somebody looks at them, and as psycopg does it."""

from typing import Any

import psycopg
import pytest
from psycopg import Column
from sqlalchemy import Engine, column, event, text

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
    engine = connect(database_url, pool_size=1)

    @event.listens_for(engine, "do_connect")
    def count(_dialect: Any, _record: Any, _arguments: Any, options: dict[str, Any]) -> None:
        options["cursor_factory"] = Counting

    known = text("SELECT :a AS a").columns(column("a"))
    with engine.connect() as conn:
        asked = []
        for number in range(3):
            assert conn.execute(known, {"a": str(number)}).mappings().one() == {"a": str(number)}
            asked.append(len(counted))
    engine.dispose()
    assert asked[0] > 0
    assert asked[1:] == asked[:1] * 2


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
