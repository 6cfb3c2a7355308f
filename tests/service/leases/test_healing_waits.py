"""Leases that cannot be healed cost less and less, and are tried again as soon as something is freed."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import Engine, text

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.lease import Lease
from climate.domain.status import EventKind
from climate.service.leases import healing, leases
from climate.store.engine import line
from climate.store.leases.event_claims import CHANNEL, ROUNDS
from tests.conftest import MEMBER, Clock
from tests.scenarios.test_statement_counts import cost
from tests.service.host_rounds import fall_ill, recover
from tests.service.lease_actions import get, held, hosts_wanted, make, run_due

MANY = """
    WITH made AS (
        INSERT INTO leases (id, name, project_id, user_id, start_date, end_date, status, degraded, deleting, gone,
                            version, created_at)
        SELECT gen_random_uuid(), 'many', 'p', 'u', CAST(:now AS timestamptz) - n * interval '1 minute',
               CAST(:now AS timestamptz) + interval '9 days', 'ACTIVE', true, false, false, 1, :now
        FROM generate_series(1, :count) AS n RETURNING id, start_date, end_date),
    held AS (
        INSERT INTO reservations (id, lease_id, position, resource_type, status, spec, exists_before_start, missing,
                                  resources_changed)
        SELECT gen_random_uuid(), id, 0, 'physical:host', 'active', '{"min": 1, "max": 1}', false, 1, false FROM made)
    INSERT INTO events (id, lease_id, seq, kind, due_at, run_at, status, outcome, attempts, token, project_id)
    SELECT gen_random_uuid(), id, seq, kind, at, at, status, outcome, 0, token, 'p'
    FROM made, LATERAL (VALUES (20, 'start_lease', start_date, 'DONE', 'OK', 7),
        (60, 'end_lease', end_date, 'UNDONE', NULL, 0)) AS e (seq, kind, at, status, outcome, token)
"""
"""Leases that run and lack the only host that they were promised."""


CHANGED = """
    INSERT INTO events (id, lease_id, seq, kind, due_at, run_at, status, attempts, token, project_id)
    SELECT gen_random_uuid(), id, 30, :kind, :now, :now, 'IN_PROGRESS', 1, 8, 'p' FROM leases
"""
"""A change of each lease that a worker carries out just now."""


@pytest.fixture
def incurable(engine: Engine, clock: Clock) -> Callable[[int], None]:
    def write(count: int) -> None:
        with engine.begin() as conn:
            conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
            conn.execute(text(MANY), {"now": clock.time, "count": count})

    return write


def tries(engine: Engine) -> list[int]:
    with engine.connect() as conn:
        return list(conn.execute(text("SELECT tries FROM healing_waits ORDER BY tries DESC")).scalars())


def full(climate: Climate, clock: Clock) -> tuple[Lease, Lease]:
    """A lease that lacks a host, and one that has all others and begins later than it ends."""
    other = make(climate, clock, hosts_wanted(4), start=0, hours=5)
    lease = make(climate, clock, hosts_wanted(4), start=0, hours=5)
    run_due(climate)
    fall_ill(climate, clock, min(held(lease)))
    assert get(climate, lease).reservations[0].missing == 1
    return get(climate, lease), get(climate, other)


def test_a_round_tries_a_bounded_number_of_a_thousand(
    climate: Climate, clock: Clock, engine: Engine, incurable: Callable[[int], None]
) -> None:
    incurable(healing.PORTION)
    one = cost(engine, lambda: healing.heal_all(climate))
    clock.forward(seconds=6)
    incurable(1000)
    assert cost(engine, lambda: healing.heal_all(climate)) <= one + 2
    assert len(tries(engine)) == 2 * healing.PORTION, "those that were never tried come first"


def test_a_try_that_failed_is_not_repeated_before_its_time(
    climate: Climate, clock: Clock, engine: Engine, incurable: Callable[[int], None]
) -> None:
    incurable(3)
    healing.heal_all(climate)
    idle = cost(engine, lambda: healing.heal_all(climate))
    assert tries(engine) == [1, 1, 1]
    assert idle <= 8, "it only looks"
    waits = []
    for _ in range(9):
        before, count = clock.time, max(tries(engine))
        while max(tries(engine)) == count:
            clock.forward(seconds=5)
            healing.heal_all(climate)
        waits.append((clock.time - before) / timedelta(seconds=1))
    assert waits == [5, 10, 20, 40, 80, 160, 300, 300, 300]


def test_leases_with_an_event_in_progress_take_no_turn_of_the_others(
    climate: Climate, clock: Clock, engine: Engine, incurable: Callable[[int], None]
) -> None:
    incurable(healing.PORTION)
    with engine.begin() as conn:
        conn.execute(text(CHANGED), {"now": clock.time, "kind": EventKind.ADJUST})
    clock.forward(hours=1)  # the others have begun later
    incurable(5)
    healing.heal_all(climate)
    assert tries(engine) == [1] * 5


def test_what_is_freed_wakes_those_that_wait_at_once(
    climate: Climate, clock: Clock, cloud: FakeCloud, engine: Engine
) -> None:
    lease, other = full(climate, clock)
    for _ in range(3):
        clock.forward(seconds=300)
        healing.heal_all(climate)
    assert healing.heal_all(climate) == [], "it waits"
    with line(engine.url.render_as_string(hide_password=False).replace("+psycopg", ""), "test") as listener:
        listener.execute(f"LISTEN {CHANNEL}")
        leases.delete(climate, MEMBER, other.id)
        run_due(climate)
        assert ROUNDS in [note.payload for note in listener.notifies(timeout=5, stop_after=2)]
    assert healing.heal_all(climate) == [lease.id], "at the same moment"
    assert get(climate, lease).reservations[0].missing == 0
    assert tries(engine) == []


def test_a_host_that_returns_wakes_the_lease_that_lacks_it(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease, _ = full(climate, clock)
    for _ in range(8):
        clock.forward(seconds=300)
        healing.heal_all(climate)
    recover(climate, clock, min(held(lease)))
    assert get(climate, lease).reservations[0].missing == 0


def test_more_than_one_round_may_try_asks_for_the_next_round(
    climate: Climate, engine: Engine, incurable: Callable[[int], None]
) -> None:
    incurable(healing.PORTION + 1)
    with line(engine.url.render_as_string(hide_password=False).replace("+psycopg", ""), "test") as listener:
        listener.execute(f"LISTEN {CHANNEL}")
        healing.heal_all(climate)
        assert [note.payload for note in listener.notifies(timeout=5, stop_after=1)] == [ROUNDS]
    healing.heal_all(climate)
    assert len(tries(engine)) == healing.PORTION + 1
