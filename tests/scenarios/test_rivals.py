"""Bookings that meet others of the same hosts: who has to wait, for what, and what becomes of it."""

import gc
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text

from climate.context import Climate
from climate.domain.errors import NotEnoughHosts
from climate.domain.hosts.requirements import AllOf
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.store import locks
from climate.store.allocation import hosts
from climate.store.allocation.hosts import HostRequest
from tests.conftest import Clock
from tests.service.lease_actions import held, hosts_wanted, make
from tests.system.stack import await_so

LOSERS = 3

WAITING = text("""
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
""")
TURNS = text("""
    SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database
    WHERE datname = current_database() AND locktype = 'advisory'
""")
TAKEN = text("""
    INSERT INTO allocations (host, during, kind, state)
    SELECT id, tstzrange('2020-01-01Z', '2190-01-01Z'), 'hold', 'held' FROM hosts WHERE id = ANY(:numbers)
""")


@contextmanager
def losers(climate: Climate, clock: Clock, rival: Connection, wanted: int) -> Iterator[list["Future[Any]"]]:
    """Bookings of so many hosts that all wait for a rival which holds them, and their results."""
    with ThreadPoolExecutor(LOSERS) as pool:
        try:
            given = [pool.submit(make, climate, clock, hosts_wanted(wanted)) for _ in range(LOSERS)]
            await_so(lambda: _count(climate.engine, WAITING) >= LOSERS, 60, "waiting for the rival")
            yield given
        finally:
            rival.rollback()


def every_host(conn: Connection) -> list[int]:
    """Return the numbers of all hosts."""
    return list(conn.scalars(text("SELECT id FROM hosts ORDER BY id")))


def _count(engine: Engine, query: Any) -> int:
    with engine.connect() as conn:
        return int(conn.scalar(query))


def test_a_refusal_takes_no_turn_among_those_who_wait(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(8))
    with climate.engine.begin() as other:
        locks.lock_host_allocation(other)
        with pytest.raises(NotEnoughHosts, match="1 wanted, 8 match, 0 of them free; it would fit from"):
            make(climate, clock)


@pytest.mark.parametrize("wanted", [1, 8])
def test_all_who_wait_for_a_winner_are_refused_and_none_waits_for_another(
    climate: Climate, clock: Clock, wanted: int
) -> None:
    with climate.engine.connect() as rival:
        locks.lock_hosts(rival, every_host(rival))
        with losers(climate, clock, rival, wanted) as given:
            assert _count(climate.engine, TURNS) == 0, "they wait side by side"
            rival.execute(TAKEN, {"numbers": every_host(rival)})
            rival.commit()
            for one in given:
                with pytest.raises(NotEnoughHosts, match=f"{wanted} wanted, 8 match, 0 of them free"):
                    one.result()


def test_a_rival_that_comes_to_nothing_takes_nothing_away(climate: Climate, clock: Clock) -> None:
    with climate.engine.connect() as rival:
        locks.lock_hosts(rival, every_host(rival))
        with losers(climate, clock, rival, 8) as given:
            rival.execute(TAKEN, {"numbers": every_host(rival)})
            rival.rollback()
            results = [one.exception() or one.result() for one in given]
    assert sorted(type(one).__name__ for one in results) == ["Lease", *["NotEnoughHosts"] * (LOSERS - 1)]


def test_what_a_winner_leaves_is_had_by_those_who_waited(climate: Climate, clock: Clock) -> None:
    with climate.engine.connect() as rival:
        locks.lock_hosts(rival, every_host(rival))
        with losers(climate, clock, rival, 2) as given:
            rival.execute(TAKEN, {"numbers": [1, 2]})
            rival.commit()
            made = [one.result() for one in given]
    assert all(isinstance(one, Lease) for one in made)
    assert sorted(number for one in made for number in held(one)) == list(range(3, 9))


def test_locks_of_a_transaction_that_is_gone_are_not_counted(climate: Climate) -> None:
    """A connection may be used again, and its first statement may begin the transaction."""
    with climate.engine.connect() as conn:
        for is_begun in (True, False):
            if is_begun:
                conn.begin()
            locks.lock_hosts(conn, [1])
            with climate.engine.begin() as other:
                assert list(other.scalars(text("SELECT id FROM hosts WHERE id < 3 FOR UPDATE SKIP LOCKED"))) == [2]
            conn.commit()
            gc.collect()


def test_a_booking_of_one_host_locks_no_other(climate: Climate, clock: Clock) -> None:
    wanted = HostRequest(AllOf(()), Period(clock.time, clock.time + timedelta(hours=1)), least=1, most=1)
    with climate.engine.begin() as conn:
        picked = hosts.pick(conn, wanted, patient=False)
        with climate.engine.begin() as other:
            free = set(other.scalars(text("SELECT id FROM hosts FOR NO KEY UPDATE SKIP LOCKED")))
        everything = set(every_host(conn))
    assert free == everything - set(picked)
