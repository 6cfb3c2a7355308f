"""Rows are made anew beside all other work: nothing waits for long, nothing is lost, and nothing is written twice."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from random import Random
from threading import Event
from typing import Any

import pytest
from psycopg.errors import DeadlockDetected
from sqlalchemy import Engine, event, text

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.errors import ClimateError, NotEnoughHosts
from climate.domain.facts import LeaseRenamed
from climate.domain.hosts.pools import Pool
from climate.domain.lease import Lease
from climate.service.events import event_dispatch
from climate.service.host_operations import pool_moves
from climate.service.hosts import reservable
from climate.service.journal import consistency_check
from climate.service.journal.rebuild import rebuild
from climate.service.leases import leases, update
from climate.service.leases.update import Changes
from climate.store.journal import journal
from climate.store.journal.row_differences import FIRST
from climate.store.leases import leases as stored
from climate.store.leases.leases import Listing
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service.lease_actions import get, hosts_wanted, make, rows, run_due, settle

REBUILDS = 12
"""How often rows are made anew beside traffic that does not end."""

HARMLESS = (
    "UPDATE reservations SET status = 'forged' WHERE id = (SELECT id FROM reservations ORDER BY random() LIMIT 1)",
    "UPDATE allocations SET vcpus = 7 WHERE id = (SELECT id FROM allocations ORDER BY random() LIMIT 1)",
    "UPDATE leases SET degraded = true WHERE id = (SELECT id FROM leases ORDER BY random() LIMIT 1)",
    "UPDATE hosts SET created_at = created_at - interval '1 day' WHERE id = 4",
)
"""Columns forged beside the traffic, of which no command makes facts."""


@pytest.fixture
def deadlocks(engine: Engine) -> list[str]:
    """Deadlocks that Postgres has found, also where they were tried again."""
    seen: list[str] = []

    def note(context: Any) -> None:
        if isinstance(context.original_exception, DeadlockDetected):
            seen.append(str(context.original_exception))

    event.listen(engine, "handle_error", note)
    return seen


def repeat(act: Callable[[], object], stop: Event) -> int:
    """Do something again and again until it is stopped; what is refused is refused.  How often it was tried."""
    count = 0
    while not stop.is_set():
        with suppress(ClimateError):
            act()
        count += 1
    return count


def known(climate: Climate) -> list[Lease]:
    return leases.listed(climate, ADMIN, Listing())


def traffic(climate: Climate, clock: Clock, engine: Engine) -> list[Callable[[], object]]:
    """What users, admins, pollers and workers do, and somebody with a database shell."""
    chance, creates = Random(1), dict[int, datetime]()

    def create(place: int, least: int, most: int, **when: float) -> None:
        creates[place] = clock.time
        try:
            make(climate, clock, hosts_wanted(least, most), **when)
        finally:
            del creates[place]

    def some() -> Lease:
        return chance.choice(known(climate) or [make(climate, clock, start=0.1)])

    def forge() -> None:
        with engine.begin() as conn:
            conn.execute(text(chance.choice(HARMLESS)))

    def work() -> None:
        """Run what is due; the clock waits for slow creates, and for leases that are locked: no start is MISSED."""
        run_due(climate)
        if all(clock.time - begun < timedelta(minutes=2) for begun in tuple(creates.values())):
            clock.forward(seconds=60 if event_dispatch.pending_work(climate).is_quiet else 1)

    def move() -> None:
        host = str(chance.randint(1, 8))
        pool_moves.move(
            climate, ADMIN, pool_moves.RequestedMove((host,), chance.choice([Pool.MULTI_TENANT, Pool.RESERVATION]))
        )

    return [
        lambda: create(1, 1, 3, start=0.1, hours=0.2),
        lambda: create(2, 1, 1, start=0, hours=0.1),
        lambda: update.update(climate, MEMBER, some().id, Changes(name=f"n{chance.random()}")),
        lambda: leases.delete(climate, MEMBER, some().id),
        lambda: reservable.open_to_promises(climate, ADMIN, str(chance.randint(1, 8)), chance.random() < 0.7),
        move,
        work,
        forge,
    ]


def test_rebuilds_end_beside_traffic_that_does_not(
    climate: Climate, clock: Clock, engine: Engine, deadlocks: list[str]
) -> None:
    acts, stop = traffic(climate, clock, engine), Event()
    with ThreadPoolExecutor(len(acts)) as pool:
        done = [pool.submit(repeat, act, stop) for act in acts]
        try:
            for _ in range(REBUILDS):
                rebuild(climate)
                assert not [one for one in done if one.done()], "all go on meanwhile"
        finally:
            stop.set()
    assert all(one.result() for one in done), "each act was tried"
    rebuild(climate)
    settle(climate, clock, hours=2)
    assert rebuild(climate).left == ()
    assert consistency_check.differences(climate) == []
    assert deadlocks == []
    for number in range(1, 9):
        reservable.open_to_promises(climate, ADMIN, str(number), True)
    with engine.connect() as conn:
        unfinished = text("SELECT DISTINCT kind, status, outcome, reason FROM events WHERE status <> 'DONE'")
        assert [tuple(row) for row in conn.execute(unfinished)] == []
        assert set(conn.scalars(text("SELECT state FROM allocations"))) == {"released"}
    assert consistency_check.differences(climate) == []


def test_streams_that_begin_during_a_rebuild_are_left_to_the_next(
    climate: Climate, clock: Clock, engine: Engine
) -> None:
    """However many leases are made while rows are compared, there is an end to the comparison."""
    for _ in range(4):
        make(climate, clock, start=0.1)
    with reading(engine) as conn:
        begun, known = journal.last_position(conn), journal.streams(conn, FIRST, 1000)
    compared = 0
    for portion in consistency_check.portions(climate, size=1, begun_by=begun):
        compared += portion.streams
        for _ in range(3):
            leases.delete(climate, MEMBER, make(climate, clock, start=5).id)
    assert compared == len(known)


def test_damaged_leases_are_written_a_few_at_a_time(climate: Climate, clock: Clock, engine: Engine) -> None:
    """A rebuild takes fewer statements than one for each lease, and a lease that cannot be written stops no other."""
    made = [make(climate, clock, start=3 * number) for number in range(1, 41)]
    forged(engine, "UPDATE leases SET degraded = true")
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda conn, cursor, statement, *more: statements.append(statement))
    assert rebuild(climate).mended == len(made)
    assert len(statements) < 2 * len(made)
    lost = made[0]
    forged(engine, RELEASED, id=lost.reservations[0].id)
    forged(engine, "UPDATE leases SET degraded = true")
    for _ in range(8):
        make(climate, clock, start=3)
    assert {one.stream for one in rebuild(climate).left} == {lost.id}


def forged(engine: Engine, statement: str, **given: Any) -> None:
    with engine.begin() as conn:
        assert conn.execute(text(statement), given).rowcount


RELEASED = "UPDATE allocations SET state = 'released' WHERE reservation_id = :id"


def test_a_host_that_looks_free_is_taken_back(climate: Climate, clock: Clock, engine: Engine) -> None:
    lease = make(climate, clock, hosts_wanted(8), start=0)
    run_due(climate)
    forged(engine, RELEASED, id=lease.reservations[0].id)
    assert {(one.table, one.column) for one in consistency_check.differences(climate)} == {("allocations", "state")}
    assert rebuild(climate).mended == 1
    assert consistency_check.differences(climate) == []
    with pytest.raises(NotEnoughHosts):
        make(climate, clock, start=0)


def test_a_host_that_was_promised_to_another_meanwhile_is_left_to_an_operator(
    climate: Climate, clock: Clock, engine: Engine
) -> None:
    lost, other = make(climate, clock, hosts_wanted(8)), make(climate, clock, hosts_wanted(1), start=8)
    forged(engine, RELEASED, id=lost.reservations[0].id)
    forged(engine, "UPDATE leases SET degraded = true WHERE id = :id", id=other.id)
    taken = make(climate, clock)
    done = rebuild(climate)
    assert (done.mended, {one.stream for one in done.left}) == (1, {lost.id})
    leases.delete(climate, MEMBER, taken.id)
    assert (rebuild(climate).left, consistency_check.differences(climate)) == ((), [])


def test_leases_in_each_others_way_are_written_together(climate: Climate, clock: Clock, engine: Engine) -> None:
    pair = [make(climate, clock) for _ in range(2)]
    numbers = [lease.reservations[0].hosts[0] for lease in pair]
    before = rows(engine)
    with engine.begin() as conn:
        conn.execute(text("DELETE FROM allocations"))
        for lease, number in zip(pair, reversed(numbers), strict=True):
            period = {"start": lease.period.start, "end": lease.period.end}
            conn.execute(text(TAKEN), {"id": lease.reservations[0].id, "host": number, **period})
    assert len({one.stream for one in consistency_check.differences(climate)}) == 2
    assert rebuild(climate).left == ()
    assert {name: found for name, found in rows(engine).items() if name != "allocations"} == {
        name: found for name, found in before.items() if name != "allocations"
    }


TAKEN = """
    INSERT INTO allocations (reservation_id, host, during, kind, state)
    VALUES (:id, :host, tstzrange(:start, :end), 'lease', 'held')
"""
WAITING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND :pid = ANY (pg_blocking_pids(pid))
"""


def test_the_journal_is_read_after_the_lock_is_taken(climate: Climate, clock: Clock, engine: Engine) -> None:
    """What somebody writes while the rebuild waits for his lock is not undone by what was read before."""
    lease = make(climate, clock)
    forged(engine, "UPDATE leases SET degraded = true")
    with ThreadPoolExecutor(1) as pool:
        with engine.begin() as conn:
            mine = stored.get(conn, lease.id, lock=True)
            stored.record_many(conn, ADMIN, [(mine, [LeaseRenamed(clock.time, "renamed")])])
            pid = conn.execute(text("SELECT pg_backend_pid()")).scalar_one()
            done = pool.submit(rebuild, climate)
            with reading(engine) as other:
                while not other.execute(text(WAITING), {"pid": pid}).scalar_one():
                    assert not done.done()
        assert done.result().left == ()
    assert get(climate, lease).name == "renamed"
    assert consistency_check.differences(climate) == []


def test_nothing_is_written_where_nothing_differs(climate: Climate, clock: Clock, engine: Engine) -> None:
    for _ in range(3):
        make(climate, clock, start=0)
    run_due(climate)
    xmin = "SELECT xmin::text, ctid::text FROM {}"
    tables = ("leases", "reservations", "events", "allocations", "hosts", "claims")
    with engine.connect() as conn:
        before = [conn.execute(text(xmin.format(table))).all() for table in tables]
    assert rebuild(climate).mended == 0
    with engine.connect() as conn:
        assert [conn.execute(text(xmin.format(table))).all() for table in tables] == before


def test_rows_that_no_fact_knows(climate: Climate, clock: Clock, engine: Engine) -> None:
    """Windows and decisions go; of a lease too much hangs on the rows."""
    lease = make(climate, clock)
    forged(engine, "INSERT INTO limits VALUES ('third', 'leases', 1, now())")
    forged(
        engine,
        "INSERT INTO maintenance_windows (id, host, during, reason, state, created_by, created_at) "
        "VALUES (gen_random_uuid(), 1, '[2030-01-01,2030-01-02)', 'r', 'done', 'x', now())",
    )
    forged(
        engine,
        "INSERT INTO leases SELECT gen_random_uuid(), name, project_id, user_id, start_date, end_date, "
        "status, degraded, deleting, gone, version, created_at, updated_at FROM leases",
    )
    assert len(consistency_check.differences(climate)) == 3
    (left,) = rebuild(climate).left
    assert (left.table, left.what) == ("leases", consistency_check.NO_JOURNAL)
    assert left.stream != lease.id
