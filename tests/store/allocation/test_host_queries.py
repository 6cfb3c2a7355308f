"""Searches for free hosts beside changes that are committed while they run."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta

import pytest
from sqlalchemy import Engine, TextClause, text

from climate.context import Climate
from climate.domain.hosts.requirements import AllOf
from climate.domain.period import Period
from climate.store import locks
from climate.store.allocation import hosts
from climate.store.allocation.hosts import FEW, HostRequest, MustWait
from tests.conftest import Clock
from tests.lock_waits import await_blocked
from tests.scenarios.test_statement_counts import counted

LOCK = 4711
"""Advisory lock for which a search waits, after it has taken its snapshot and before it locks a row."""

TAKEN = text("""
    INSERT INTO allocations (host, during, kind, state)
    SELECT id, tstzrange('2020-01-01Z', '2190-01-01Z'), 'hold', 'held' FROM hosts WHERE id <> :spared
""")
TIGHTER = text("""
    INSERT INTO allocations (host, during, kind, state)
    SELECT id, tstzrange(:start, :end), 'hold', 'held' FROM hosts WHERE id <> :spared
""")
"""Lets a search prefer the other hosts, which are free for less time."""
CLOSED = text("UPDATE hosts SET reservable = false WHERE id <> :spared")
NOTHING = text("SELECT :spared")
WAITING_RANDOM = text(f"""
    CREATE FUNCTION public.random() RETURNS double precision LANGUAGE plpgsql AS
    'BEGIN
        PERFORM pg_advisory_xact_lock_shared({LOCK});
        RETURN pg_catalog.random();
    END'
""")
OWN_RANDOM = text("SET LOCAL search_path TO public, pg_catalog")
MORE_HOSTS = text("""
    INSERT INTO hosts (hypervisor_hostname, service_name, vcpus, memory_mb, local_gb, cpu_info, hypervisor_type,
        hypervisor_version, reservable, extra, created_at, pool_since, pool, pool_reason, version)
    SELECT 'more' || n, '', 1, 1, 1, '', 'fake', 1, true, '{}'::jsonb, now(), now(), 'reservation', '', 1
    FROM generate_series(1, :count) n
""")


@pytest.fixture
def stops(engine: Engine) -> Iterator[None]:
    """Have the search of `picking` wait for LOCK, after its snapshot: each search calls random()."""
    with engine.begin() as conn:
        conn.execute(WAITING_RANDOM)
    yield
    with engine.begin() as conn:
        conn.execute(text("DROP FUNCTION public.random()"))


def request(clock: Clock, most: int) -> HostRequest:
    return HostRequest(AllOf(()), Period(clock.time, clock.time + timedelta(hours=1)), least=1, most=most)


@contextmanager
def picking(climate: Climate, wanted: HostRequest, change: TextClause, spared: int = 0) -> Iterator[object]:
    """Yield the result, or the error, of a search during which all hosts but the spared one are changed."""

    def _pick() -> object:
        with climate.engine.begin() as conn:
            conn.execute(OWN_RANDOM)
            try:
                return hosts.pick(conn, wanted, patient=False)
            except MustWait as error:
                return error

    with ThreadPoolExecutor(1) as pool, climate.engine.connect() as other:
        other.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": LOCK})
        other.commit()
        try:
            picked = pool.submit(_pick)
            await_blocked(climate.engine, picked.done)
            other.execute(change, {"spared": spared})
            other.commit()
        finally:
            other.rollback()
            other.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": LOCK})
        yield picked.result()


@pytest.mark.parametrize("change", [TAKEN, CLOSED], ids=["allocated", "no longer reservable"])
def test_no_host_is_picked_that_another_transaction_changes_before_its_lock(
    climate: Climate, clock: Clock, stops: None, change: TextClause
) -> None:
    with picking(climate, request(clock, 1), change) as result:
        assert isinstance(result, MustWait)


def test_a_host_that_still_suits_is_picked_in_place_of_those_that_do_not(
    climate: Climate, clock: Clock, stops: None
) -> None:
    later = {"start": clock.time + timedelta(hours=2), "end": clock.time + timedelta(hours=3)}
    with climate.engine.begin() as conn:
        conn.execute(TIGHTER, {**later, "spared": 3})
    with picking(climate, request(clock, 1), CLOSED, spared=3) as result:
        assert result == (3,)


def test_a_free_host_is_picked_or_the_search_is_repeated(climate: Climate, clock: Clock, stops: None) -> None:
    with picking(climate, request(clock, 1), TAKEN, spared=3) as result:
        assert result == (3,) or isinstance(result, MustWait)


def test_undisturbed_hosts_are_picked(climate: Climate, clock: Clock, stops: None) -> None:
    with picking(climate, request(clock, 2), NOTHING) as result:
        assert isinstance(result, tuple)
        assert len(result) == 2


def test_all_rows_that_a_search_locks_are_noted(climate: Climate, clock: Clock, stops: None) -> None:
    """A host that is no longer free stays locked until the transaction ends, and later locks come after it."""
    with picking(climate, request(clock, 2), TAKEN) as result:
        assert isinstance(result, MustWait)
        assert len(result.at_hand) == 3


def test_many_hosts_are_looked_at_again_once_their_rows_are_locked(climate: Climate, clock: Clock, stops: None) -> None:
    with climate.engine.begin() as conn:
        conn.execute(MORE_HOSTS, {"count": FEW})
    with picking(climate, request(clock, FEW), TAKEN) as result:
        assert isinstance(result, MustWait)


@pytest.mark.parametrize("change", [TAKEN, CLOSED], ids=["allocated", "no longer reservable"])
def test_hosts_that_change_while_a_patient_search_waits_for_their_rows_are_not_picked(
    climate: Climate, clock: Clock, change: TextClause
) -> None:
    def _pick() -> tuple[int, ...]:
        with climate.engine.begin() as conn:
            return hosts.pick(conn, request(clock, 1), patient=True)

    with ThreadPoolExecutor(1) as pool, climate.engine.connect() as other:
        try:
            locks.lock_hosts(other, list(range(1, 9)))
            picked = pool.submit(_pick)
            await_blocked(climate.engine, picked.done)
            other.execute(change, {"spared": 3})
            other.commit()
        finally:
            other.rollback()
        assert picked.result() == (3,)


@pytest.mark.parametrize(("most", "statements"), [(1, 1), (8, 1), (FEW, 2)])
def test_few_hosts_take_one_statement(climate: Climate, clock: Clock, most: int, statements: int) -> None:
    with climate.engine.begin() as conn:
        conn.execute(MORE_HOSTS, {"count": most})
        with counted(climate.engine) as seen:
            assert len(hosts.pick(conn, request(clock, most), patient=False)) == most
    assert len(seen) == statements
