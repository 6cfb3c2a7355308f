"""Connections that stay out of their pool between statements."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from climate.database.connections import KeptConnections
from climate.store.engine import connect

PID = text("SELECT pg_backend_pid()")


def test_statements_use_one_connection_and_are_committed(database_url: str) -> None:
    engine = connect(database_url, pool_size=2, autocommit=True)
    kept = KeptConnections(engine)
    pids = set()
    for _ in range(3):
        with kept.one() as conn:
            pids.add(conn.scalar(PID))
            conn.execute(text("CREATE TABLE IF NOT EXISTS kept_connections (a int)"))
            conn.execute(text("INSERT INTO kept_connections VALUES (1)"))
    with engine.connect() as other:
        assert other.scalar(text("SELECT count(*) FROM kept_connections")) == 3
        assert other.scalar(PID) not in pids
        other.execute(text("DROP TABLE kept_connections"))
    assert len(pids) == 1
    kept.close()
    assert engine.pool.checkedin() == 2  # type: ignore[attr-defined]
    engine.dispose()


def test_lost_connections_are_not_kept(database_url: str) -> None:
    engine = connect(database_url, pool_size=3, autocommit=True)
    kept = KeptConnections(engine)
    with kept.one() as one, kept.one() as two:
        pids = [one.scalar(PID), two.scalar(PID)]
    with engine.connect() as other:
        for pid in pids:
            other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
    with pytest.raises(DBAPIError), kept.one() as conn:
        conn.scalar(PID)
    for _ in range(2):
        with kept.one() as conn:
            assert conn.scalar(PID) not in pids
    kept.close()
    engine.dispose()
