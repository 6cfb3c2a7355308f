"""Notices are written together with what they tell of."""

from uuid import UUID

from sqlalchemy import Engine, text

from climate.context import Climate
from climate.service.notifications.delivery import Notice, notify
from tests.conftest import Clock
from tests.scenarios.test_statement_counts import cost

LEASE = UUID(int=7)


def test_any_number_is_written_in_one_statement_and_in_order(climate: Climate, clock: Clock, engine: Engine) -> None:
    told = [Notice("host.failed", f"h{place}", host=place, body={"place": place}) for place in range(12)]
    with engine.begin() as conn:
        assert cost(engine, lambda: notify(conn, clock.time, *told)) == 1
        assert cost(engine, lambda: notify(conn, clock.time)) == 0
        notify(conn, clock.time, Notice("lease.ended", 'over: \u202e \\ "', "project", "user", LEASE))
        rows = conn.execute(text("SELECT * FROM notices ORDER BY id")).all()
    assert [(row.host, row.message) for row in rows[:12]] == [(notice.host, notice.message) for notice in told]
    assert [row.body for row in rows[:12]] == [notice.body for notice in told]
    last = rows[-1]
    assert (last.kind, last.message) == ("lease.ended", 'over: \u202e \\ "')
    assert (last.project_id, last.user_id, last.lease_id) == ("project", "user", LEASE)
    assert (last.at, last.next_at, last.attempts, last.audience) == (clock.time, clock.time, 0, "people")


def test_what_is_rolled_back_was_never_reported(climate: Climate, clock: Clock, engine: Engine) -> None:
    with engine.connect() as conn:
        notify(conn, clock.time, Notice("host.failed", "no"))
        conn.rollback()
        assert conn.scalar(text("SELECT count(*) FROM notices")) == 0
