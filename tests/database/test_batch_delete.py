"""Deletion in portions: no more rows than the limit, and no wait for a row that another transaction holds."""

import pytest
from sqlalchemy import Engine, func, select, text

from climate.database.batch_delete import drop
from climate.store.tables.leases import idempotency_keys

WRITE = """
    INSERT INTO idempotency_keys (project_id, user_id, key, fingerprint, resource_id, created_at)
    SELECT 'p', 'u', n::text, 'f', 'r', now() FROM generate_series(1, 10) AS n
"""


@pytest.fixture
def written(engine: Engine) -> Engine:
    with engine.begin() as conn:
        conn.execute(text(WRITE))
    return engine


def test_as_many_rows_as_the_limit_are_deleted(written: Engine) -> None:
    with written.begin() as conn:
        old = idempotency_keys.c.key != "7"
        assert [drop(conn, idempotency_keys, old, 4) for _ in range(4)] == [4, 4, 1, 0]
        assert conn.scalars(select(idempotency_keys.c.key)).all() == ["7"]


def test_rows_that_another_transaction_holds_are_left(written: Engine) -> None:
    with written.begin() as other, written.begin() as conn:
        other.execute(text("SELECT FROM idempotency_keys WHERE key = '3' FOR UPDATE"))
        conn.execute(text("SET LOCAL lock_timeout = '1s'"))
        assert drop(conn, idempotency_keys, idempotency_keys.c.project_id == "p") == 9
        assert conn.scalar(select(func.count()).select_from(idempotency_keys)) == 1
