"""The statements of the calendar are answered by indexes, whatever the history."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine, event, text

from climate.context import Climate
from climate.domain.period import Period
from climate.store.hosts import timeline
from tests.conftest import MEMBER, Clock
from tests.service.lease_actions import hosts_wanted, make

WEEK = Period(datetime(2030, 1, 1, tzinfo=UTC), datetime(2030, 1, 8, tzinfo=UTC))


def test_allocations_come_by_host_and_start(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(2), start=30)
    make(climate, clock, hosts_wanted(8), start=5)
    make(climate, clock, start=24 * 30)
    with climate.engine.connect() as conn:
        found = timeline.allocated(conn, range(1, 9), WEEK, MEMBER)
        assert timeline.allocated(conn, [], WEEK, MEMBER) == []
        assert {one.host for one in timeline.allocated(conn, [3], WEEK, MEMBER)} == {3}
    assert [(one.host, one.start) for one in found] == sorted((one.host, one.start) for one in found)
    assert len(found) == 10


def test_allocations_are_found_by_indexes(climate: Climate, clock: Clock, engine: Engine) -> None:
    """No table of allocations or leases is read as a whole, even where scans would be cheap."""
    make(climate, clock)
    plans: list[str] = []

    def explain(conn: object, cursor: object, statement: str, *rest: object) -> None:
        if "allocations" in statement and not statement.startswith("EXPLAIN"):
            plans.append(statement)

    event.listen(engine, "before_cursor_execute", explain)
    with engine.connect() as conn:
        timeline.allocated(conn, [1], WEEK, MEMBER)
        event.remove(engine, "before_cursor_execute", explain)
        (statement,) = plans
        conn.execute(text("SET LOCAL enable_seqscan = off"))
        begin, end = WEEK.start.isoformat(), (WEEK.end + timedelta(0)).isoformat()
        given = {"ids": "{1}", "begin": begin, "end": end, "project_id": "demo", "user_id": "member"}
        for name, value in given.items():
            statement = statement.replace(f"%({name})s", f"'{value}'")
        plan = "\n".join(conn.execute(text(f"EXPLAIN {statement}".replace(":", r"\:"))).scalars())
    assert "Seq Scan on allocations" not in plan
    assert "Seq Scan on leases" not in plan
    assert "ix_allocations_host_start" in plan
