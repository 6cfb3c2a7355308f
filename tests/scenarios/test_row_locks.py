"""Hosts are locked in ascending order, however late a transaction learns which it needs."""

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Connection, Engine, text

from climate.context import Climate
from climate.database import advisory_locks
from climate.database.advisory_locks import Subject
from climate.domain.errors import Busy
from climate.service.transaction import run
from climate.store import locks
from climate.store.hosts import pool_membership
from climate.store.locks import HostsInUse
from tests.conftest import Clock
from tests.service.lease_actions import hosts_wanted, make
from tests.system.stack import await_so

WAITING = """
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


def free(engine: Engine, numbers: Collection[int]) -> set[int]:
    """Those of the hosts that nobody has locked."""
    with engine.connect() as conn:
        found = text("SELECT id FROM hosts WHERE id = ANY(:ids) FOR NO KEY UPDATE SKIP LOCKED")
        return set(conn.scalars(found, {"ids": list(numbers)}))


def test_a_lower_host_that_is_free_is_locked(climate: Climate) -> None:
    with climate.engine.begin() as conn:
        locks.lock_hosts(conn, [5, 6])
        locks.lock_hosts(conn, [2, 6])
        assert free(climate.engine, range(1, 9)) == {1, 3, 4, 7, 8}


def test_a_lower_host_that_is_not_free_is_not_waited_for(climate: Climate) -> None:
    with climate.engine.begin() as other, climate.engine.begin() as conn:
        locks.lock_hosts(other, [2])
        locks.lock_hosts(conn, [5, 6])
        with pytest.raises(HostsInUse) as refused:
            locks.lock_hosts(conn, [2])
        assert refused.value.numbers == {2, 5, 6}
        with pytest.raises(HostsInUse):
            pool_membership.of(conn, [2], lock=True)


def test_hosts_of_a_quick_booking_count_as_held(climate: Climate) -> None:
    with climate.engine.begin() as other, climate.engine.begin() as conn:
        locks.lock_hosts(other, [2])
        locks.note_hosts(conn, [4])
        with pytest.raises(HostsInUse):
            locks.lock_hosts(conn, [2])


def test_a_new_transaction_on_the_same_connection_holds_nothing(climate: Climate) -> None:
    with climate.engine.connect() as conn:
        for numbers in ([5], [2]):
            with conn.begin(), climate.engine.begin() as other:
                locks.lock_hosts(other, [1])
                locks.lock_hosts(conn, numbers)


def test_a_transaction_begins_again_and_locks_all_of_its_hosts_in_order(climate: Climate) -> None:
    tries: list[set[int]] = []

    def act(conn: Connection) -> None:
        locks.lock_hosts(conn, [5])
        tries.append(free(climate.engine, range(1, 9)))
        locks.lock_hosts(conn, [2])

    with ThreadPoolExecutor(1) as pool:
        with climate.engine.begin() as other:
            locks.lock_hosts(other, [2])
            done = pool.submit(run, climate, act)
            await_so(lambda: _waits(climate.engine), 60, "the second try to wait for host 2")
            assert free(climate.engine, [5]) == {5}, "it holds nothing above the host that it waits for"
        done.result()
    assert tries == [{1, 3, 4, 6, 7, 8}, {1, 3, 4, 6, 7, 8}]


def test_a_resource_is_not_waited_for_by_who_holds_hosts(climate: Climate) -> None:
    with climate.engine.begin() as other, climate.engine.begin() as conn:
        locks.lock_resource(other, "server-1")
        locks.lock_hosts(conn, [1])
        with pytest.raises(Busy, match="server-1 is being reserved by another request"):
            locks.lock_resource(conn, "server-1")


def test_a_refused_booking_leaves_no_lock(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(2), hosts_wanted(3))
    assert free(climate.engine, range(1, 9)) == set(range(1, 9))


def test_subjects_of_advisory_locks_do_not_begin_alike() -> None:
    named = [subject.value for subject in Subject if subject is not Subject.RESOURCE]
    assert [one for one in named for other in named if one != other and other.startswith(one)] == []
    assert len({advisory_locks.HOSTS, advisory_locks.MIGRATION, advisory_locks.FIRST_START}) == 3


def _waits(engine: Engine) -> bool:
    with engine.connect() as conn:
        return bool(conn.scalar(text(WAITING)))
