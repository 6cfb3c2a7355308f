"""Progress through the journal, and rows of samples."""

from datetime import timedelta

from sqlalchemy import Engine, select

from climate.context import Climate
from climate.service.leases import leases
from climate.service.usage import round as usage
from climate.store.tables.usage import host_activity
from climate.store.usage import host_hours
from tests.conftest import MEMBER, Clock
from tests.scenarios.test_statement_counts import cost
from tests.service.lease_actions import make


def test_facts_that_may_not_be_settled_are_read_again(climate: Climate, clock: Clock) -> None:
    """The clock of the test runs ahead of the time at which rows are recorded, hence all are settled at first."""
    lease = make(climate, clock)
    with climate.engine.connect() as conn:
        portion = host_hours.after(conn, 0, clock.time)
        assert portion.leases == [lease.id]
        assert portion.settled == portion.last > 0
        assert not portion.is_full
        early = host_hours.after(conn, 0, clock.time - timedelta(days=3650))
        assert early.last == portion.last
        assert early.settled < early.last, "a transaction may still commit a lower position"
        assert host_hours.after(conn, portion.last, clock.time).leases == ()


def test_statements_do_not_grow_with_leases(climate: Climate, clock: Clock, engine: Engine) -> None:
    make(climate, clock)
    usage.run_round(climate)
    make(climate, clock)
    one = cost(engine, lambda: usage.run_round(climate))
    for _ in range(20):
        leases.delete(climate, MEMBER, make(climate, clock).id)
    assert cost(engine, lambda: usage.run_round(climate)) <= one


def test_a_sample_extends_the_row_of_the_former_one(climate: Climate, clock: Clock) -> None:
    begin, step = clock.time, timedelta(minutes=1)

    def at(minute: int) -> tuple[object, object]:
        return begin + minute * step, begin + (minute + 1) * step

    with climate.engine.begin() as conn:
        for minute, busy in ((0, [1, 2]), (1, [1]), (2, [1, 2]), (2, [1, 2])):
            host_hours.sample(conn, busy, begin + minute * step, begin + (minute + 1) * step)
        rows = conn.execute(select(host_activity).order_by(host_activity.c.host, host_activity.c.starts_at)).all()
        assert [tuple(row) for row in rows] == [(1, begin, begin + 3 * step), (2, *at(0)), (2, *at(2))]
        state = host_hours.progress(conn)
        assert (state.measured_since, state.sampled_at) == (begin + step, begin + 3 * step)
